"""SIGKILL at random points of a run, resumed each time, against the run that was left alone (must-show 5)."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from tests.train.killing import differences, run_to_the_end, run_with_kills, trail_of
from tests.train.small import small_recipe


def figures(quick: bool) -> dict[str, Any]:
    """Kills survived and what differed afterwards (nothing, if all is well)."""
    kills, steps = (1, 8) if quick else (20, 48)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["SNOOZE_CACHE"] = str(Path(folder) / "cache")
        train = {"steps": steps, "save_every": 1 if quick else 2}
        whole = small_recipe(Path(folder) / "whole", train=train)
        killed = small_recipe(Path(folder) / "killed", train=train)
        run_to_the_end(whole)
        at = list(run_with_kills(killed, kills=kills, seed=0))
        return {
            "kills": len(at),
            "killed_after_step": at,
            "steps": steps,
            "differences": differences(trail_of(whole), trail_of(killed)),
            "compared": "trained tasks and generated groups per step, every scheduler column and generator, weights",
        }


if __name__ == "__main__":
    print(json.dumps(figures(quick=True)))
