"""`learnability`: tasks drawn in proportion to what a group of them can be expected to teach (S4).

group      1 - p^G - (1-p)^G, the chance that G rollouts disagree
variance   p(1-p), the variance of one reward

Estimates revert to the prior while a task goes unvisited, and no weight falls under the floor: an estimate of
0 or 1 that has gone stale is looked at again.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from snoozing_env.config import FrozenConfig
from snoozing_env.schedulers.reversion import Floats32
from snoozing_env.schedulers.selector import Pool, RankingSelector, Selector
from snoozing_env.schedulers.shared import SelectedConfig


class LearnabilityOptions(FrozenConfig):
    """How a pass rate becomes a weight."""

    kind: Literal["learnability"] = "learnability"
    formula: Literal["group", "variance"] = "group"
    """`group`: 1 - p^G - (1-p)^G; `variance`: p(1-p)."""
    group_size: int = Field(default=8, ge=2)
    """G of `group`; set it to rollout.group_size."""
    floor: float = Field(default=0.01, gt=0, le=1)
    """Least weight, as a share of the greatest a task can have."""

    def selector(self, pool: Pool) -> Selector:
        return Learnability(self, pool)


class LearnabilityConfig(LearnabilityOptions, SelectedConfig):
    """Weighted by what a group can teach, without replacement."""

    kind: Literal["learnability"] = "learnability"


class Learnability(RankingSelector):
    def __init__(self, options: LearnabilityOptions, pool: Pool) -> None:
        super().__init__(pool)
        self.options = options

    def keys(self, part: slice) -> Floats32:
        """An exponential race: the n first arrivals of rates w are n draws proportional to w without replacement."""
        weight = self.weights(self.pool.reversion.rates(part))
        return self.pool.rng.standard_exponential(len(weight), dtype=np.float32) / weight

    def weights(self, rate: Floats32) -> Floats32:
        """Weights relative to the greatest, at p = 1/2, and never under the floor."""
        g = self.options.group_size
        if self.options.formula == "group":
            weight = (1 - power(rate, g) - power(1 - rate, g)) / np.float32(1 - 2 * 0.5**g)
        else:
            weight = 4 * rate * (1 - rate)
        return np.maximum(weight, np.float32(self.options.floor))


def power(base: Floats32, exponent: int) -> Floats32:
    """base^exponent by squaring; np.power costs ten times as much at float32."""
    result = np.ones_like(base)
    while exponent:
        if exponent & 1:
            result = result * base
        base, exponent = base * base, exponent >> 1
    return result


def expected_survival(rates: Floats32, group_size: int) -> float:
    """Expected share of groups that survive dynamic sampling, given pass rates (the chapter's exercise 5)."""
    p = np.asarray(rates, np.float64)
    return float((1 - p**group_size - (1 - p) ** group_size).mean())
