"""The chapter's pool simulation with every scheduler as it ships, and its exercises (must-show 1)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from snoozing_env import KINDS, build_scheduler
from snoozing_env.advantages import clipped_surrogate
from snoozing_env.gates import refill_size
from snoozing_env.schedulers.difficulty import Difficulty, DifficultyConfig
from snoozing_env.schedulers.learnability import Learnability, expected_survival
from snoozing_env.schedulers.source import Selection
from snoozing_env.types import TaskInfo
from tests.core.chapter import RULE_ALONE, SIMULATED, Simulated, mean_survival

SEEDS = 20
BATCH = 256


def figures(quick: bool) -> dict[str, Any]:
    """Survival over 20 seeds with its standard error; quick leaves out the kinds that the chapter has no figure for."""
    rows = dict(SIMULATED)
    rows["band, floor of a tenth"] = Simulated(config={"kind": "band", "epsilon": 0.1}, low=0.0)
    if not quick:
        rows |= {kind: Simulated(config={"kind": kind}, low=0.0) for kind in KINDS if kind not in rows}
    survivals = {name: mean_survival(row, SEEDS) for name, row in rows.items()}
    return {
        "survival": {name: f"{mean:.4f} ± {error:.4f}" for name, (mean, error) in survivals.items()},
        "within_bounds": {name: row.low <= survivals[name][0] <= row.high for name, row in SIMULATED.items()},
        "exercise_2_signal_ratio": _signal_ratio(0.5, 0.75),
        **_exercise_3(),
        "exercise_4_posterior_means": _posterior_means([3, 6]),
        "exercise_5_expected_survival_of_the_band": _band_survival(),
        **_exercise_6(),
    }


def _band_survival() -> float:
    """Expected survival of the 64 tasks that the greedy band takes from 4,000 with known rates."""
    rates = np.linspace(0.02, 0.98, 4000)
    tasks = [TaskInfo(key=str(i), difficulty_prior=float(p)) for i, p in enumerate(rates)]
    scheduler = build_scheduler({"kind": "band", "epsilon": RULE_ALONE}, tasks, 0)
    return round(expected_survival(rates[scheduler.draw(64)], 8), 5)


def _exercise_6() -> dict[str, float]:
    stale = clipped_surrogate(np.log([0.6]), np.log([0.1]), np.ones(1))
    return {
        "exercise_6_ratio": round(float(stale.ratio_T[0]), 9),
        "exercise_6_gradient": float(stale.gradient_T[0]),
    }


def _signal_ratio(one: float, other: float) -> float:
    scheduler = build_scheduler({"kind": "learnability", "formula": "variance"}, [TaskInfo(key="a")], 0)
    selector = scheduler.source.selector if isinstance(scheduler.source, Selection) else None
    if not isinstance(selector, Learnability):
        raise TypeError(f"learnability is built around {type(selector).__name__}")
    first, second = selector.weights(np.array([one, other]))
    return round(float(first / second), 5)


def _exercise_3() -> dict[str, float]:
    half, most, both = (expected_survival(np.array(p), 8) for p in ([0.5], [0.9], [0.5, 0.9]))
    groups = refill_size(missing=BATCH, survival=both, limit=10**6)
    return {
        "exercise_3_survival_half": round(half, 5),
        "exercise_3_survival_nine_tenths": round(most, 5),
        "exercise_3_survival": round(both, 5),
        "exercise_3_groups": groups,
        "exercise_3_thrown_away": round(1 - both, 3),
    }


def _posterior_means(successes: Sequence[int]) -> list[float]:
    difficulty = Difficulty(DifficultyConfig(), [TaskInfo(key="a")])
    means: list[float] = []
    for solved in successes:
        difficulty.observe(np.array([0]), np.array([float(solved)]), np.array([8.0]))
        means.append(round(float(difficulty.mean_N()[0]), 5))
    return means


if __name__ == "__main__":
    print(json.dumps(figures(quick=True)))
