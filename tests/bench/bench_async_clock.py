"""The bound over thousands of schedules, and throughput under long tails, on a clock that jumps (must-show 1 and 3).

The loop is the real one; engine and trainer are simulated (tests/rollout/async_world.py) and called so.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from snoozing_env.pacing import PacingConfig, Planner, TailConfig
from snoozing_env.pacing.ledger import audit
from tests.rollout import async_world
from tests.rollout.async_world import History, World, play, random_pacing, random_world

LONG_TAIL = 25.0
"""The slowest fifth takes 25 times the median (seed S4)."""


def figures(quick: bool) -> dict[str, Any]:
    """Both parts; quick plays a few of the schedules."""
    return {"1": schedules(200 if quick else 10_000), "3": throughput(30 if quick else 300)}


def schedules(n: int) -> dict[str, Any]:
    """Random schedules with failures, deadlines, spares, tail batching, exact shares, updates and kills; and the same
    with an off-by-one planted in the bound."""
    worst, totals = 0, Counter[str]()
    bad: list[int] = []
    for seed in range(n):
        config = random_pacing(seed)
        history = play(config, random_world(seed), steps=8)
        worst = max(worst, max(history.lags, default=0) - config.bound)
        totals.update({name: getattr(history, name) for name in COUNTED})
        if audit(history.events, bound=config.bound) or history.leaked or history.unbalanced:
            bad.append(seed)
    return {
        "schedules": n,
        **totals,
        "schedules_with_a_problem": len(bad),
        "largest_lag_minus_bound": worst,
        "off_by_one_found": _planted(min(n, 500)),
    }


COUNTED = (
    "kills",
    "saturated",
    "cancelled_late",
    "cancelled_spare",
    "partial",
    "parked",
    "places",
    "misplaced",
)


def _planted(n: int) -> str:
    late = 0
    real, async_world.Planner = async_world.Planner, _OffByOne
    try:
        for seed in range(n):
            config = random_pacing(seed)
            late += bool(audit(play(config, random_world(seed), steps=8).events, bound=config.bound))
    finally:
        async_world.Planner = real
    return f"in {late} of {n} schedules"


class _OffByOne(Planner):
    def lag(self, group: Any) -> int:
        return super().lag(group) - 1


def throughput(steps: int) -> dict[str, Any]:
    """Steps per unit of time of each mode at equal work, and dropped shares by quartile of duration."""
    tail = TailConfig()
    modes = {
        "sync": PacingConfig(max_running=64),
        "sync, tail batching": PacingConfig(max_running=64, tail=tail),
        "double-buffer": PacingConfig(max_staleness=1, max_running=64),
        "double-buffer, tail batching": PacingConfig(max_staleness=1, max_running=64, tail=tail),
        "bounded K=8": PacingConfig(max_staleness=8, max_running=64),
        "in-flight K=8": PacingConfig(max_staleness=8, weight_updates="in-flight", max_running=64),
        "naive drop-when-old K=8": PacingConfig(max_staleness=8, stragglers="let-go", max_running=64),
    }
    played = {name: play(config, _long_tailed(), steps=steps) for name, config in modes.items()}
    known = "sync, tail batching, durations known"
    played[known] = play(modes["sync, tail batching"], replace(_long_tailed(), known=True), steps=steps)
    rate = {name: steps / history.seconds for name, history in played.items()}
    return {
        "throughput_over_sync": {name: round(r / rate["sync"], 2) for name, r in rate.items()},
        "dropped_by_duration_quartile": {name: _quartiles(history) for name, history in played.items()},
        "largest_lag": {name: max(history.lags) for name, history in played.items()},
        "slow_fifth_of_trained": {name: _slow_share(history) for name, history in played.items()},
    }


def _turns(task: int) -> float:
    """Three fifths around one turn, a fifth around three, and a slow fifth at 25 times the median."""
    jitter = float(np.random.default_rng(task).uniform(0.8, 1.2))
    return jitter * (LONG_TAIL if task % 5 == 0 else 1.0)


def _long_tailed() -> World:
    return World(turns=_turns, train_s=1.0, batch=8, n=400)


def _slow_share(history: History) -> float:
    slow = sum(n for task, n in history.trained.items() if task % 5 == 0)
    return round(slow / history.trained.total(), 3)


def _quartiles(history: History) -> list[float]:
    """Dropped share of the finished groups, in percent, by quartile of the tasks' durations, short ones first."""
    tasks = np.array(sorted(history.started))
    order = tasks[np.argsort([_turns(int(t)) for t in tasks], kind="stable")]
    return [_share(history, part.tolist()) for part in np.array_split(order, 4)]


def _share(history: History, tasks: list[int]) -> float:
    def total(of: Mapping[int, int]) -> int:
        return sum(of.get(task, 0) for task in tasks)

    return round(100.0 * total(history.dropped) / max(total(history.started), 1), 2)


if __name__ == "__main__":
    print(json.dumps(figures(quick=True)))
