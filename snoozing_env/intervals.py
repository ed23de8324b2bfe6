"""95 % intervals for accuracies on a finite evaluation set.

Use `wilson` for one answer per task, `clustered` for several: answers to the same task are not independent,
and pooling them makes the interval too narrow. `paired` compares two measurements of the same tasks, `over_seeds` is
about the mean over several runs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from snoozing_env.types import Floats

Z_95 = 1.959963984540054
"""97.5 % quantile of the standard normal."""


class Interval(NamedTuple):
    low: float
    high: float


def wilson(successes: float, n: int) -> Interval:
    """Wilson score interval (Wilson 1927, J. Am. Stat. Assoc. 22; recommended by Brown, Cai & DasGupta 2001).

    Honest at 0 and at n successes, where the textbook ± 1.96·SE has no width.
    """
    if n < 1 or not 0 <= successes <= n:
        raise ValueError(f"got {successes} successes of {n}; wanted 0 ≤ successes ≤ n and n ≥ 1")
    p, z2 = successes / n, Z_95**2
    centre = (p + z2 / (2 * n)) / (1 + z2 / n)
    half = Z_95 / (1 + z2 / n) * math.sqrt(p * (1 - p) / n + z2 / (4 * n * n))
    # At the ends the formula gives exactly p, up to rounding.
    return Interval(min(p, max(0.0, centre - half)), max(p, min(1.0, centre + half)))


def clustered(mean_per_task_N: Sequence[float] | Floats) -> Interval:
    """Interval of the mean accuracy from [N] per-task means, the task being the cluster.

    With equally many samples per task the cluster-robust standard error is that of the task means (Miller 2024,
    "Adding Error Bars to Evals", arXiv 2411.00640, section 2.2); Student's t covers small N. Without any spread the
    standard error says nothing, so Wilson over N tasks is used instead.
    """
    means_N = np.asarray(mean_per_task_N, dtype=np.float64)
    n = means_N.size
    if means_N.ndim != 1 or n == 0 or not bool(np.all((means_N >= 0) & (means_N <= 1))):
        raise ValueError(
            f"got per-task means of shape {means_N.shape}; wanted a non-empty [N] array within [0, 1]"
        )
    mean = float(means_N.mean())
    spread = float(means_N.std(ddof=1)) if n > 1 else 0.0
    if spread < 1e-12:
        return wilson(min(float(n), mean * n), n)
    half = _t(n - 1, 0.975) * spread / math.sqrt(n)
    return Interval(max(0.0, mean - half), min(1.0, mean + half))


def paired(
    after_N: Sequence[float] | Floats, before_N: Sequence[float] | Floats, *, confidence: float = 0.95
) -> Interval:
    """Interval of the mean change of [N] per-task means, measured twice on the same tasks.

    Tasks differ far more from each other than from themselves a few updates ago, so the interval of the differences is
    narrower than that of either mean (Miller 2024, section 4.2). Where every task changed by the same, the spread says
    nothing; one task that changed by one more is assumed then, so that no finite sample is ever certain.
    """
    after, before = np.asarray(after_N, np.float64), np.asarray(before_N, np.float64)
    if after.ndim != 1 or after.shape != before.shape or after.size < 2:
        raise ValueError(
            f"got means of shapes {after.shape} and {before.shape}; wanted two [N] arrays of the same N ≥ 2 tasks"
        )
    change_N = after - before
    n, mean = change_N.size, float(change_N.mean())
    error = max(float(change_N.std(ddof=1)), 1 / math.sqrt(n)) / math.sqrt(n)
    half = _t(n - 1, (1 + confidence) / 2) * error
    return Interval(mean - half, mean + half)


def over_seeds(values_N: Sequence[float] | Floats) -> Interval:
    """Interval of a mean over [N] independent runs, one value each; Student's t, so wide for three."""
    values = np.asarray(values_N, np.float64)
    if values.ndim != 1 or values.size < 2:
        raise ValueError(f"got values of shape {values.shape}; wanted an [N] array of N ≥ 2 runs")
    n = values.size
    half = _t(n - 1, 0.975) * float(values.std(ddof=1)) / math.sqrt(n)
    return Interval(float(values.mean()) - half, float(values.mean()) + half)


def _t(dof: int, p: float) -> float:
    """Quantile of Student's t: exact for 1 and 2 degrees of freedom, else Abramowitz & Stegun 26.7.5.

    At p = .975 the expansion is within 0.13 % at 3 degrees of freedom and within 0.04 % from 4 on.
    """
    if dof == 1:
        return math.tan(math.pi * (p - 0.5))
    if dof == 2:
        return (2 * p - 1) * math.sqrt(2 / (4 * p * (1 - p)))
    z = NormalDist().inv_cdf(p)
    return (
        z
        + (z**3 + z) / (4 * dof)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * dof**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * dof**3)
        + (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / (92160 * dof**4)
    )
