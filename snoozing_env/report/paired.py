"""Two runs on the same tasks: is the difference more than noise?

The task is the unit throughout: its rollouts are not independent. What the two runs share is paired, the rest is
counted and left out (Miller 2024, arXiv 2411.00640, section 4: pairing removes the variance between tasks).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from snoozing_env.errors import StateError
from snoozing_env.types import Floats

DRAWS = 10_000
CHUNK = 2_000_000
"""Numbers drawn at once, 16 MB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Paired:
    """Run B against run A."""

    n_shared: int
    """Tasks with a valid rollout in both runs."""
    only_a: int
    only_b: int
    mean_a: float
    """Over the shared tasks."""
    mean_b: float
    difference: float
    """B − A."""
    low: float
    """95 % bootstrap interval of the difference, tasks drawn with replacement."""
    high: float
    p: float
    """Two-sided permutation test: under no difference each task's two results may be swapped."""
    better_a: int
    """Tasks on which A did better."""
    better_b: int
    sign_p: float
    """Exact two-sided test that either run is as likely to be the better one on a task where they differ: with one
    binary rollout per task this is McNemar's exact test."""


def paired(a: Mapping[str, float], b: Mapping[str, float], *, seed: int = 0) -> Paired:
    """Compare mean rewards per task key.

    Raises:
        StateError: no task in common.
    """
    shared = sorted(a.keys() & b.keys())
    if not shared:
        raise StateError(
            f"the runs share no task ({len(a)} and {len(b)}); compare runs over the same environments, split and seed"
        )
    a_N, b_N = np.array([a[key] for key in shared]), np.array([b[key] for key in shared])
    delta_N: Floats = b_N - a_N
    rng = np.random.default_rng(np.random.SeedSequence([seed, len(shared)]))
    low, high = _bootstrap(delta_N, rng)
    better_a, better_b = int(np.sum(delta_N < -1e-12)), int(np.sum(delta_N > 1e-12))
    return Paired(
        n_shared=len(shared),
        only_a=len(a) - len(shared),
        only_b=len(b) - len(shared),
        mean_a=float(a_N.mean()),
        mean_b=float(b_N.mean()),
        difference=float(delta_N.mean()),
        low=low,
        high=high,
        p=_permutation_p(delta_N, rng),
        better_a=better_a,
        better_b=better_b,
        sign_p=sign_test(better_a, better_b),
    )


def sign_test(a: int, b: int) -> float:
    """Exact two-sided binomial p of a against b wins (McNemar 1947, exact form); 1 without a win."""
    n = a + b
    tail = sum(math.comb(n, i) for i in range(min(a, b) + 1))
    # Integers: 2^-n underflows where the quotient does not.
    return min(1.0, 2 * tail / 2**n)


def _bootstrap(delta_N: Floats, rng: np.random.Generator) -> tuple[float, float]:
    n = delta_N.size
    means = np.concatenate([delta_N[rng.integers(n, size=(rows, n))].mean(axis=1) for rows in _chunks(n)])
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


def _permutation_p(delta_N: Floats, rng: np.random.Generator) -> float:
    """Share of sign flips at least as extreme, the observed one among them (Phipson & Smyth 2010)."""
    n, seen = delta_N.size, abs(float(delta_N.sum()))
    extreme = sum(
        int(np.sum(np.abs((rng.integers(2, size=(rows, n)) * 2 - 1) @ delta_N) >= seen - 1e-9))
        for rows in _chunks(n)
    )
    return (extreme + 1) / (DRAWS + 1)


def _chunks(n: int) -> list[int]:
    size = max(1, min(DRAWS, CHUNK // n))
    return [size] * (DRAWS // size) + ([DRAWS % size] if DRAWS % size else [])
