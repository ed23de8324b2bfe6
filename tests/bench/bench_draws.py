"""CPU time of draws, observations, saving and loading against the number of tasks (must-show 6).

The pool is as a long run leaves it: every posterior different, a quarter of the tasks asleep, last visits spread
over a thousand policy versions. Medians of 20, process time, one thread.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from snoozing_env import GroupOutcome, TaskInfo, build_scheduler
from snoozing_env.schedulers import Curriculum
from snoozing_env.schedulers.source import Selection
from snoozing_env.schedulers.state import load_snapshot, save_snapshot

REPEATS, G, VERSIONS = 20, 8, 1000
LARGE, SMALL = 10**6, 2000
BUDGET_MS: dict[str, float] = {
    "uniform": 15,
    "band": 30,
    "thompson": 30,
    "thompson over all": 150,
    "learnability": 30,
    "lze": 30,
    "prioritized": 30,
    "progress": 30,
    "staged": 30,
}
"""Most CPU time of draw(512) at 10^6 tasks."""
QUICK = ("uniform", "band", "thompson", "thompson over all", "learnability", "lze")
"""Kinds that the milestone sets a budget for."""


def figures(quick: bool) -> dict[str, Any]:
    """At 10^6 and 2,000 tasks; all kinds and the whole curve unless quick."""
    names = QUICK if quick else tuple(BUDGET_MS)
    large_pool, small_pool = _tasks(LARGE), _tasks(SMALL)
    large = {name: _measure(name, large_pool, 512) for name in names}
    small = {name: _measure(name, small_pool, 64) for name in names}
    found: dict[str, Any] = {
        "draw_512_ms_at_1e6": {name: row["draw_ms"] for name, row in large.items()},
        "within_budget": {name: row["draw_ms"] <= BUDGET_MS[name] for name, row in large.items()},
        "observe_512_ms_at_1e6": {name: row["observe_ms"] for name, row in large.items()},
        "state_bytes_per_task": {name: row["bytes"] for name, row in large.items()},
        "draw_64_ms_at_2000": {name: row["draw_ms"] for name, row in small.items()},
        "reference_draw_64_ms_at_2000": _reference_ms(),
        "save_load_s_at_1e6": _save_and_load("lze", large_pool),
    }
    if not quick:
        found["draw_512_ms_against_n"] = _curve(("uniform", "band", "thompson"))
    return found


def _curve(names: Sequence[str]) -> dict[str, dict[str, float]]:
    """Draw times by number of tasks, 10^3 to 10^7."""
    curve: dict[str, dict[str, float]] = {name: {} for name in names}
    for exponent in range(3, 8):
        tasks = _tasks(10**exponent)
        for name in names:
            curve[name][f"1e{exponent}"] = _measure(name, tasks, 512)["draw_ms"]
    return curve


def _tasks(n: int) -> list[TaskInfo]:
    return [TaskInfo(key=str(i)) for i in range(n)]


def _config(name: str) -> Mapping[str, Any]:
    if name == "thompson over all":
        return {"kind": "thompson", "shortlist": 0}
    return {"kind": name, "inner": {"kind": "band"}} if name == "staged" else {"kind": name}


def _seasoned(name: str, tasks: Sequence[TaskInfo]) -> Curriculum:
    """A scheduler whose columns look like those of a long run."""
    scheduler = build_scheduler(_config(name), tasks, 0)
    rng, n = np.random.default_rng(1), len(tasks)
    rate, weight = rng.random(n), rng.uniform(4, 80, n)
    difficulty = scheduler.difficulty
    difficulty.successes_N[:] = 1 + rate * weight
    difficulty.failures_N[:] = 1 + (1 - rate) * weight
    difficulty.visits_N[:] = rng.integers(1, 9, n)
    sleepers = rng.random(n) < 0.25
    scheduler.snooze.wake_pass_N[sleepers] = 5
    scheduler.snooze.slept_at_N[sleepers] = 1 + np.arange(int(sleepers.sum()))
    if isinstance(scheduler.source, Selection):
        columns = {"seen": VERSIONS * 0.999, "progress_step": 0.1, "lze_first": 1.0, "lze_momentum": 0.5}
        for column, top in columns.items():
            if column in (live := scheduler.snapshot().columns):
                live[column][:] = (rng.random(n) * top).astype(live[column].dtype)
    return scheduler


def _measure(name: str, tasks: Sequence[TaskInfo], batch: int) -> dict[str, float]:
    scheduler, rng = _seasoned(name, tasks), np.random.default_rng(2)
    batch = min(batch, len(tasks) // 4)
    draws: list[float] = []
    observations: list[float] = []
    for version in range(VERSIONS, VERSIONS + REPEATS + 1):
        started = time.process_time()
        drawn = scheduler.draw(batch)
        draws.append(time.process_time() - started)
        outcomes = [
            GroupOutcome(task=int(t), rewards_G=rng.random(G) < 0.6, version=version, tokens=G) for t in drawn
        ]
        started = time.process_time()
        scheduler.observe_many(outcomes)
        observations.append(time.process_time() - started)
    columns = scheduler.snapshot().columns.values()
    return {
        "draw_ms": _median_ms(draws[1:]),
        "observe_ms": _median_ms(observations[1:]),
        "bytes": sum(c.nbytes for c in columns) / len(tasks),
    }


def _save_and_load(name: str, tasks: Sequence[TaskInfo]) -> dict[str, float]:
    scheduler = _seasoned(name, tasks)
    twin = build_scheduler(_config(name), tasks, 1)
    with tempfile.TemporaryDirectory() as folder:
        saved = _cpu_s(lambda: save_snapshot(scheduler.snapshot(), Path(folder)))
        loaded = _cpu_s(lambda: twin.restore(load_snapshot(Path(folder))))
        size = sum(f.stat().st_size for f in Path(folder).iterdir())
    return {
        "save": round(saved, 3),
        "load": round(loaded, 3),
        "bytes_on_disk_per_task": round(size / len(tasks), 1),
    }


def _reference_ms() -> float:
    """The chapter's selector as it is printed, an object per task and a sort, over 2,000 tasks."""
    rng = np.random.default_rng(0)
    counts = [(float(a), float(b)) for a, b in rng.uniform(1, 40, (SMALL, 2))]

    def select() -> list[int]:
        scored = [(-abs(rng.beta(s, f) - 0.5), i) for i, (s, f) in enumerate(counts)]
        return [i for _, i in sorted(scored, reverse=True)[:64]]

    return _median_ms([_cpu_s(select) for _ in range(REPEATS)])


def _cpu_s(act: Callable[[], object]) -> float:
    started = time.process_time()
    act()
    return time.process_time() - started


def _median_ms(seconds: Sequence[float]) -> float:
    return round(1e3 * float(np.median(seconds)), 3)


if __name__ == "__main__":
    print(json.dumps(figures(quick=True)))
