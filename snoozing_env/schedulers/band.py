"""`band`: any task whose estimated pass rate is in the band before any other, nearest the centre first
(S2; the chapter's exercise 5)."""

from __future__ import annotations

from typing import Literal, Self

import numpy as np
from pydantic import Field, model_validator

from snoozing_env.config import FrozenConfig
from snoozing_env.schedulers.reversion import Floats32
from snoozing_env.schedulers.selector import Pool, RankingSelector, Selector
from snoozing_env.schedulers.shared import SelectedConfig


class BandOptions(FrozenConfig):
    """Which pass rates are worth a group."""

    kind: Literal["band"] = "band"
    lo: float = Field(default=0.2, ge=0, le=1)
    """Lowest estimated pass rate in the band."""
    hi: float = Field(default=0.8, ge=0, le=1)
    """Highest."""
    target: float = Field(default=0.5, ge=0, le=1)
    """In-band tasks are ranked by distance to this rate."""

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not self.lo <= self.target <= self.hi:
            raise ValueError(
                f"lo {self.lo}, target {self.target}, hi {self.hi}: they must be in this order, e.g. 0.2, 0.5, 0.8"
            )
        return self

    def selector(self, pool: Pool) -> Selector:
        return Band(self, pool)


class BandConfig(BandOptions, SelectedConfig):
    """Greedy band selection."""

    kind: Literal["band"] = "band"


class Band(RankingSelector):
    def __init__(self, options: BandOptions, pool: Pool) -> None:
        super().__init__(pool)
        self.options = options

    def keys(self, part: slice) -> Floats32:
        """Distance to the centre inside; 1 + distance past the nearer edge outside, so that a band that runs dry
        degrades gracefully."""
        lo, hi, target = (np.float32(v) for v in (self.options.lo, self.options.hi, self.options.target))
        rate = self.pool.reversion.rates(part)
        beyond = np.maximum(lo - rate, rate - hi)
        return np.where(beyond <= 0, np.abs(rate - target), 1 + beyond)
