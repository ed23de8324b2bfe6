"""TRL's asynchronous trainer over our loop: the bound is ours, nothing is dropped, a resume goes on."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from snoozing_env.errors import ConfigError
from snoozing_env.pacing.ledger import FILE_NAME as LEDGER
from snoozing_env.pacing.ledger import audit, read_ledger
from snoozing_env.report.runlog import FILE_NAME, EndRecord, StepRecord, read
from snoozing_env.train.checkpoints import MARK, STATE_DIR
from snoozing_env.train.grpo import TrainConfig
from snoozing_env.train.recipe import Recipe
from snoozing_env.train.run import RunOptions, train
from tests.train.small import small_recipe

BOUND = 2


def recipe(folder: Path, *, steps: int = 6, staleness: int = BOUND, **changes: object) -> Recipe:
    return small_recipe(
        folder,
        engine={"kind": "local", "own_weights": True},
        pacing={"max_staleness": staleness},
        train={"steps": steps, "save_every": 2, "trainer": "async_grpo", **changes},
    )


def steps_of(made: Recipe) -> list[StepRecord]:
    return [record for record in read(made.directory / FILE_NAME) if isinstance(record, StepRecord)]


def run(made: Recipe, *, resume: bool = False) -> None:
    train(made, RunOptions(resume=resume), console=Console(file=io.StringIO()))


def test_it_trains_stale_groups_within_our_bound_and_reports_what_they_are_worth(tmp_path: Path) -> None:
    made = recipe(tmp_path)
    run(made)
    steps = steps_of(made)
    assert [s.step for s in steps] == list(range(1, 7))
    assert 0 < max(s.lag_mean for s in steps) <= BOUND
    assert audit(read_ledger(made.directory / LEDGER), bound=BOUND) == []
    fresh = [s for s in steps if s.lag_mean == 0]
    stale = [s for s in steps if s.lag_mean > 0]
    assert fresh and all(s.ratio_mean == pytest.approx(1.0, abs=1e-4) for s in fresh), (
        "torch's attention over packed rows gives the engine's log-probs"
    )
    assert any(abs(s.ratio_mean - 1.0) > 1e-4 for s in stale)
    assert all(0 < s.ess_sequence <= 1 for s in steps)
    assert set(stale[-1].ess_by_lag) <= {"0", "1", "2"}
    assert all(s.grad_norm > 0 for s in steps)
