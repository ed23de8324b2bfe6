"""A run whose held-out accuracy falls draws uniformly until it is back, also across a resume (S11)."""

import asyncio
import io
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from rich.console import Console

from snoozing_env import TaskInfo, build_scheduler
from snoozing_env.errors import EngineError
from snoozing_env.fallback import FallbackConfig
from snoozing_env.report.compare import load_runs
from snoozing_env.report.console import TrainProgress
from snoozing_env.report.runlog import (
    FILE_NAME,
    EvalRecord,
    FallbackRecord,
    RunLog,
    RunRecord,
    StepRecord,
    read,
)
from snoozing_env.report.tables import fallbacks
from snoozing_env.rollout.evaluation import EvaluationConfig
from snoozing_env.schedulers import Curriculum
from snoozing_env.testing.clock import run_jumping
from snoozing_env.train.held_out import HeldOut
from snoozing_env.train.run import RunOptions, train
from snoozing_env.types import Group, GroupOutcome, Trajectory
from tests.train.small import small_recipe

TASKS, SAMPLES = 40, 5
SOLVED = {0: 4, 1: 4, 2: 1, 3: 1, 4: 4, 5: 4, 6: 4}
"""Of five samples, by step: training goes wrong after step 1 and is mended after step 3."""


DEFAULT = FallbackConfig()


class PlannedRunner:
    """Held-out tasks that are solved as planned for the step that is evaluated."""

    def __init__(self) -> None:
        self.step = 0
        self.runs = 0
        self.down_until = 0.0
        """On the loop's clock."""
        self.config = SimpleNamespace(max_tokens=8)
        self.catalogue = _Catalogue()

    async def run(self, index: int, *, group_id: int, sampling: object, n: int) -> Group:
        if asyncio.get_running_loop().time() < self.down_until:
            raise EngineError("connection refused")
        self.runs += 1
        rewards = (np.arange(SAMPLES) < SOLVED[self.step]).astype(float)
        said = Trajectory(prompt_ids=(1,), completion_ids=(2,), logprobs=(0.0,), mask=(1,), reward=1.0)
        outcome = GroupOutcome(task=index, rewards_G=rewards)
        return Group(id=group_id, key=f"task {index}", outcome=outcome, trajectories=(said,) * SAMPLES)


class _Catalogue:
    domains = ("all",) * TASKS
    infos = tuple(TaskInfo(key=f"held-out {i}") for i in range(TASKS))

    def __len__(self) -> int:
        return TASKS


class Watched:
    """A scheduler, its log and the held-out evaluation of one start of a run."""

    def __init__(
        self, path: Path, *, fallback: FallbackConfig | None = DEFAULT, patience_s: float = 0.0
    ) -> None:
        self.scheduler: Curriculum = build_scheduler(
            {"kind": "band"}, [TaskInfo(key="a"), TaskInfo(key="b")], 0
        )
        self.runner, self.log = PlannedRunner(), RunLog(path)
        self.said = io.StringIO()
        self.held_out = HeldOut(
            cast(Any, self.runner), EvaluationConfig(samples=SAMPLES), fallback=fallback, scheduler=self.scheduler,
            log=self.log, progress=TrainProgress(9, console=Console(file=self.said, width=200)), patience_s=patience_s,
        )  # fmt: skip

    async def evaluate(self, step: int) -> None:
        self.runner.step = step
        await self.held_out.evaluate(step)


def decisions(path: Path) -> list[tuple[int, str]]:
    return [(r.step, r.action) for r in read(path) if isinstance(r, FallbackRecord)]


def run(steps: list[int], watched: Watched) -> None:
    async def main() -> None:
        for step in steps:
            await watched.evaluate(step)

    asyncio.run(main())


def test_a_fall_and_a_return_are_done_logged_and_said(tmp_path: Path) -> None:
    path = tmp_path / FILE_NAME
    watched = Watched(path)
    run([0, 1, 2, 3], watched)
    assert watched.scheduler.fallen_back
    assert watched.held_out.fallen_back == 1
    run([4, 5, 6], watched)
    assert not watched.scheduler.fallen_back
    assert decisions(path) == [(3, "fall_back"), (5, "recover")]
    (fell, _) = (r for r in read(path) if isinstance(r, FallbackRecord))
    assert (fell.accuracy, fell.best) == pytest.approx((0.2, 0.8))
    assert fell.high is not None
    assert fell.high < 0
    assert "held-out 20.0%, best 80.0%: uniform draws from here on" in watched.said.getvalue()


def test_the_report_says_when_it_fell_back_and_when_it_returned(tmp_path: Path) -> None:
    path = tmp_path / FILE_NAME
    with RunLog(path) as log:
        log.append(RunRecord(name="r", arm="a", seed=0))
    run([0, 1, 2, 3, 4, 5], Watched(path))
    (loaded,) = load_runs([path])
    assert fallbacks(loaded) == (
        "fell back at step 3 (20.0 %, best 80.0 %); returned at step 5 (80.0 %, best 80.0 %)"
    )


def test_without_a_fallback_nothing_is_judged(tmp_path: Path) -> None:
    watched = Watched(tmp_path / FILE_NAME, fallback=None)
    run([0, 1, 2, 3], watched)
    assert not watched.scheduler.fallen_back
    assert (watched.held_out.fallen_back, watched.held_out.state()) == (None, None)


@pytest.mark.parametrize("checkpoint", [2, 3, 4])
def test_a_resumed_run_decides_what_an_undisturbed_one_does(tmp_path: Path, checkpoint: int) -> None:
    """The checkpoint of a step is written before the evaluation of that step, which the kill comes after."""
    whole = Watched(tmp_path / "whole.jsonl")
    run(list(SOLVED), whole)
    path = tmp_path / FILE_NAME
    first = Watched(path)
    run(list(range(checkpoint)), first)
    state = json.loads(json.dumps([first.scheduler.state_dict(), first.held_out.state()]))
    run([checkpoint], first)
    first.log.truncate_after(checkpoint)
    second = Watched(path)
    second.scheduler.load_state_dict(state[0])
    second.held_out.restore(state[1])
    run(list(range(checkpoint, 7)), second)
    assert decisions(path) == decisions(tmp_path / "whole.jsonl")
    steps = [r.step for r in read(path) if isinstance(r, EvalRecord)]
    assert steps == list(SOLVED), "each evaluation is logged once"


def test_a_recipe_that_no_longer_watches_does_not_stay_fallen_back(tmp_path: Path) -> None:
    first = Watched(tmp_path / "a.jsonl")
    run([0, 1, 2, 3], first)
    second = Watched(tmp_path / "b.jsonl", fallback=None)
    second.scheduler.load_state_dict(first.scheduler.state_dict())
    assert second.scheduler.fallen_back
    second.held_out.restore(first.held_out.state())
    assert not second.scheduler.fallen_back


def test_a_run_that_is_being_ruined_falls_back(tmp_path: Path) -> None:
    recipe = small_recipe(
        tmp_path / "run",
        scheduler={"kind": "band"},
        fallback={"patience": 1, "confidence": 0.9},
        evaluation={"every": 1, "samples": 8, "taskset": {"split": "eval", "size": 48}},
        ladder={"widen_after": 2, "wake_after": 3, "partial_after": 4, "dead_steps": 20},
        train={"steps": 2, "save_every": 1, "learning_rate": 0.05},
    )
    train(recipe, RunOptions())
    records = read(recipe.directory / FILE_NAME)
    assert any(isinstance(r, FallbackRecord) and r.action == "fall_back" for r in records)
    assert any(r.fallback for r in records if isinstance(r, StepRecord))
    assert "fell back at step" in (recipe.directory / "report.html").read_text(encoding="utf-8")


def test_an_evaluation_that_the_engine_failed_starts_again_until_patience_ends(tmp_path: Path) -> None:
    watched = Watched(tmp_path / FILE_NAME, patience_s=10.0)
    watched.runner.down_until = 5.0
    run_jumping(watched.evaluate(0))
    assert "the evaluation at step 0 starts again: connection refused" in watched.said.getvalue()
    watched.runner.down_until = 1e9
    with pytest.raises(EngineError, match="connection refused"):
        run_jumping(watched.evaluate(1))
