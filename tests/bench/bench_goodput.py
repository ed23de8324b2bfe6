"""Where time and tokens go in a synchronous run and in a bounded one, side by side (requirement A9).

The lab policy trains in this process and so does its engine: both sides share the cores, and overlap can win only the
time in which one of them waits for something else than a core.
"""

from __future__ import annotations

import io
import json
import tempfile
from pathlib import Path
from typing import Any

from rich.console import Console

from snoozing_env.goodput import LOST, PHASES
from snoozing_env.report.compare import Run, load_runs
from snoozing_env.report.goodput import lines, totals
from snoozing_env.train.run import RunOptions, train
from tests.train.small import LEVELS, small_recipe

MODES: dict[str, dict[str, Any]] = {
    "sync": {},
    "bounded K=4": {"engine": {"kind": "local", "own_weights": True}, "pacing": {"max_staleness": 4}},
}


def figures(quick: bool) -> dict[str, Any]:
    """Shares of each mode by measure, and how far its books are from adding up."""
    steps = 3 if quick else 40
    with tempfile.TemporaryDirectory() as folder:
        runs = [_run(Path(folder) / mode, steps, changes) for mode, changes in MODES.items()]
    found: dict[str, Any] = {
        line.title: dict(zip(MODES, (_plain(cell) for cell in line.cells), strict=True))
        for line in lines(runs)
    }
    found["seconds that phases do not add up to"] = dict(zip(MODES, map(_unexplained, runs), strict=True))
    found["tokens that are nowhere"] = dict(zip(MODES, map(_nowhere, runs), strict=True))
    return found


def _run(folder: Path, steps: int, changes: dict[str, Any]) -> Run:
    recipe = small_recipe(
        folder,
        environment={"taskset": {**LEVELS, "levels": [2, 3, 4], "split": "train"}},
        train={"steps": steps, "save_every": steps},
        evaluation={"every": steps},
        **changes,
    )
    train(recipe, RunOptions(), console=Console(file=io.StringIO()))
    return load_runs([folder])[0]


def _unexplained(run: Run) -> float:
    found = totals(run)
    return round(abs((run.steps[-1].seconds or 0.0) - sum(found.get(f"time/{p}_s", 0.0) for p in PHASES)), 6)


def _nowhere(run: Run) -> float:
    """At the worst step."""
    generated = kept = worst = 0.0
    for step in run.steps:
        account = step.goodput or {}
        generated += account.get("tokens/generated", 0)
        kept += account.get("tokens/trained", 0) + sum(account.get(f"tokens/lost_{f}", 0) for f in LOST)
        worst = max(worst, abs(generated - kept - account.get("tokens/waiting", 0)))
    return worst


def _plain(cell: str) -> str:
    return cell.replace("\u202f", " ")


if __name__ == "__main__":
    print(json.dumps(figures(quick=True), ensure_ascii=False, indent=1))
