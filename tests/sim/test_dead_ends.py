"""Pools with nothing to learn, for every kind of scheduler × snooze mode × mixture: each ends in bounded time with the
reason; no stall, no exception, floors kept."""

from typing import Any

import numpy as np
import pytest

from snoozing_env import build_scheduler
from snoozing_env.schedulers import KINDS
from snoozing_env.sim.run import LoopConfig, simulate
from tests.sim.dead_ends import (
    BATCH,
    FLOOR,
    LADDER,
    MIXTURES,
    MODES,
    MOST_PER_STEP,
    floor_share,
    run,
    run_emptying,
)
from tests.sim.frozen import HOPELESS, SOLVED, frozen

every_case = pytest.mark.parametrize("mixture", MIXTURES)
every_mode = pytest.mark.parametrize("mode", MODES)
every_kind = pytest.mark.parametrize("kind", KINDS)


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
    trace, shares = run_emptying(kind, mode, mixture, empties_to)
    assert trace.ended == "finished"
    assert all(step.trained == BATCH for step in trace.steps)
    assert all(share == 0 for share in shares[8:]), "but for what the buffer still held"
    if mixture == "batch":
        assert np.sum(np.round(np.array(shares[:6]) * BATCH)) >= np.floor(FLOOR * BATCH * 6)


@every_kind
@every_mode
@pytest.mark.parametrize("mixture", ["draws", "batch"])
def test_the_floor_of_a_dataset_is_kept_while_it_can_give(kind: str, mode: str, mixture: str) -> None:
    share = floor_share(kind, mode, mixture)
    assert share == pytest.approx(FLOOR, abs=0.01 if mixture == "batch" else 0.03)
