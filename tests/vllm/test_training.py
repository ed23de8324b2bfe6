"""Twenty training steps of the lab policy against a real vLLM server, every update checked (must-show 3)."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from snoozing_env.report.runlog import FILE_NAME, EvalRecord, StepRecord, read
from snoozing_env.train.recipe import Recipe
from snoozing_env.train.run import RunOptions, train
from tests.train.small import small_recipe

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.usefixtures("vllm_installed"),
    # Where vLLM is installed, importing TRL imports it too, deprecated torch calls and all.
    pytest.mark.filterwarnings("ignore"),
]


def served(output: Path, kind: str, steps: int, **changes: Any) -> Recipe:
    """The small run with its completions from a server of its own; no stale groups, so every gap is the engine's."""
    return small_recipe(
        output,
        engine={"kind": "vllm", "model": "policy"},
        server={"max_model_len": 128, "log": str(output.parent / f"{output.name}.log")},
        weights={"kind": kind},
        buffer={"max_staleness": 0},
        train={"steps": steps, "save_every": 10},
        **changes,
    )


def run(recipe: Recipe, resume: bool = False) -> tuple[list[StepRecord], list[EvalRecord]]:
    train(recipe, RunOptions(resume=resume), console=Console(file=io.StringIO()))
    records = read(recipe.directory / FILE_NAME)
    return [r for r in records if isinstance(r, StepRecord)], [
        r for r in records if isinstance(r, EvalRecord)
    ]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", ["gloo", "dir"])
def test_twenty_steps_with_the_engine_on_the_trainers_weights_at_every_step(
    tmp_path: Path, kind: str
) -> None:
    steps, evaluations = run(served(tmp_path / kind, kind, 20))
    assert [s.step for s in steps] == list(range(1, 21))
    gaps = [s.logprob_gap for s in steps]
    assert all(gap is not None and gap < 1e-4 for gap in gaps), gaps
    assert all(s.lag_mean == 0 for s in steps)
    assert all(s.grad_norm for s in steps), "every step moved the weights"
    assert [e.step for e in evaluations] == [0, 6, 12, 18, 20]


@pytest.mark.timeout(600)
def test_a_run_resumed_on_a_fresh_server_serves_the_checkpoints_weights(tmp_path: Path) -> None:
    run(served(tmp_path / "run", "dir", 10))
    steps, _ = run(served(tmp_path / "run", "dir", 13), resume=True)
    assert [s.step for s in steps] == list(range(1, 14))
    assert all(s.logprob_gap is not None and s.logprob_gap < 1e-4 for s in steps)
