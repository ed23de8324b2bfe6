"""`uniform`: shuffled passes with snoozing; the scheduler that every other one must beat (S1, Z1 to Z11)."""

from __future__ import annotations

from typing import Literal

import numpy as np

from snoozing_env.config import FrozenConfig
from snoozing_env.schedulers.reversion import Floats32
from snoozing_env.schedulers.selector import Pool, RankingSelector, Selector
from snoozing_env.schedulers.shared import CurriculumConfig


class UniformConfig(CurriculumConfig):
    """Every task once per shuffled pass, mastered ones asleep."""

    kind: Literal["uniform"] = "uniform"

    def selector(self, pool: Pool) -> Selector | None:
        return FewestVisits(pool) if self.mixture is not None else None


class UniformOptions(FrozenConfig):
    """`uniform` as the inside of another kind: fewest visits first, which is passes again over any subset."""

    kind: Literal["uniform"] = "uniform"

    def selector(self, pool: Pool) -> Selector:
        return FewestVisits(pool)


class FewestVisits(RankingSelector):
    """Passes over whatever is open: no task twice before every other one once."""

    def keys(self, part: slice) -> Floats32:
        return self.pool.difficulty.visits_N[part].astype(np.float32)
