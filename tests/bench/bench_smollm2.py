"""SmolLM2-135M-Instruct on MAWPS and SVAMP through a real vLLM server (must-show 4)."""

from __future__ import annotations

import io
import json
import tempfile
from pathlib import Path
from typing import Any

from rich.console import Console

from snoozing_env.report.compare import load_runs
from snoozing_env.train.recipe import load_recipe
from snoozing_env.train.run import RunOptions, train

MATH = Path(__file__).parents[3] / "shared" / "data" / "math"


def figures(quick: bool) -> dict[str, Any]:
    """Held-out accuracy before and after with 95 % intervals, whatever it is."""
    if not MATH.exists():
        return {"skipped": "the MAWPS and SVAMP files are not beside this checkout (../shared/data/math)"}
    paths = {"mawps": str(MATH / "mawps.jsonl"), "svamp": str(MATH / "svamp.jsonl")}
    with tempfile.TemporaryDirectory() as folder:
        words = ["@", "smollm2_mawps.toml", "--output", f"{folder}/run"]
        recipe = load_recipe(words)
        taskset = {**recipe.environment.taskset, "paths": paths}
        words += ["--environment.taskset", json.dumps(taskset)]
        recipe = load_recipe(words)
        train(recipe, RunOptions(), console=Console(file=io.StringIO()))
        (run,) = load_runs([recipe.directory])
        first, last = run.evals[0], run.evals[-1]
        return {
            "steps": len(run.steps),
            "held_out_tasks": last.n_tasks,
            "accuracy_before": [round(x, 4) for x in (first.accuracy, first.low or 0, first.high or 0)],
            "accuracy_after": [round(x, 4) for x in (last.accuracy, last.low or 0, last.high or 0)],
            "generated_groups": run.total("generated_groups"),
            "trained_groups": run.total("trained_groups"),
            "seconds_per_step": round(
                sum((s.seconds_rollout or 0) + (s.seconds_train or 0) for s in run.steps) / len(run.steps), 1
            ),
            "samples_in_report": len(last.samples or ()),
        }
