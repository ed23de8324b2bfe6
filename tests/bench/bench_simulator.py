"""Seed S0's figures 3 and 4 in the simulator (must-show 3)."""

from __future__ import annotations

import json
import time
from itertools import pairwise
from typing import Any

import numpy as np

from snoozing_env.schedulers import build_scheduler
from snoozing_env.sim.learner import Learner
from snoozing_env.sim.presets import PRESETS
from snoozing_env.sim.run import LoopConfig, simulate
from tests.sim.figures import ARMS, SHARES, STEPS, answerable, hard_share, hard_shares


def figures(quick: bool) -> dict[str, Any]:
    """Figures 3 and 4, and the simulator's own speed."""
    seeds = range(100, 103) if quick else range(100, 120)
    return {
        "seeds": len(seeds),
        "figure_3": _figure_3(seeds),
        "figure_4": _figure_4(seeds),
        "groups_per_cpu_second": _speed(),
    }


def _figure_3(seeds: range) -> dict[str, Any]:
    """Share of the hard subset, both weighted equally, in the first and in the last tenth of the batches; and in how
    many batches the shares were exact."""
    tenth = STEPS // 10
    found = {name: np.array([hard_shares(name, seed) for seed in seeds]) for name in SHARES}
    figures: dict[str, Any] = {
        name: {
            "first": _spread(shares[:, :tenth].mean(axis=1)),
            "last": _spread(shares[:, -tenth:].mean(axis=1)),
            "exact_batches": f"{(shares == 0.5).sum()} of {shares.size}",
        }
        for name, shares in found.items()
    }
    snoozing = np.array([hard_share("N=5", seed) for seed in seeds])
    return {**figures, "no mixture, N=5": {"first": _spread(snoozing[:, 0]), "last": _spread(snoozing[:, 1])}}


def _figure_4(seeds: range) -> dict[str, Any]:
    found = {arm: [answerable(arm, seed) for seed in seeds] for arm in ARMS}
    dips = np.array([[row["dip"] for row in rows] for rows in found.values()])
    ordered = int(sum(all(a < b for a, b in pairwise(column)) for column in dips.T))
    arms = {
        arm: {name: _spread([row[name] for row in rows]) for name in ("dip", "recovered", "late", "last")}
        for arm, rows in found.items()
    }
    return {"seeds": len(seeds), "seeds_in_order": ordered, **arms}


def _speed() -> int:
    world = Learner(PRESETS["standalone"], 0)
    started = time.process_time()
    trace = simulate(
        world, build_scheduler({"snooze": {"mode": "off"}}, world.tasks, 0), LoopConfig(steps=150)
    )
    return round(sum(step.generated for step in trace.steps) / (time.process_time() - started))


def _spread(values: Any) -> list[float]:
    """Mean, lowest, highest."""
    return [round(float(f(values)), 3) for f in (np.mean, np.min, np.max)]


if __name__ == "__main__":
    print(json.dumps(figures(quick=True)))
