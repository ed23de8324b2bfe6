"""The lab policy learns to write programs: rewards of a synchronous run whose every reply is executed in a container.

Must-show 5 of the sandbox milestone: `code_lab.toml` as it ships.
"""

from __future__ import annotations

import io
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from snoozing_env.train.recipe import load_recipe
from snoozing_env.train.run import RunOptions, train
from tests.conftest import engine_missing

_WINDOW = 10


def figures(quick: bool) -> dict[str, Any]:
    """Mean training reward of the first and the last ten steps, held-out accuracy before and after, seconds."""
    if engine_missing():
        return {"skipped": engine_missing()}
    with tempfile.TemporaryDirectory() as folder:
        words = ["@", "code_lab.toml", "--output", folder]
        if quick:  # a look that it runs, not a figure
            words += ["--train.steps", "6", "--policy.lab.warmup", '{"steps": 60}']
        recipe = load_recipe(words)
        started, cpu = time.monotonic(), time.process_time()
        train(recipe, RunOptions(overwrite=True), console=Console(file=io.StringIO()))
        lines = (Path(folder) / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
        seconds, cpu_s = time.monotonic() - started, time.process_time() - cpu
    return {
        **_curve([json.loads(line) for line in lines]),
        "wall_s": round(seconds, 1),
        "cpu_s": round(cpu_s, 1),
    }


def _curve(records: list[dict[str, Any]]) -> dict[str, Any]:
    steps = [r for r in records if "reward_mean" in r]
    rewards = [r["reward_mean"] for r in steps]
    accuracies = [round(r["accuracy"], 3) for r in records if "accuracy" in r]
    slope = float(np.polyfit(range(len(rewards)), rewards, 1)[0])
    return {
        "steps": len(steps),
        "reward_first_10": round(float(np.mean(rewards[:_WINDOW])), 3),
        "reward_last_10": round(float(np.mean(rewards[-_WINDOW:])), 3),
        "reward_slope_per_10_steps": round(10 * slope, 3),
        "held_out_accuracy": accuracies,
        "programs_run": sum(r["generated_groups"] for r in steps) * 8,
    }
