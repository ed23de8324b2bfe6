"""Tail batching in a whole synchronous run: what is put off and what is known of durations outlives it."""

from __future__ import annotations

import io
import json
from pathlib import Path

from rich.console import Console

from snoozing_env.report.runlog import FILE_NAME, StepRecord, read
from snoozing_env.train.checkpoints import MARK, STATE_DIR
from snoozing_env.train.recipe import Recipe
from snoozing_env.train.run import RunOptions, train
from tests.train.small import small_recipe


def run(folder: Path, *, steps: int, resume: bool = False) -> Recipe:
    made = small_recipe(
        folder,
        pacing={"tail": {"over": 1.01, "within": 3}, "group_s": 60.0},
        train={"steps": steps, "save_every": 2},
    )
    train(made, RunOptions(resume=resume), console=Console(file=io.StringIO()))
    return made


def saved(made: Recipe) -> Path:
    return (
        max(made.directory.glob("**/checkpoint-*"), key=lambda path: int(path.name.split("-")[1])) / STATE_DIR
    )


def test_a_run_with_tail_batching_goes_on_where_it_was(tmp_path: Path):
    made = run(tmp_path, steps=4)
    state = json.loads((saved(made) / MARK).read_text())
    assert state["durations"]["observed"] >= 4 * 4
    assert (saved(made) / "durations.parquet").exists()
    observed = state["durations"]["observed"]
    made = run(tmp_path, steps=6, resume=True)
    assert [r.step for r in read(made.directory / FILE_NAME) if isinstance(r, StepRecord)] == list(
        range(1, 7)
    )
    assert json.loads((saved(made) / MARK).read_text())["durations"]["observed"] > observed
