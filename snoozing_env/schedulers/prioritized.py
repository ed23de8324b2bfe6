"""`prioritized`: drawn with probability ∝ priority^(1/temperature), without replacement (S5).

priority = 1 / (|mean - target| + .05) + age_weight · Var, mean and variance of the Beta posterior: near the band is
exploited, under-sampled is explored. It stores tasks, never completions, so what it replays is on-policy.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from snoozing_env.config import FrozenConfig
from snoozing_env.schedulers.reversion import Floats32
from snoozing_env.schedulers.selector import Pool, RankingSelector, Selector
from snoozing_env.schedulers.shared import SelectedConfig

SOFTENING = np.float32(0.05)
"""Bounds the priority of a task right at the target to 20."""


class PrioritizedOptions(FrozenConfig):
    """How closeness and uncertainty become a priority."""

    kind: Literal["prioritized"] = "prioritized"
    target: float = Field(default=0.5, ge=0, le=1)
    """Wanted pass rate."""
    uncertainty_weight: float = Field(default=0.05, ge=0)
    """Weight of the posterior variance."""
    temperature: float = Field(default=1.0, gt=0)
    """Below 1 sharpens, above 1 flattens."""

    def selector(self, pool: Pool) -> Selector:
        return Prioritized(self, pool)


class PrioritizedConfig(PrioritizedOptions, SelectedConfig):
    """Prioritised sampling of tasks."""

    kind: Literal["prioritized"] = "prioritized"


class Prioritized(RankingSelector):
    def __init__(self, options: PrioritizedOptions, pool: Pool) -> None:
        super().__init__(pool)
        self.options = options

    def keys(self, part: slice) -> Floats32:
        """An exponential race in logarithms: 20^(1/temperature) leaves float32 for small temperatures."""
        priority = self.priorities(part)
        race = self.pool.rng.standard_exponential(len(priority), dtype=np.float32)
        return np.log(race + np.float32(1e-30)) - np.log(priority) / np.float32(self.options.temperature)

    def priorities(self, part: slice) -> Floats32:
        s, f = self.pool.reversion.counts(part)
        total = s + f
        closeness = 1 / (np.abs(s / total - np.float32(self.options.target)) + SOFTENING)
        variance = s * f / (total * total * (total + 1))
        return closeness + np.float32(self.options.uncertainty_weight) * variance
