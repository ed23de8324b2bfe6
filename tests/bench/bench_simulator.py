"""The simulator against theory and against seed S0's figures (must-show 2, 3 and 10 as far as they need no mixture)."""

from __future__ import annotations

import json
import time
from itertools import pairwise
from typing import Any

import numpy as np

from snoozing_env.schedulers import build_scheduler
from snoozing_env.sim.learner import Learner
from snoozing_env.sim.presets import PRESETS
from snoozing_env.sim.run import LoopConfig, Trace, simulate
from tests.core.appearances import Z12
from tests.sim.figures import ARMS, answerable, hard_share
from tests.sim.frozen import gain

SELECTORS: dict[str, dict[str, Any]] = {
    "plain": {"snooze": {"mode": "off"}},
    "snooze 5": {"snooze": {"skip_passes": 5}},
    "learnability": {"kind": "learnability", "snooze": {"mode": "off"}},
    "band": {"kind": "band", "snooze": {"mode": "off"}},
    "thompson": {"kind": "thompson", "snooze": {"mode": "off"}},
    "prioritized": {"kind": "prioritized", "snooze": {"mode": "off"}},
    "lze": {"kind": "lze", "snooze": {"mode": "off"}},
    "progress": {"kind": "progress", "snooze": {"mode": "off"}},
}
"""`learnability` is group-informative with its floor: with dynamic sampling, the one to beat (must-show 10)."""


def figures(quick: bool) -> dict[str, Any]:
    """Z12 through the loop, figures 3 and 4, selectors at equal generated groups, and the simulator's own speed."""
    seeds = range(100, 105) if quick else range(100, 120)
    return {
        "z12": _z12(quick),
        "figure_3": _figure_3(seeds),
        "figure_4": _figure_4(seeds),
        "selectors_at_equal_groups": _selectors(range(200, 202) if quick else range(200, 205)),
        "groups_per_cpu_second": _speed(),
    }


def _z12(quick: bool) -> dict[str, Any]:
    rows = [row for row in Z12 if row[0] <= (12 if quick else 600)]
    gains = {f"{p} passes, {s}": (gain(p, dict(s)), wanted) for p, s, wanted in rows}
    return {
        "gains": {name: round(got, 3) for name, (got, _) in gains.items()},
        "max_relative_error": round(max(abs(got / wanted - 1) for got, wanted in gains.values()), 4),
    }


def _figure_3(seeds: range) -> dict[str, Any]:
    """Share of the hard subset in the first and the last tenth of the batches, equal weights before filtering."""
    shares = {arm: np.array([hard_share(arm, seed) for seed in seeds]) for arm in ("plain", "N=5")}
    return {
        arm: {"first": _spread(found[:, 0]), "last": _spread(found[:, 1])} for arm, found in shares.items()
    }


def _figure_4(seeds: range) -> dict[str, Any]:
    found = {arm: [answerable(arm, seed) for seed in seeds] for arm in ARMS}
    dips = np.array([[row["dip"] for row in rows] for rows in found.values()])
    ordered = int(sum(all(a < b for a, b in pairwise(column)) for column in dips.T))
    arms = {
        arm: {name: _spread([row[name] for row in rows]) for name in ("dip", "recovered", "late", "last")}
        for arm, rows in found.items()
    }
    return {"seeds": len(seeds), "seeds_in_order": ordered, **arms}


def _selectors(seeds: range) -> dict[str, Any]:
    """Mean latent pass rate per learner when every selector has generated as many groups as the thriftiest did."""
    table: dict[str, Any] = {}
    for learner in PRESETS:
        rates: dict[str, list[float]] = {name: [] for name in SELECTORS}
        for seed in seeds:
            traces = {name: _trained(learner, name, seed) for name in SELECTORS}
            budget = min(sum(step.generated for step in t.steps) for t in traces.values())
            for name, trace in traces.items():
                rates[name].append(_rate_at(trace, budget))
        table[learner] = {name: _spread(found) for name, found in rates.items()}
    return table


def _trained(learner: str, selector: str, seed: int) -> Trace:
    world = Learner(PRESETS[learner], seed)
    return simulate(world, build_scheduler(SELECTORS[selector], world.tasks, seed), LoopConfig(steps=150))


def _rate_at(trace: Trace, generated: int) -> float:
    made = np.cumsum([0, *(step.generated for step in trace.steps)])
    return float(np.interp(generated, made, [trace.first_rate, *(step.rate for step in trace.steps)]))


def _speed() -> int:
    started = time.process_time()
    trace = _trained("standalone", "plain", 0)
    return round(sum(step.generated for step in trace.steps) / (time.process_time() - started))


def _spread(values: Any) -> list[float]:
    """Mean, lowest, highest."""
    return [round(float(f(values)), 3) for f in (np.mean, np.min, np.max)]


if __name__ == "__main__":
    print(json.dumps(figures(quick=True)))
