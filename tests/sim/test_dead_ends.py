"""Pools with nothing to learn, for every kind of scheduler × snooze mode × mixture: each ends in bounded time with the
reason; no stall, no exception, floors kept."""

from typing import Any, get_args

import numpy as np
import pytest

from snoozing_env import build_scheduler
from snoozing_env.schedulers import KINDS
from snoozing_env.schedulers.snooze import Mode
from snoozing_env.sim.learner import Learner
from snoozing_env.sim.run import LoopConfig, StepMetrics, Trace, simulate
from tests.sim.frozen import HOPELESS, SOLVED, frozen

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
every_case = pytest.mark.parametrize("mixture", MIXTURES)
every_mode = pytest.mark.parametrize("mode", MODES)
every_kind = pytest.mark.parametrize("kind", KINDS)


def run(world: Learner, kind: str, mode: str, mixture: str, steps: int = 12, on_step: Any = None) -> Trace:
    table: dict[str, Any] = {"kind": kind, "snooze": {"mode": mode, "skip_passes": 2}}
    if MIXTURES[mixture] is not None:
        table["mixture"] = MIXTURES[mixture]
    config = LoopConfig.model_validate({"steps": steps, "batch": BATCH, "ladder": LADDER})
    trace = simulate(world, build_scheduler(table, world.tasks, 0), config, on_step)
    assert all(step.generated <= MOST_PER_STEP for step in trace.steps)
    assert all(0 < step.trained <= BATCH for step in trace.steps)
    return trace


@every_kind
@every_mode
@every_case
@pytest.mark.parametrize(("difficulty", "reason"), [(SOLVED, "all_max"), (HOPELESS, "all_min")])
def test_a_saturated_and_an_impossible_pool_end_after_three_full_searches(
    kind: str, mode: str, mixture: str, difficulty: float, reason: str
) -> None:
    trace = run(frozen((20, difficulty), (20, difficulty)), kind, mode, mixture)
    assert trace.steps == ()
    assert trace.ended == f"saturated after 0 updates: {MOST_PER_STEP} {reason}"


@every_kind
@every_mode
@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("difficulty", [0.0, SOLVED, HOPELESS])
def test_a_pool_of_one_task_trains_or_says_why_not(
    kind: str, mode: str, exact: bool, difficulty: float
) -> None:
    world = frozen((1, difficulty))
    table: dict[str, Any] = {"kind": kind, "snooze": {"mode": mode}}
    if exact:
        table["mixture"] = {"shares_of": "batch"}
    config = LoopConfig.model_validate({"steps": 5, "batch": 3, "ladder": LADDER})
    trace = simulate(world, build_scheduler(table, world.tasks, 0), config)
    if difficulty:
        assert (trace.steps, trace.ended[:9]) == ((), "saturated")
    else:
        assert [step.trained for step in trace.steps] == [3] * 5


@every_kind
@every_mode
@every_case
@pytest.mark.parametrize("empties_to", [SOLVED, HOPELESS])
def test_a_dataset_that_empties_leaves_full_batches_to_the_other(
    kind: str, mode: str, mixture: str, empties_to: float
) -> None:
    world = frozen((60, 0.0), (30, 0.0))
    shares: list[float] = []

    def watch(step: StepMetrics) -> None:
        shares.append(step.shares["d1"])
        if step.step == 6:
            world.difficulty_N[60:] = empties_to
            world.train(np.zeros(0, np.int64), [])

    trace = run(world, kind, mode, mixture, steps=40, on_step=watch)
    assert trace.ended == "finished"
    assert all(step.trained == BATCH for step in trace.steps)
    assert all(share == 0 for share in shares[8:]), "but for what the buffer still held"
    if mixture == "batch":
        assert np.sum(np.round(np.array(shares[:6]) * BATCH)) >= np.floor(FLOOR * BATCH * 6)


@every_kind
@every_mode
@pytest.mark.parametrize("mixture", ["draws", "batch"])
def test_the_floor_of_a_dataset_is_kept_while_it_can_give(kind: str, mode: str, mixture: str) -> None:
    trace = run(frozen((190, 0.0), (10, 0.0)), kind, mode, mixture, steps=20)
    given = sum(step.shares["d1"] * step.trained for step in trace.steps)
    trained = sum(step.trained for step in trace.steps)
    assert given / trained == pytest.approx(FLOOR, abs=0.01 if mixture == "batch" else 0.03)
