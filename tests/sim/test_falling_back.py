"""A selector that harms is given up while it harms, and only then (S11)."""

import numpy as np
import pytest

from snoozing_env import TaskInfo, build_scheduler
from snoozing_env.fallback import FallbackConfig
from snoozing_env.sim.learner import Learner
from snoozing_env.sim.presets import PRESETS
from snoozing_env.sim.run import EvaluationConfig, LoopConfig, Trace, simulate
from snoozing_env.types import Floats, Ints

DECOYS, REST = 60, 240


class Decoyed:
    """Tasks that are for ever half solved and teach the wrong thing: while they fill most of the batch, every other
    pass rate falls; otherwise it comes back. A difficulty curriculum loves them."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self.tasks = tuple(TaskInfo(key=str(i)) for i in range(DECOYS + REST))
        self.side_N: Floats = np.zeros(DECOYS + REST)
        self.level = 0.75

    def rates_N(self) -> Floats:
        return np.concatenate([np.full(DECOYS, 0.5), np.full(REST, self.level)])

    def verdicts_N(self) -> Floats:
        return self.rates_N()

    def sample(self, task_B: Ints, rollouts: int) -> Floats:
        rates = self.rates_N()[task_B, None]
        return (self._rng.random((len(task_B), rollouts)) < rates).astype(np.float64)

    def train(self, task_B: Ints, rewards_B: object) -> None:
        harmed = (task_B < DECOYS).mean() > 0.5
        self.level = float(np.clip(self.level + (-0.005 if harmed else 0.01), 0.05, 0.9))


def run(kind: str, fallback: FallbackConfig | None, seed: int, steps: int = 150) -> Trace:
    world = Decoyed(seed)
    scheduler = build_scheduler({"kind": kind, "snooze": {"mode": "off"}}, world.tasks, seed)
    config = LoopConfig(steps=steps, batch=16, fallback=fallback, evaluation=EvaluationConfig(every=5))
    return simulate(world, scheduler, config)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["band", "thompson"])
def test_a_selector_that_harms_is_given_up_and_the_evaluation_comes_back(kind: str, seed: int) -> None:
    harmed, saved = run(kind, None, seed), run(kind, FallbackConfig(), seed)
    lost, kept = (min(step.rate for step in trace.steps) for trace in (harmed, saved))
    assert lost < 0.5
    assert kept > 0.65, "noticed before much was lost"
    assert np.mean([s.rate for s in saved.steps]) > np.mean([s.rate for s in harmed.steps]) + 0.1
    assert not saved.steps[0].fallback
    assert any(step.fallback for step in saved.steps)


@pytest.mark.parametrize("preset", ["standalone", "subsets"])
@pytest.mark.parametrize("kind", ["band", "learnability"])
def test_a_selector_that_helps_is_left_alone(preset: str, kind: str) -> None:
    def rates(fallback: FallbackConfig | None) -> list[float]:
        world = Learner(PRESETS[preset], 3)
        scheduler = build_scheduler({"kind": kind}, world.tasks, 3)
        trace = simulate(world, scheduler, LoopConfig(steps=60, fallback=fallback))
        assert not any(step.fallback for step in trace.steps)
        return [step.rate for step in trace.steps]

    assert rates(FallbackConfig()) == rates(None), "watching changes nothing"
