"""How hard each task is for the current policy: three running estimates of its pass rate, as columns.

All three are kept for every task (12 bytes more than one) so that changing the estimate a selector reads
needs no re-run: the last group's pass rate, an exponential moving average, and a discounted Beta posterior.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from snoozing_env.config import FrozenConfig
from snoozing_env.types import Floats, Ints, TaskInfo

Columns = dict[str, NDArray[np.generic]]


class DifficultyConfig(FrozenConfig):
    """Which estimate selectors and reports read, and how fast it forgets."""

    estimate: Literal["last", "ema", "beta"] = "beta"
    """`last` group, exponential moving average, or discounted Beta posterior mean (D3)."""
    alpha: float = Field(default=0.2, gt=0, le=1)
    """Weight of the newest group in the moving average; 0.1 to 0.3 is usual."""
    decay: float = Field(default=0.9, gt=0, le=1)
    """Discount of old evidence in the Beta posterior, applied once per observed group (S3)."""
    prior_strength: float = Field(default=2.0, gt=0)
    """Pseudo-rollouts behind the prior; 2 with no known prior is Beta(1, 1)."""


class Difficulty:
    """Pass-rate estimates of N tasks.

    The Beta update is the chapter's `s ← decay·s + successes`, `f ← decay·f + failures` from (1, 1), and the
    decay applies to the prior too, as its worked example has it (3/8 then 6/8 gives .39796 and .56540). It may
    not *eat* the prior, though: neither count falls under its prior value, so a task solved a hundred times
    keeps a posterior that can still be wrong (D3).
    """

    def __init__(self, config: DifficultyConfig, tasks: Sequence[TaskInfo]) -> None:
        self.config = config
        n = len(tasks)
        prior = np.full(n, 0.5)
        for i, task in enumerate(tasks):
            if task.difficulty_prior is not None:
                prior[i] = min(max(task.difficulty_prior, 0.05), 0.95)
        self.floor_s_N = (prior * config.prior_strength).astype(np.float32)
        self.floor_f_N = ((1.0 - prior) * config.prior_strength).astype(np.float32)
        self.visits_N = np.zeros(n, np.int32)
        """Observed groups per task."""
        self.last_N = prior.astype(np.float32)
        self.ema_N = prior.astype(np.float32)
        self.successes_N = self.floor_s_N.copy()
        self.failures_N = self.floor_f_N.copy()

    def observe(self, task_B: Ints, successes_B: Floats, rollouts_B: Floats) -> None:
        """Fold in B groups of distinct tasks: summed rewards and valid rollouts per group."""
        decay, alpha = np.float32(self.config.decay), self.config.alpha
        rate = successes_B / rollouts_B
        first = self.visits_N[task_B] == 0
        self.last_N[task_B] = rate
        blended = (1 - alpha) * self.ema_N[task_B] + alpha * rate
        self.ema_N[task_B] = np.where(first, rate, blended)
        s = decay * self.successes_N[task_B] + successes_B
        f = decay * self.failures_N[task_B] + (rollouts_B - successes_B)
        self.successes_N[task_B] = np.maximum(s, self.floor_s_N[task_B])
        self.failures_N[task_B] = np.maximum(f, self.floor_f_N[task_B])
        self.visits_N[task_B] += 1

    def mean_N(self) -> Floats:
        """[N] the configured estimate of every task's pass rate."""
        if self.config.estimate == "last":
            return self.last_N.astype(np.float64)
        if self.config.estimate == "ema":
            return self.ema_N.astype(np.float64)
        s = self.successes_N.astype(np.float64)
        return s / (s + self.failures_N)

    def columns(self) -> Columns:
        """The state, one array per column (20 bytes a task)."""
        return {
            "visits": self.visits_N,
            "last": self.last_N,
            "ema": self.ema_N,
            "successes": self.successes_N,
            "failures": self.failures_N,
        }

    def histogram(self, bins: int = 10) -> Ints:
        """[bins] counts of the visited tasks by estimated pass rate."""
        seen = self.mean_N()[self.visits_N > 0]
        return np.histogram(seen, bins=bins, range=(0.0, 1.0))[0].astype(np.int64)
