"""`auto` and the conflict monitor on seed S0's figure 4 and on a standalone set (must-show 3 and 4)."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from snoozing_env.sim.presets import ARM_SETS
from tests.sim.sides import Watched, run, standalone

READ: dict[str, Callable[[Watched], float]] = {
    "dip": lambda run: run.dip,
    "updates_below": lambda run: run.long,
    "late_rate": lambda run: run.late,
    "groups": lambda run: run.generated,
    "alarms": lambda run: run.alarms,
}


def figures(quick: bool) -> dict[str, Any]:
    """Per arm: dip of the answerable side, updates it spent more than .1 below its best, its mean rate over the second
    half, groups generated and alarms; then where `auto` settled. Mean, lowest and highest over the seeds."""
    seeds = range(300, 301) if quick else range(300, 310)
    arms = [arm for arm in ARM_SETS["conflict"] if not quick or arm.startswith(("permanent", "snooze 5"))]
    hidden = () if quick else ("permanent", "permanent, watched")
    return {
        "seeds": len(seeds),
        "figure_4": {arm: _arm("conflict", arm, seeds) for arm in arms},
        "hidden_in_one_dataset": {arm: _arm("hidden", arm, seeds) for arm in hidden},
        "auto_settles_at": _auto(seeds),
    }


def _arm(learner: str, arm: str, seeds: Sequence[int]) -> dict[str, list[float]]:
    runs = [run(learner, arm, seed) for seed in seeds]
    return {name: _spread([read(found) for found in runs]) for name, read in READ.items()}


def _auto(seeds: Sequence[int]) -> dict[str, Any]:
    """Mean N over the last quarter of each run."""
    alone = np.array([_late(run("conflict", "auto", seed)) for seed in seeds])
    watched = np.array([_late(run("conflict", "auto, watched", seed)) for seed in seeds])
    free = np.array([_late(standalone(seed)) for seed in seeds])
    return {
        "conflict, answerable": _spread(alone[:, 0]),
        "conflict, unanswerable": _spread(alone[:, 1]),
        "conflict, watched": _spread(watched.max(axis=1)),
        "standalone": _spread(free[:, 0]),
        "watched_at_most_2": f"{(watched.max(axis=1) <= 2).sum()} of {len(seeds)}",
        "watched_at_most_2_rounded": f"{(np.rint(watched.max(axis=1)) <= 2).sum()} of {len(seeds)}",
        "standalone_over_5": f"{(free[:, 0] > 5).sum()} of {len(seeds)}",
    }


def _late(found: Watched) -> np.ndarray:
    return found.factor_S_C[-len(found.factor_S_C) // 4 :].mean(axis=0)


def _spread(values: Any) -> list[float]:
    """Mean, lowest, highest."""
    return [round(float(f(values)), 3) for f in (np.mean, np.min, np.max)]


if __name__ == "__main__":
    print(json.dumps(figures(quick=False)))
