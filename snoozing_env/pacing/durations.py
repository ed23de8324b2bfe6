"""How long a group of a task will take: a running mean of log seconds per task, shrunk to that of all.

Log seconds, because the slowest fifth of agentic episodes takes 25 times the median (seed S4): a mean of seconds
would describe neither.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from snoozing_env.config import FrozenConfig
from snoozing_env.schedulers.parquet import dump, parse
from snoozing_env.types import Floats, Ints


class DurationConfig(FrozenConfig):
    """Prediction of durations."""

    alpha: float = Field(default=0.3, gt=0, le=1)
    """Weight of a new observation in a task's running mean."""
    shrink: float = Field(default=1.0, ge=0)
    """Observations that the mean over all tasks counts for in a task's prediction."""


class Durations:
    """Predicted seconds of N tasks; 8 bytes a task."""

    def __init__(self, config: DurationConfig, prior_s: Sequence[float | None]) -> None:
        """`prior_s` [N]: seconds expected before any observation, None = what all tasks take."""
        self.config = config
        self._log_N = np.array([np.nan if s is None else np.log(s) for s in prior_s], np.float32)
        self._seen_N: NDArray[np.float32] = np.zeros(len(prior_s), np.float32)
        self._mean_log = 0.0
        self._observed = 0

    def observe(self, task: int, seconds: float) -> None:
        """Learn from a finished group; `seconds` from dispatch to the last verdict, > 0."""
        log = float(np.log(max(seconds, 1e-6)))
        self._observed += 1
        self._mean_log += (log - self._mean_log) / min(self._observed, 1000)
        first = np.isnan(self._log_N[task])
        self._log_N[task] = (
            log if first else self._log_N[task] + self.config.alpha * (log - self._log_N[task])
        )
        self._seen_N[task] = min(self._seen_N[task] + 1.0, 1.0 / self.config.alpha)

    def predict(self, task_B: Ints) -> Floats:
        """[B] seconds."""
        own_B = self._log_N[task_B].astype(np.float64)
        # A prior from the task set counts as one observation of its task.
        weight_B = np.where(np.isnan(own_B), 0.0, np.maximum(self._seen_N[task_B], 1.0))
        total_B = weight_B + self.config.shrink
        if self._observed == 0:  # nothing to shrink to yet
            return np.exp(np.where(np.isnan(own_B), 0.0, own_B))
        mixed_B = weight_B * np.nan_to_num(own_B) + self.config.shrink * self._mean_log
        return np.exp(np.where(total_B > 0, mixed_B / np.maximum(total_B, 1e-9), self._mean_log))

    def columns(self) -> dict[str, NDArray[np.float32]]:
        """Live arrays by column name, for the sidecar."""
        return {"duration_log": self._log_N, "duration_seen": self._seen_N}

    def to_parquet(self, keys: Sequence[str]) -> bytes:
        """The columns beside the tasks' durable keys."""
        return dump(keys, dict(self.columns()))

    def from_parquet(self, data: bytes, index_of: Mapping[str, int]) -> None:
        """Take over what a saved table says of the tasks that are still there, wherever they now stand."""
        keys, saved = parse(data)
        old = np.array([i for i, key in enumerate(keys) if key in index_of], np.int64)
        new = np.array([index_of[key] for key in keys if key in index_of], np.int64)
        for name, column in self.columns().items():
            column[new] = saved[name][old]

    def state(self) -> dict[str, float]:
        """The part that is not a column."""
        return {"mean_log": self._mean_log, "observed": self._observed}

    def restore(self, state: dict[str, float]) -> None:
        self._mean_log, self._observed = float(state["mean_log"]), int(state["observed"])
