"""Resuming and the contract suite's teeth (must-show 8 and 9).

8: for every kind, a run is saved; its pool is reordered, a tenth dropped and a tenth added, and the state compared task by
task. Unchanged, the pool is resumed and the next draws compared with those of the run that never stopped.
9: the contract suite over copies of the package that each lack one promise (tests/core/mutations.py).
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from snoozing_env import KINDS, TaskInfo, build_scheduler
from snoozing_env.schedulers import Curriculum
from snoozing_env.schedulers.state import load_snapshot, save_snapshot
from snoozing_env.testing import LAWS, outcome
from tests.core.mutations import MUTATIONS, broken_laws

N, BATCH, HISTORY = 1000, 50, 60
DRAWS = 10_000
CONFIGS: dict[str, dict[str, Any]] = {kind: {"kind": kind} for kind in KINDS} | {
    "thompson over all": {"kind": "thompson", "shortlist": 0},
    "staged lze": {"kind": "staged", "inner": {"kind": "lze"}},
    "dots": {"kind": "dots", "reference": 128, "refresh_updates": 8},
}

QUICK = (
    "the snooze cap",
    "the floor",
    "the busy check of selection",
    "the decay",
    "the save of the selector's generator",
)


def figures(quick: bool) -> dict[str, Any]:
    """Quick resumes for 5,000 drawn tasks instead of 10,000 draws, and asks one kind and the five promises by name."""
    return {"8": _resumed(quick), "9": _mutated(quick)}


# -- 8: resuming --------------------------------------------------------------------------------------------


def _resumed(quick: bool) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, config in CONFIGS.items():
        scheduler = build_scheduler(_table(config), _tasks(range(N)), 0)
        _go_on(scheduler, HISTORY, BATCH, 0)
        with tempfile.TemporaryDirectory() as folder:
            save_snapshot(scheduler.snapshot(), Path(folder))
            changed = _changed(scheduler, config, Path(folder))
            twin = build_scheduler(_table(config), scheduler.tasks, 99)
            twin.restore(load_snapshot(Path(folder)))
        rounds, batch = (100, BATCH) if quick else (DRAWS, 4)
        mine, theirs = (_go_on(one, rounds, batch, HISTORY) for one in (scheduler, twin))
        same = next((i for i, (a, b) in enumerate(zip(mine, theirs, strict=True)) if a != b), rounds)
        found[name] = {**changed, "draws": rounds, "identical_draws": same}
    return found


def _changed(scheduler: Curriculum, config: dict[str, Any], folder: Path) -> dict[str, int]:
    """Reordered, 100 dropped, 100 added: counts, and surviving tasks whose saved columns differ."""
    order = np.random.default_rng(7).permutation(N)
    ids = np.random.default_rng(8).permutation(
        np.concatenate([order[: N - N // 10], np.arange(N, N + N // 10)])
    )
    other = build_scheduler(_table(config), _tasks(ids.tolist()), 5)
    report = other.restore(load_snapshot(folder))
    old, new = scheduler.snapshot().columns, other.snapshot().columns
    kept = np.flatnonzero(ids < N)
    differs = np.zeros(len(kept), np.bool_)
    for name in set(old) - {"order"}:
        differs |= old[name][ids[kept]] != new[name][kept]
    drawn = [t for _ in range(N // BATCH) for t in other.draw(BATCH).tolist()]
    return {
        "kept": report.kept,
        "fresh": report.fresh,
        "dropped": report.dropped,
        "survivors_changed": int(differs.sum()),
        "drawn_twice_while_busy": len(drawn) - len(set(drawn)),
    }


def _tasks(ids: Sequence[int]) -> list[TaskInfo]:
    return [
        TaskInfo(
            key=f"task-{i}",
            dataset="abc"[i % 3],
            difficulty_prior=i % 10 / 10,
            text=f"Problem {i}: add {i % 31} to {i % 17}.",
        )
        for i in ids
    ]


def _table(config: dict[str, Any]) -> dict[str, Any]:
    mixture = {"weights": {"a": 3, "b": 2, "c": 1}, "floors": {"c": 0.2}}
    return {
        **config,
        "snooze": {"mode": "probabilistic", "skip_passes": 2, "too_hard": True},
        "mixture": mixture,
    }


def _go_on(scheduler: Curriculum, rounds: int, batch: int, start: int) -> list[list[int]]:
    """Draws of so many rounds whose outcomes depend on the task and the version alone."""
    draws: list[list[int]] = []
    for version in range(start, start + rounds):
        drawn = scheduler.draw(batch).tolist()
        draws.append(drawn)
        solved = [(t * 7 + version) % 6 % 5 if t % 3 else 4 for t in drawn]
        scheduler.observe_many([outcome(t, k, version=version) for t, k in zip(drawn, solved, strict=True)])
    return draws


# -- 9: mutants ---------------------------------------------------------------------------------------------


def _mutated(quick: bool) -> dict[str, Any]:
    """Per lost promise: which kinds break which laws. A kind whose rule keeps a promise by itself breaks none."""
    kinds = ["band"] if quick else sorted(KINDS)
    names = QUICK if quick else tuple(MUTATIONS)
    found: dict[str, Any] = {"as it is": _broken(None, kinds, quick)}
    for name in names:
        mutation = MUTATIONS[name]
        has_it = [k for k in kinds if (mutation.passes if k == "uniform" else mutation.selectors)]
        found[name] = _broken(name, has_it, quick)
    found["all_noticed"] = not found["as it is"] and all(found[name] for name in names)
    return found


def _broken(name: str | None, kinds: Sequence[str], quick: bool) -> dict[str, list[str]]:
    mutation = None if name is None else MUTATIONS[name]
    # Quick asks only for the laws that must break; the full set runs the whole suite.
    laws: Sequence[str] = tuple(LAWS)
    if quick:
        laws = sorted({m.law for m in MUTATIONS.values()}) if mutation is None else [mutation.law]
    with tempfile.TemporaryDirectory() as folder:
        broken = broken_laws(mutation, Path(folder), kinds, laws=laws, examples=15)
    return {kind: lost for kind, lost in broken.items() if lost}


if __name__ == "__main__":
    print(json.dumps(figures(quick=True)))
