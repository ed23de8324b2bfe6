"""The goodput account of real runs: it balances at every logged step, also across kills and resumes (A9)."""

from __future__ import annotations

import io
import json
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from snoozing_env.goodput import LOST, PHASES, STATES
from snoozing_env.report.runlog import FILE_NAME, StepRecord, read
from snoozing_env.train.checkpoints import MARK, STATE_DIR, last_whole_checkpoint
from snoozing_env.train.recipe import Recipe
from snoozing_env.train.run import RunOptions, train
from tests.train.killing import run_with_kills
from tests.train.small import small_recipe

MODES: dict[str, dict[str, Any]] = {
    "sync": {},
    "double-buffer": {"engine": {"kind": "local", "own_weights": True}, "pacing": {"max_staleness": 1}},
    "bounded": {"engine": {"kind": "local", "own_weights": True}, "pacing": {"max_staleness": 3}},
    "in-flight": {
        "engine": {"kind": "local", "own_weights": True},
        "pacing": {"max_staleness": 3, "weight_updates": "in-flight"},
    },
}


def steps_of(recipe: Recipe) -> list[StepRecord]:
    return [record for record in read(recipe.directory / FILE_NAME) if isinstance(record, StepRecord)]


def run(recipe: Recipe, *, resume: bool = False) -> None:
    train(recipe, RunOptions(resume=resume), console=Console(file=io.StringIO()))


def running_totals(steps: list[StepRecord]) -> list[dict[str, float]]:
    """What the log adds up to, after each step."""

    def add(sums: dict[str, float], step: dict[str, float]) -> dict[str, float]:
        return {name: sums.get(name, 0) + step.get(name, 0) for name in sums | step}

    return list(accumulate((dict(s.goodput or {}) for s in steps), add))


def check(steps: list[StepRecord]) -> dict[str, float]:
    """The laws, at every step; returns the totals at the end."""
    for step, sums in zip(steps, running_totals(steps), strict=True):
        level = step.goodput or {}
        gone = sum(sums.get(f"tokens/lost_{family}", 0) for family in LOST)
        by_cause = sum(
            v for name, v in sums.items() if name.startswith("tokens/lost_") and name.count("/") == 2
        )
        kept = sums.get("tokens/trained", 0) + level.get("tokens/waiting", 0)
        assert sums["tokens/generated"] == kept + gone, f"step {step.step}"
        assert gone == by_cause
        wall = sum(sums.get(f"time/{phase}_s", 0) for phase in PHASES)
        assert wall == pytest.approx(step.seconds)
        assert sum(sums.get(f"engine/{state}_s", 0) for state in STATES) == pytest.approx(wall, abs=0.01)
        work = sums["work/trained_s"] + sum(sums.get(f"work/lost_{family}_s", 0) for family in LOST)
        work += level.get("work/waiting_s", 0) + level.get("work/in_flight_s", 0)
        assert work == pytest.approx(sums["engine/generating_s"], abs=1e-6)
    return running_totals(steps)[-1]


@pytest.mark.parametrize("mode", MODES)
def test_time_and_tokens_balance_at_every_step_in_every_mode(tmp_path: Path, mode: str) -> None:
    recipe = small_recipe(tmp_path, train={"steps": 5, "save_every": 2}, **MODES[mode])
    run(recipe)
    steps = steps_of(recipe)
    sums = check(steps)
    assert len(steps) == 5
    assert sums["tokens/generated"] >= sum(s.generated_tokens or 0 for s in steps), (
        "what finished meanwhile too"
    )
    assert sums["tokens/trained"] == sum(s.trained_tokens or 0 for s in steps), "no rollout was invalid"
    for spent in ("training", "waiting", "syncing", "evaluating", "saving", "starting"):
        assert sums[f"time/{spent}_s"] > 0
    last = steps[-1].goodput or {}
    assert 0 < last["goodput/time"] < 1
    assert last["goodput/time"] == pytest.approx((last["goodput/trainer"] + last["goodput/engine"]) / 2)
    assert (last["goodput/time"] <= 0.5) or mode != "sync"


@pytest.mark.parametrize("mode", ["sync", "in-flight"])
def test_a_resumed_run_goes_on_with_the_books_of_its_checkpoint(tmp_path: Path, mode: str) -> None:
    run(small_recipe(tmp_path, train={"steps": 4, "save_every": 2}, **MODES[mode]))
    before = running_totals(steps_of(small_recipe(tmp_path)))[-1]
    longer = small_recipe(tmp_path, train={"steps": 8, "save_every": 2}, **MODES[mode])
    run(longer, resume=True)
    steps = steps_of(longer)
    sums = check(steps)
    assert [s.step for s in steps] == list(range(1, 9))
    assert sums["time/starting_s"] > before["time/starting_s"], "the second start is on the books too"
    assert sums["tokens/trained"] > before["tokens/trained"]


@pytest.mark.parametrize("mode", ["sync", "in-flight"])
def test_what_a_kill_undid_is_lost_to_failures_unless_the_journal_kept_it(tmp_path: Path, mode: str) -> None:
    recipe = small_recipe(tmp_path, train={"steps": 8, "save_every": 2}, **MODES[mode])
    seconds = tokens = 0.0
    for _ in run_with_kills(recipe, kills=1, seed=6):  # at step 3 or soon after
        found = last_whole_checkpoint(tmp_path)
        assert found is not None
        logged = steps_of(recipe)
        kept = [s for s in logged if s.step <= found[1]]
        seconds = (logged[-1].seconds or 0.0) - (kept[-1].seconds or 0.0)
        tokens = sum(s.generated_tokens or 0 for s in logged[len(kept) :])
    steps = steps_of(recipe)
    sums = check(steps)
    assert [s.step for s in steps] == list(range(1, 9))
    assert sums.get("time/undone_s", 0) == pytest.approx(seconds)
    assert sums.get("tokens/lost_failures/undone", 0) == (tokens if mode == "sync" else 0)
    assert sums["tokens/trained"] == sum(s.trained_tokens or 0 for s in steps)


def test_replayed_tokens_are_counted_apart(tmp_path: Path) -> None:
    recipe = small_recipe(tmp_path, train={"steps": 6, "save_every": 6}, replay={"fresh": 0.5})
    run(recipe)
    steps = steps_of(recipe)
    sums = check(steps)
    assert sums["tokens/replayed"] > 0
    assert sums["tokens/trained"] + sums["tokens/replayed"] == sum(s.trained_tokens or 0 for s in steps)


def test_a_checkpoint_from_before_the_account_goes_on_with_one_of_its_own(tmp_path: Path) -> None:
    run(small_recipe(tmp_path, train={"steps": 2, "save_every": 2}))
    mark = tmp_path / "checkpoint-2" / STATE_DIR / MARK
    state = json.loads(mark.read_text())
    del state["account"]
    mark.write_text(json.dumps(state))
    longer = small_recipe(tmp_path, train={"steps": 4, "save_every": 2})
    run(longer, resume=True)
    steps = steps_of(longer)
    assert [s.step for s in steps] == [1, 2, 3, 4]
    assert (steps[2].seconds or 0) > (steps[1].seconds or 0) > 0
    after = running_totals(steps[2:])[-1]
    assert after["tokens/generated"] == after["tokens/trained"] + after.get(
        "tokens/lost_filters", 0
    ) + after.get("tokens/lost_staleness", 0) + (steps[-1].goodput or {}).get("tokens/waiting", 0)
