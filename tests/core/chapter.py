"""The pool simulation of the data-side chapter (S3), with real schedulers in place of its selector.

4,000 tasks with true pass rates in [.02, .98]; 8 offline rollouts each give the prior, 0/8 and 8/8 are dropped;
then 8 steps that each keep 64 groups with a spread out of at most 6 rounds of generation; kept tasks are learned.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from snoozing_env import GroupOutcome, TaskInfo, build_scheduler

STEPS, KEEP, ROUNDS, G = 8, 64, 6, 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """A scheduler and the survival that the chapter (or, for uniform, the integral over its pool) gives it."""

    config: Mapping[str, Any]
    low: float
    high: float = 1.0
    offline: bool = True


RULE_ALONE = 1e-3
"""A floor too small to show; the chapter's selectors have none."""

SIMULATED = {
    "uniform, unpruned": Simulated(config={}, offline=False, low=0.797, high=0.817),
    "band": Simulated(config={"kind": "band", "epsilon": RULE_ALONE}, low=0.96),
    "band, floor as shipped": Simulated(config={"kind": "band"}, low=0.955),
    "thompson over all": Simulated(config={"kind": "thompson", "shortlist": 0}, low=0.90, high=0.955),
    "thompson, shortlist 300": Simulated(config={"kind": "thompson", "shortlist": 300}, low=0.955),
}
"""Means of 20 seeds have a standard error of .002; the chapter's own band selector is at .963 (150 seeds)."""


def mean_survival(row: Simulated, seeds: int) -> tuple[float, float]:
    """Mean over seeds 0, 1, ... and its standard error."""
    values = [survival(row.config, seed, offline=row.offline) for seed in range(seeds)]
    return float(np.mean(values)), float(np.std(values, ddof=1) / np.sqrt(seeds))


def survival(config: Mapping[str, Any], seed: int, *, offline: bool = True) -> float:
    """Share of generated groups with a spread, over all steps."""
    rng = np.random.default_rng([seed, 77])
    true_N = rng.uniform(0.02, 0.98, 4000)
    prior_N = np.full(4000, 0.5)
    strength = 2.0
    if offline:
        solved_N = rng.binomial(G, true_N)
        mixed = (solved_N > 0) & (solved_N < G)
        true_N = true_N[mixed]
        prior_N, strength = (1 + solved_N[mixed]) / (2 + G), 2.0 + G
    tasks = [TaskInfo(key=str(i), difficulty_prior=float(p), text=f"task {i}") for i, p in enumerate(prior_N)]
    # The chapter has no snoozing; with it, mastered tasks would leave the pool and flatter every selector.
    table = {**config, "snooze": {"mode": "off"}, "difficulty": {"prior_strength": strength}}
    scheduler = build_scheduler(table, tasks, seed)
    generated = survived = 0
    for step in range(STEPS):
        kept: list[int] = []
        for _ in range(ROUNDS):
            drawn = scheduler.draw(KEEP - len(kept))
            solved = rng.binomial(G, true_N[drawn])
            scheduler.observe_many(
                [
                    GroupOutcome(task=int(t), rewards_G=np.arange(G) < s, version=step)
                    for t, s in zip(drawn, solved, strict=True)
                ]
            )
            generated += len(drawn)
            kept += drawn[(solved > 0) & (solved < G)].tolist()
            if len(kept) == KEEP:
                break
        survived += len(kept)
        true_N[kept] = np.minimum(0.999, true_N[kept] + 0.02 * (1 - true_N[kept]))
    return survived / generated
