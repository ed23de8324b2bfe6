"""A policy that learns grounded QA in `bare` style under a permanent filter and under N = 2, both sides by step (must-show 7).

The recipe decides everything; its report draws the same figures as one chart, "Both sides".
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

from rich.console import Console

from snoozing_env.report.compare import Run, load_runs
from snoozing_env.train.arms import train_arms
from snoozing_env.train.recipe import load_recipe

RECIPE = "groundedqa_conflict.toml"


def figures(quick: bool) -> dict[str, Any]:
    """Per arm: held-out accuracy of both sides at every evaluation, and what its batches cost."""
    words = ["@", RECIPE, *(["--train.steps", "10"] if quick else [])]
    recipe = load_recipe(words)
    report = train_arms(recipe, [*words, "--overwrite"], console=Console(file=io.StringIO()))
    runs = dict(zip(recipe.arms, load_runs([recipe.directory / arm for arm in recipe.arms]), strict=True))
    return {
        **{arm: _arm(run) for arm, run in runs.items()},
        "plot": f"{report}, section 'Both sides'",
    }


def _arm(run: Run) -> dict[str, Any]:
    sides = sorted({side for record in run.evals for side in record.by_side or {}})
    curves = {side: [round((record.by_side or {})[side], 3) for record in run.evals] for side in sides}
    return {
        "step": [record.step for record in run.evals],
        **curves,
        **{f"{side}: best, lowest after it, last": _fall(curve) for side, curve in curves.items()},
        "generated per trained group": _cost(run),
    }


def _fall(curve: Sequence[float]) -> list[float]:
    """How far a side fell from its best evaluation."""
    best = max(curve)
    return [best, min(curve[curve.index(best) :]), curve[-1]]


def _cost(run: Run) -> float | None:
    generated, trained = run.total("generated_groups"), run.total("trained_groups")
    return round(generated / trained, 2) if generated and trained else None
