"""Training while rollouts go on: the lab policy with an engine that has weights of its own."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from snoozing_env.errors import StateError
from snoozing_env.pacing.ledger import FILE_NAME as LEDGER
from snoozing_env.pacing.ledger import audit, read_ledger
from snoozing_env.report.runlog import FILE_NAME, StepRecord, read
from snoozing_env.train.recipe import Recipe
from snoozing_env.train.run import RunOptions, train
from tests.train.killing import run_with_kills
from tests.train.small import small_recipe

BOUND = 2


def recipe(folder: Path, *, steps: int = 8, updates: str = "drain") -> Recipe:
    return small_recipe(
        folder,
        engine={"kind": "local", "own_weights": True},
        pacing={"max_staleness": BOUND, "weight_updates": updates},
        train={"steps": steps, "save_every": 2},
    )


def steps_of(made: Recipe) -> list[StepRecord]:
    return [record for record in read(made.directory / FILE_NAME) if isinstance(record, StepRecord)]


def run(made: Recipe, *, resume: bool = False) -> None:
    train(made, RunOptions(resume=resume), console=Console(file=io.StringIO()))


@pytest.mark.parametrize("updates", ["drain", "in-flight"])
def test_stale_groups_are_trained_within_the_bound_and_corrected(tmp_path: Path, updates: str):
    made = recipe(tmp_path, updates=updates)
    run(made)
    steps = steps_of(made)
    assert len(steps) == 8
    assert max(s.lag_mean for s in steps) > 0, "generation overlaps with training"
    assert max(s.lag_mean for s in steps) <= BOUND
    stale = [s for s in steps if s.lag_mean > 0 and s.ratio_mean is not None]
    assert any(abs(s.ratio_mean - 1.0) > 1e-6 for s in stale), (
        "their ratios are against the policy that sampled them"
    )
    assert audit(read_ledger(made.directory / LEDGER), bound=BOUND) == []


def test_a_run_killed_again_and_again_loses_no_finished_group_and_trains_none_twice(tmp_path: Path):
    made = recipe(tmp_path, steps=12)
    killed_at = list(run_with_kills(made, kills=3, seed=5))
    assert len(killed_at) == 3
    assert [s.step for s in steps_of(made)] == list(range(1, 13))
    events = read_ledger(made.directory / LEDGER)
    assert sum(event["event"] == "resume" for event in events) >= 1
    assert audit(events, bound=BOUND) == []


def test_a_checkpoint_of_a_synchronous_run_is_refused(tmp_path: Path):
    made = recipe(tmp_path, steps=2)
    run(made.model_copy(update={"pacing": made.pacing.model_copy(update={"max_staleness": 0})}))
    longer = recipe(tmp_path, steps=4)
    with pytest.raises(StateError, match="was made by SyncSupply, this run uses AsyncSupply"):
        run(longer, resume=True)
