"""CPU time of draws, observations, saving and loading against the number of tasks (must-show 6).

The pool is as a long run leaves it: every posterior different, a quarter of the tasks asleep, last visits spread
over a thousand policy versions. Medians of 20, process time, one thread.
"""

from __future__ import annotations

import json
import math
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from snoozing_env import GroupOutcome, TaskInfo, build_scheduler
from snoozing_env.report.svg import Axis, Series, legend, line_chart
from snoozing_env.schedulers import Curriculum
from snoozing_env.schedulers.dots import Dots
from snoozing_env.schedulers.source import Selection
from snoozing_env.schedulers.state import load_snapshot, save_snapshot

REPEATS, G, VERSIONS = 20, 8, 1000
LARGE, SMALL = 10**6, 2000
DATASETS = "abcd"
MIXTURE = {"weights": {"a": 4, "b": 3, "c": 2, "d": 1}, "floors": {"d": 0.15}}
PLOT = Path("runs/bench/draws.html")
CONFIGS: dict[str, dict[str, Any]] = {
    "uniform": {"kind": "uniform"},
    "band": {"kind": "band"},
    "thompson": {"kind": "thompson"},
    "thompson over all": {"kind": "thompson", "shortlist": 0},
    "learnability": {"kind": "learnability"},
    "lze": {"kind": "lze"},
    "dots": {"kind": "dots", "refresh_updates": 10**6, "refresh_groups": 10**9},
    "prioritized": {"kind": "prioritized"},
    "progress": {"kind": "progress"},
    "staged": {"kind": "staged", "inner": {"kind": "band"}},
}
"""A refresh of dots is timed by itself: it happens every so many weight updates, not in a draw like the others."""
QUICK = ("uniform", "band", "thompson", "thompson over all", "learnability", "lze", "dots")
"""Kinds that the milestone sets a budget for."""
BUDGET_MS = {"uniform": 15.0, "thompson over all": 150.0}
BUDGET_MS_OTHERS = 30.0
"""Most CPU time of draw(512) at 10^6 tasks."""
HUGE = ("uniform", "band", "thompson", "dots")
"""Kinds measured at 10^7 tasks too, where building one takes the better part of a minute."""
SMALL_VECTORS = {"embedding": {"buckets": 16, "surface": 0}}
"""For the curve: draws do not read the vectors, and at 10^7 tasks full ones would not fit this machine."""


def figures(quick: bool) -> dict[str, Any]:
    """At 10^6 and 2,000 tasks, without and with a mixture; quick leaves out three kinds, the mixture and the curve."""
    large_pool, small_pool = _tasks(LARGE), _tasks(SMALL)
    large = {name: _measure(config, large_pool, 512) for name, config in _configs(quick)}
    small = {name: _measure(config, small_pool, 64) for name, config in _configs(quick)}
    draws = {name: row["draw_ms"] for name, row in large.items()}
    found: dict[str, Any] = {
        "draw_512_ms_at_1e6": draws,
        "over_budget": [name for name, ms in draws.items() if ms > _budget(name)],
        "observe_512_ms_at_1e6": {name: row["observe_ms"] for name, row in large.items()},
        "state_bytes_per_task": {name: row["bytes"] for name, row in large.items()},
        "draw_64_ms_at_2000": {name: row["draw_ms"] for name, row in small.items()},
        "reference_draw_64_ms_at_2000": _reference_ms(),
        "save_load_s_at_1e6": {
            name: _save_and_load(CONFIGS[name], large_pool)
            for name in (("dots",) if quick else ("lze", "dots"))
        },
        "dots_refresh_s": _refresh_s([SMALL, 10**5] if quick else [SMALL, 10**5, LARGE]),
    }
    if not quick:
        found["draw_512_ms_against_n"] = curve = _curve()
        found["plot"] = _plot(curve)
    return found


def _configs(quick: bool) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every kind, then every kind in a mixture of four datasets."""
    yield from ((name, config) for name, config in CONFIGS.items() if not quick or name in QUICK)
    if not quick:
        yield from ((f"{name}, mixture", {**config, "mixture": MIXTURE}) for name, config in CONFIGS.items())


def _budget(name: str) -> float:
    return BUDGET_MS.get(name.removesuffix(", mixture"), BUDGET_MS_OTHERS)


def _curve() -> dict[str, dict[str, float]]:
    """Draw times by number of tasks, 10^3 to 10^7."""
    curve: dict[str, dict[str, float]] = {name: {} for name in CONFIGS}
    for exponent in range(3, 8):
        tasks = _tasks(10**exponent)
        for name, config in CONFIGS.items():
            if exponent == 7 and name not in HUGE:
                continue
            small = SMALL_VECTORS if name == "dots" else {}
            curve[name][f"1e{exponent}"] = _measure({**config, **small}, tasks, 512)["draw_ms"]
    return curve


def _plot(curve: Mapping[str, Mapping[str, float]]) -> str:
    """Both axes logarithmic; returns the file's path."""
    lines = [
        Series(
            label=name,
            x=[math.log10(float(n)) for n in row],
            y=[math.log10(max(ms, 1e-3)) for ms in row.values()],
            colour=i % 6,
            dash=i // 6,
        )
        for i, (name, row) in enumerate(curve.items())
    ]
    x = Axis(label="tasks", show=lambda v: f"10^{v:g}")
    y = Axis(label="CPU ms of draw(512)", show=lambda v: f"{10**v:.3g}")
    key = legend([(line.label, line.colour, line.dash) for line in lines])
    css = files("snoozing_env.report").joinpath("assets/report.css").read_text()
    PLOT.parent.mkdir(parents=True, exist_ok=True)
    PLOT.write_text(
        f"<!doctype html><meta charset=utf-8><title>Cost of a draw</title><style>{css}</style>"
        f"<main><h1>draw(512) against the number of tasks</h1>{key}{line_chart(lines, x=x, y=y, width=760, height=420)}</main>"
    )
    return str(PLOT)


def _tasks(n: int) -> list[TaskInfo]:
    return [
        TaskInfo(key=str(i), dataset=DATASETS[i % 4], text=f"What is {i % 97} plus {i // 97}?")
        for i in range(n)
    ]


def _seasoned(config: Mapping[str, Any], tasks: Sequence[TaskInfo]) -> Curriculum:
    """A scheduler whose columns look like those of a long run."""
    scheduler = build_scheduler(config, tasks, 0)
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
        columns |= {"dots_predicted": 1.0, "dots_had_turn": 2}
        for column, top in columns.items():
            if column in (live := scheduler.snapshot().columns):
                live[column][:] = (rng.random(n) * top).astype(live[column].dtype)
        if isinstance(dots := scheduler.source.selector, Dots):
            dots.restore({**dots.state(), "collecting": False, "predicts": True, "at": VERSIONS})
    return scheduler


def _measure(config: Mapping[str, Any], tasks: Sequence[TaskInfo], batch: int) -> dict[str, float]:
    scheduler, rng = _seasoned(config, tasks), np.random.default_rng(2)
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


def _save_and_load(config: Mapping[str, Any], tasks: Sequence[TaskInfo]) -> dict[str, float]:
    scheduler = _seasoned(config, tasks)
    twin = build_scheduler(config, tasks, 1)
    with tempfile.TemporaryDirectory() as folder:
        saved = _cpu_s(lambda: save_snapshot(scheduler.snapshot(), Path(folder)))
        loaded = _cpu_s(lambda: twin.restore(load_snapshot(Path(folder))))
        size = sum(f.stat().st_size for f in Path(folder).iterdir())
    return {
        "save": round(saved, 3),
        "load": round(loaded, 3),
        "bytes_on_disk_per_task": round(size / len(tasks), 1),
    }


def _refresh_s(sizes: Sequence[int]) -> dict[str, dict[str, float]]:
    """Seconds to hash the texts of N tasks once, and to predict all of them from 256 references, by rule."""
    found: dict[str, dict[str, float]] = {}
    rng = np.random.default_rng(3)
    for n in sizes:
        tasks, row = _tasks(n), {}
        for rule in ("attention", "ridge"):
            started = time.process_time()
            scheduler = build_scheduler({"kind": "dots", "rule": rule}, tasks, 0)
            row["build"] = round(time.process_time() - started, 3)
            assert isinstance(scheduler.source, Selection)
            dots = scheduler.source.selector
            assert isinstance(dots, Dots)
            dots.reference_N[rng.choice(n, 256, replace=False)] = rng.integers(0, 9, 256) / 8
            row[rule] = round(_cpu_s(dots.refresh), 3)
        found[str(n)] = row
    return found


@dataclass
class PlainTask:
    """A task as the chapter keeps it: an object with a Beta posterior."""

    successes: float
    failures: float

    def sample(self, rng: np.random.Generator) -> float:
        return rng.beta(self.successes, self.failures)

    @property
    def mean(self) -> float:
        return self.successes / (self.successes + self.failures)


def _reference_ms() -> dict[str, float]:
    """Plain Python over 2,000 task objects, 64 drawn: ours, written the way such pools are, for comparison alone.

    `chapter`: a posterior sample for each task and one sort, as the chapter's selection is.
    `pool`: a difficulty pool that draws one task at a time by a weighted choice, and so walks all tasks 64 times.
    """
    rng, dice = np.random.default_rng(0), random.Random(0)
    tasks = [PlainTask(float(a), float(b)) for a, b in rng.uniform(1, 40, (SMALL, 2))]

    def chapter() -> list[PlainTask]:
        scored = [(-abs(task.sample(rng) - 0.5), i) for i, task in enumerate(tasks)]
        return [tasks[i] for _, i in sorted(scored, reverse=True)[:64]]

    def pool() -> list[PlainTask]:
        busy: set[int] = set()
        for _ in range(64):
            idle = [i for i in range(len(tasks)) if i not in busy]
            weights = [max(4 * tasks[i].mean * (1 - tasks[i].mean), 0.01) for i in idle]
            busy.add(dice.choices(idle, weights)[0])
        return [tasks[i] for i in busy]

    return {
        "chapter": _median_ms([_cpu_s(chapter) for _ in range(REPEATS)]),
        "pool": _median_ms([_cpu_s(pool) for _ in range(REPEATS)]),
    }


def _cpu_s(act: Callable[[], object]) -> float:
    started = time.process_time()
    act()
    return time.process_time() - started


def _median_ms(seconds: Sequence[float]) -> float:
    return round(1e3 * float(np.median(seconds)), 3)


if __name__ == "__main__":
    print(json.dumps(figures(quick=True)))
