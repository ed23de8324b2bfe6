"""Plain dynamic sampling beside snoozing at the same seed, as `make demo` runs them (must-show 1)."""

from __future__ import annotations

import io
import tempfile
from pathlib import Path
from typing import Any

from rich.console import Console

from snoozing_env.report.compare import load_runs, versus
from snoozing_env.train.arms import train_arms
from snoozing_env.train.recipe import load_recipe


def figures(quick: bool) -> dict[str, Any]:
    """Per seed: generated groups of both arms at equal trained groups, their ratio, final held-out accuracies."""
    seeds = (0,) if quick else (0, 1, 2)
    rows = {f"seed {seed}": _compare(seed, quick) for seed in seeds}
    ratios = [row["generated_ratio"] for row in rows.values()]
    gaps = [row["accuracy_gap_points"] for row in rows.values()]
    return {
        **rows,
        "generated_ratio_max": max(ratios),
        "accuracy_gap_points_mean": round(sum(gaps) / len(gaps), 2),
        "steps": next(iter(rows.values()))["steps"],
    }


def _compare(seed: int, quick: bool) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        words = ["@", "demo.toml", "--seed", str(seed), "--output", folder]
        if quick:
            words += ["--train.steps", "12", "--evaluation.every", "12"]
        recipe = load_recipe(words)
        train_arms(recipe, [*words, "--overwrite"], console=Console(file=io.StringIO()))
        plain, snooze = load_runs([Path(folder) / "plain", Path(folder) / "snooze"])
        ratio = versus(snooze, plain)
        assert ratio is not None
        before, after = snooze.evals[0].accuracy, snooze.evals[-1].accuracy
        return {
            "plain_generated": plain.total("generated_groups"),
            "snooze_generated": snooze.total("generated_groups"),
            "trained_groups": snooze.total("trained_groups"),
            "generated_ratio": round(ratio, 3),
            "accuracy_before": round(before, 4),
            "plain_accuracy": round(plain.evals[-1].accuracy, 4),
            "snooze_accuracy": round(after, 4),
            "accuracy_gap_points": round(100 * (after - plain.evals[-1].accuracy), 2),
            "steps": recipe.train.steps,
        }
