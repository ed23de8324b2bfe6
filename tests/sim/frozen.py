"""Learners that never change, so that what the loop costs can be computed by hand."""

from snoozing_env import build_scheduler
from snoozing_env.schedulers import Curriculum
from snoozing_env.sim.learner import Learner, LearnerConfig, PopulationConfig
from snoozing_env.sim.run import LoopConfig, SimulatedLoop

SOLVED, HOPELESS = -60.0, 60.0
"""Difficulties whose pass rate is 1 and 0 to the last bit of a rollout."""


def frozen(*parts: tuple[int, float], seed: int = 0) -> Learner:
    """Populations of (tasks, difficulty) whose pass rates stay."""
    return Learner(
        LearnerConfig(
            populations=tuple(
                PopulationConfig(name=f"d{i}", tasks=n, difficulty=d, spread=0.0)
                for i, (n, d) in enumerate(parts)
            ),
            skill_rate=0.0,
            cluster_rate=0.0,
            own_rate=0.0,
            side_rate=0.0,
        ),
        seed,
    )


def scheduler_of(world: Learner, snooze: dict[str, object], seed: int = 0) -> Curriculum:
    return build_scheduler({"snooze": snooze}, world.tasks, seed)


def generated_in(passes: int, snooze: dict[str, object], n: int) -> int:
    """Groups generated in so many passes over n tasks of which two thirds are always solved (Z12)."""
    world = frozen((2 * n // 3, SOLVED), (n - 2 * n // 3, 0.0))
    scheduler = scheduler_of(world, snooze)
    # 32 rollouts: a group at p = 1/2 has no spread once in 2e9 times, so the saturated share is exactly 2/3.
    loop = SimulatedLoop(world, scheduler, LoopConfig(batch=10, rollouts=32))
    generated = 0
    while scheduler.metrics()["passes"] < passes:
        step = loop.step()
        assert step is not None, loop.report()
        generated += step.generated
    return generated


def gain(passes: int, snooze: dict[str, object]) -> float:
    """Z12's gain: what plain dynamic sampling generates over what snoozing does, at equal passes."""
    n = 1500 if passes <= 12 else 150
    return generated_in(passes, {"mode": "off"}, n) / generated_in(passes, snooze, n)
