"""A run with any selector trains, and goes on from its checkpoint."""

from pathlib import Path

import pytest

from snoozing_env.report.compare import load_runs
from snoozing_env.report.runlog import FILE_NAME
from snoozing_env.train.run import RunOptions, train
from tests.train.small import small_recipe


@pytest.mark.parametrize("kind", ["thompson", "lze"])
def test_a_selector_from_the_recipe_trains_and_resumes(tmp_path: Path, kind: str) -> None:
    scheduler = {"kind": kind, "epsilon": 0.2, "snooze": {"skip_passes": 3}}
    output = tmp_path / "run"
    train(small_recipe(output, scheduler=scheduler, train={"steps": 2, "save_every": 1}), RunOptions())
    train(
        small_recipe(output, scheduler=scheduler, train={"steps": 3, "save_every": 1}),
        RunOptions(resume=True),
    )
    (run,) = load_runs([output / FILE_NAME])
    assert [step.step for step in run.steps] == [1, 2, 3]
    assert all(step.passes is not None and step.passes > 0 for step in run.steps)
