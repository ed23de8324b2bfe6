"""SIGKILL at fifty random moments of asynchronous runs: trainer, loop alone, engine processes (must-show 8).

    in-process engine        24 kills of the trainer, 6 of the loop's thread alone     a resume after each
    two engine processes     17 kills of an engine, 3 of the trainer                   an engine's death resumes nothing

Each run has replay and success buffers on and a bound of 4. Half of the kills come at any moment, the others while a
checkpoint is written, an evaluation runs, weights are handed over, or the process starts. Afterwards the run is told to
stop by SIGTERM, resumed once more and does six steps to its end. After every kill the ledger is audited and what waits
is read. The control throws a journal away, which the audit must notice.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import tempfile
from pathlib import Path
from typing import Any

from snoozing_env.train.async_supply import JOURNALS
from snoozing_env.train.recipe import Recipe
from tests.train.async_kills import Casualty, Killer, Moment, Victim, books_of, engine_returns, figures_of
from tests.train.lab_engine import program
from tests.train.small import small_recipe

BOUND = 4
MOMENTS: tuple[Moment, ...] = ("any", "saving", "any", "evaluating", "any", "start-up")


def figures(quick: bool) -> dict[str, Any]:
    """Kills by victim and by the moment they met, what was wrong after any of them, and the books at the end."""
    with tempfile.TemporaryDirectory(prefix="bench-kills-") as folder:
        root = Path(folder)
        os.environ["SNOOZE_CACHE"] = str(root / "cache")
        recipe = in_process(root / "local")
        if quick:
            short = recipe.train.model_copy(update={"steps": 8})
            killer = Killer(recipe.model_copy(update={"train": short}), seed=0)
            toll = killer.run([Casualty("trainer", "saving")], more_steps=0)
            return figures_of(killer.recipe, toll)
        local = killed(recipe, [*planned("trainer", 24), *planned("loop", 6)], seed=0)
        served = killed(two_engines(root / "served"), served_plan(), seed=1)
        both = (local, served)
        return {
            "kills": sum(sum(run["kills"].values()) for run in both),
            "problems": sum(len(run["problems"]) for run in both),
            "in-process engine": local,
            "two engine processes": served,
            "control, a journal thrown away": control(root / "control"),
        }


def killed(recipe: Recipe, plan: list[Casualty], *, seed: int) -> dict[str, Any]:
    random.Random(seed).shuffle(plan)
    killer = Killer(recipe, seed=seed)
    toll = killer.run(plan)
    return figures_of(killer.recipe, toll) | {"engines back": engine_returns(recipe)}


def planned(victim: Victim, n: int) -> list[Casualty]:
    moments = MOMENTS if victim == "trainer" else MOMENTS[:-1]  # at the start there is no loop yet
    return [Casualty(victim, moments[i % len(moments)]) for i in range(n)]


def served_plan() -> list[Casualty]:
    moments: tuple[Moment, ...] = ("any", "sync", "any", "evaluating", "saving")
    engines = [Casualty("engine", moments[i % len(moments)]) for i in range(17)]
    return [*engines, *(Casualty("trainer", moment) for moment in ("sync", "any", "start-up"))]


def control(folder: Path) -> str:
    """A run whose journal is gone at its resume: how many problems the audit then has."""
    recipe = in_process(folder)
    killer = Killer(recipe, seed=3)
    killer.between = lambda: shutil.rmtree(recipe.directory / JOURNALS)
    killer.run([Casualty("trainer", "any")])
    return f"{len(books_of(recipe))} problems found"


def in_process(folder: Path) -> Recipe:
    return _recipe(folder, engine={"kind": "local", "own_weights": True})


def two_engines(folder: Path) -> Recipe:
    folder.mkdir(parents=True)
    server = {
        "executable": program(folder),
        "replicas": 2,
        "restarts": 100,
        "log": str(folder / "server.log"),
    }
    return _recipe(
        folder,
        engine={"kind": "vllm", "model": "policy"},
        server=server,
        weights={"kind": "dir", "path": str(folder / "weights")},
    )


def _recipe(folder: Path, **changes: Any) -> Recipe:
    """A run without end: steps of four groups, about one of them replayed."""
    warmup = {"steps": 60, "batch": 64}
    return small_recipe(
        folder / "run",
        policy={"lab": {"hidden_size": 64, "layers": 2, "heads": 2, "kv_heads": 2, "warmup": warmup}},
        pacing={"max_staleness": BOUND, "weight_updates": "in-flight"},
        replay={"fresh": 0.7},
        success={"hard_below": 0.9},
        train={"steps": 100_000, "save_every": 2, "learning_rate": 3e-5},
        **changes,
    )


if __name__ == "__main__":
    print(json.dumps(figures(quick=True)))
