"""`progress`: tasks whose pass rate is moving (S8; learning progress of self-paced curricula).

Each visit moves a running pass rate; the smoothed step of that rate is the task's progress. It is signed by
default: a task that is being forgotten moves too, but that is not learning.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from snoozing_env.config import FrozenConfig
from snoozing_env.schedulers.difficulty import Columns
from snoozing_env.schedulers.outcomes import OutcomeTable
from snoozing_env.schedulers.reversion import Floats32
from snoozing_env.schedulers.selector import Pool, RankingSelector, Selector
from snoozing_env.schedulers.shared import SelectedConfig
from snoozing_env.types import Bools


class ProgressOptions(FrozenConfig):
    """How movement becomes a weight."""

    kind: Literal["progress"] = "progress"
    alpha: float = Field(default=0.3, gt=0, le=1)
    """Weight of the newest group in the running pass rate."""
    smoothing: float = Field(default=0.5, ge=0, lt=1)
    """Share of the old progress that a visit keeps; one group's noise is large beside one step of learning."""
    signed: bool = True
    """Count only rising pass rates; False counts falling ones too."""
    floor: float = Field(default=0.02, gt=0)
    """Weight of a task that stands still, in pass rate per visit."""
    novelty: float = Field(default=0.1, gt=0)
    """Weight of a task that was not seen twice, so that there is a first step to measure."""

    def selector(self, pool: Pool) -> Selector:
        return Progress(self, pool)


class ProgressConfig(ProgressOptions, SelectedConfig):
    """Weighted by recent learning progress, without replacement."""

    kind: Literal["progress"] = "progress"


class Progress(RankingSelector):
    def __init__(self, options: ProgressOptions, pool: Pool) -> None:
        super().__init__(pool)
        self.options = options
        n = len(pool.tasks)
        self.rate_N = np.zeros(n, np.float32)
        """Running pass rate; the first group's until the second."""
        self.step_N = np.zeros(n, np.float32)
        """Smoothed change of it per visit."""

    def observe(self, table: OutcomeTable, *, easy_B: Bools) -> None:
        task_B, o = table.task_B, self.options
        rate = table.sum_B / table.valid_B
        first = self.pool.difficulty.visits_N[task_B] == 0
        step = np.where(first, 0.0, o.alpha * (rate - self.rate_N[task_B]))
        self.rate_N[task_B] = np.where(first, rate, self.rate_N[task_B] + step)
        self.step_N[task_B] = o.smoothing * self.step_N[task_B] + (1 - o.smoothing) * step

    def keys(self, part: slice) -> Floats32:
        weight = self.weights(part)
        return self.pool.rng.standard_exponential(len(weight), dtype=np.float32) / weight

    def weights(self, part: slice) -> Floats32:
        step = self.step_N[part] * self.pool.reversion.fade(part)
        moved = np.maximum(step, np.float32(0)) if self.options.signed else np.abs(step)
        new = self.pool.difficulty.visits_N[part] < 2
        return np.where(new, np.float32(self.options.novelty), moved + np.float32(self.options.floor))

    def columns(self) -> Columns:
        return {"progress_rate": self.rate_N, "progress_step": self.step_N}
