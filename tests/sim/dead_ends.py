"""Pools with nothing to learn, or that run out of it: how a run on one ends (must-show 7)."""

from typing import Any, get_args

import numpy as np

from snoozing_env import build_scheduler
from snoozing_env.schedulers.snooze import Mode
from snoozing_env.sim.learner import Learner
from snoozing_env.sim.run import LoopConfig, OnStep, StepMetrics, Trace, simulate
from tests.sim.frozen import frozen

MODES = get_args(Mode)
BATCH, FLOOR = 6, 0.2
LADDER = {"widen_after": 2, "wake_after": 4, "partial_after": 8, "dead_steps": 3}
MOST_PER_STEP = 3 * 8 * BATCH
"""Three searches, each to the end of the ladder."""
MIXTURES: dict[str, dict[str, Any] | None] = {
    "none": None,
    "draws": {"floors": {"d1": FLOOR}},
    "batch": {"floors": {"d1": FLOOR}, "shares_of": "batch"},
}


def run(
    world: Learner, kind: str, mode: str, mixture: str, steps: int = 12, on_step: OnStep | None = None
) -> Trace:
    table: dict[str, Any] = {"kind": kind, "snooze": {"mode": mode, "skip_passes": 2}}
    if MIXTURES[mixture] is not None:
        table["mixture"] = MIXTURES[mixture]
    config = LoopConfig.model_validate({"steps": steps, "batch": BATCH, "ladder": LADDER})
    trace = simulate(world, build_scheduler(table, world.tasks, 0), config, on_step)
    assert all(step.generated <= MOST_PER_STEP for step in trace.steps)
    assert all(0 < step.trained <= BATCH for step in trace.steps)
    return trace


def run_emptying(
    kind: str, mode: str, mixture: str, empties_to: float, steps: int = 40
) -> tuple[Trace, list[float]]:
    """A run whose second dataset turns to all solved or all unsolved after step 6, and its share of each batch."""
    world = frozen((60, 0.0), (30, 0.0))
    shares: list[float] = []

    def watch(step: StepMetrics) -> None:
        shares.append(step.shares["d1"])
        if step.step == 6:
            world.difficulty_N[60:] = empties_to
            world.train(np.zeros(0, np.int64), [])

    return run(world, kind, mode, mixture, steps, watch), shares


def floor_share(kind: str, mode: str, mixture: str) -> float:
    """Share of the trained groups that a rare dataset with a floor gets while it can give."""
    steps = run(frozen((190, 0.0), (10, 0.0)), kind, mode, mixture, steps=20).steps
    return sum(s.shares["d1"] * s.trained for s in steps) / sum(s.trained for s in steps)
