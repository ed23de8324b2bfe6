"""`thompson`: a pass rate drawn from each task's Beta posterior, nearest to the target first (S3).

Wide posteriors are drawn far from their mean, so tasks that were seen little are looked at again. Over a large
pool the best draws are mostly lucky ones; a greedy shortlist first keeps the exploration to plausible tasks.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from snoozing_env.config import FrozenConfig
from snoozing_env.schedulers.reversion import Floats32
from snoozing_env.schedulers.selector import Pool, RankingSelector, Selector, smallest
from snoozing_env.schedulers.shared import SelectedConfig
from snoozing_env.types import Ints


class ThompsonOptions(FrozenConfig):
    """How posterior draws choose tasks."""

    kind: Literal["thompson"] = "thompson"
    target: float = Field(default=0.5, ge=0, le=1)
    """Wanted pass rate."""
    shortlist: int = Field(default=300, ge=0)
    """Draw only among this many tasks with the nearest posterior means (at least twice the draw); 0 = among all."""

    def selector(self, pool: Pool) -> Selector:
        return Thompson(self, pool)


class ThompsonConfig(ThompsonOptions, SelectedConfig):
    """Thompson sampling toward a target pass rate."""

    kind: Literal["thompson"] = "thompson"


class Thompson(RankingSelector):
    def __init__(self, options: ThompsonOptions, pool: Pool) -> None:
        super().__init__(pool)
        self.options = options

    def first(self, n: int, keys_N: Floats32) -> Ints:
        if not self.options.shortlist or n == 0:
            return super().first(n, keys_N)
        shortlist = smallest(keys_N, max(self.options.shortlist, 2 * n), self.pool.rng)
        return shortlist[smallest(self._distances(shortlist), n, self.pool.rng)]

    def keys(self, part: slice) -> Floats32:
        if not self.options.shortlist:
            return self._distances(part)
        s, f = self.pool.reversion.counts(part)
        return np.abs(s / (s + f) - np.float32(self.options.target))

    def _distances(self, part: slice | Ints) -> Floats32:
        """|draw - target|; Beta(s, f) as a ratio of two Gamma draws, which numpy has in float32 at a third of the cost."""
        s, f = self.pool.reversion.counts(part)
        won = self.pool.rng.standard_gamma(s, dtype=np.float32)
        lost = self.pool.rng.standard_gamma(f, dtype=np.float32)
        rate = won / np.maximum(won + lost, np.float32(1e-30))  # both underflow for shapes near zero
        return np.abs(rate - np.float32(self.options.target))
