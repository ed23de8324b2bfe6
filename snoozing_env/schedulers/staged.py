"""`staged`: difficulty tiers, easy first, around any other selector (S9).

tiers      by the tasks' difficulty priors (expected pass rates), highest first; unknown = one half
advance    after so many passes' worth of draws, or once the open tier's estimated pass rate is high enough

The epsilon floor walks all tiers: a task filed under the wrong tier is still seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator

from snoozing_env.schedulers.band import BandOptions
from snoozing_env.schedulers.difficulty import Columns
from snoozing_env.schedulers.dots import DotsOptions
from snoozing_env.schedulers.learnability import LearnabilityOptions
from snoozing_env.schedulers.lze import LzeOptions
from snoozing_env.schedulers.outcomes import OutcomeTable
from snoozing_env.schedulers.prioritized import PrioritizedOptions
from snoozing_env.schedulers.progress import ProgressOptions
from snoozing_env.schedulers.selector import Pool, Selector, one_by_one
from snoozing_env.schedulers.shared import SelectedConfig
from snoozing_env.schedulers.thompson import ThompsonOptions
from snoozing_env.schedulers.uniform import UniformOptions
from snoozing_env.types import Bools, Ints

InnerOptions = Annotated[
    UniformOptions
    | BandOptions
    | ThompsonOptions
    | LearnabilityOptions
    | PrioritizedOptions
    | ProgressOptions
    | LzeOptions
    | DotsOptions,
    Field(discriminator="kind"),
]


class StagedConfig(SelectedConfig):
    """Tiers by difficulty prior, opened one after the other."""

    kind: Literal["staged"] = "staged"
    inner: InnerOptions = UniformOptions()
    """Selector within the open tiers."""
    edges: tuple[float, ...] = (1 / 3, 2 / 3)
    """Pass rates between tiers, ascending; two edges make three tiers."""
    advance: Literal["rate", "schedule"] = "rate"
    """Open the next tier by the open one's estimated pass rate, or by draws."""
    threshold: float = Field(default=0.7, gt=0, le=1)
    """`rate`: mean estimated pass rate of the newest tier that opens the next."""
    min_visited: float = Field(default=0.5, gt=0, le=1)
    """`rate`: share of the tier that must have been seen first."""
    passes_per_tier: float = Field(default=3.0, gt=0)
    """`schedule`: draws per tier, as passes over the tasks open so far."""
    keep_open: bool = True
    """Earlier tiers stay selectable; False = only the newest."""

    @field_validator("edges")
    @classmethod
    def _ascending(cls, edges: tuple[float, ...]) -> tuple[float, ...]:
        if list(edges) != sorted(set(edges)) or not all(0 < e < 1 for e in edges):
            raise ValueError(
                f"edges {list(edges)}: ascending pass rates between 0 and 1 are wanted, e.g. [0.33, 0.67]"
            )
        return edges

    def selector(self, pool: Pool) -> Selector:
        return Staged(self, self.inner.selector(pool), pool)


class Staged:
    def __init__(self, config: StagedConfig, inner: Selector, pool: Pool) -> None:
        self.config, self.inner, self.pool = config, inner, pool
        given = [0.5 if t.difficulty_prior is None else t.difficulty_prior for t in pool.tasks]
        tier = len(config.edges) - np.searchsorted(np.asarray(config.edges), given, side="right")
        # Empty tiers are closed up, so that none has to be waited for.
        self.tier_N = np.unique(tier, return_inverse=True)[1].reshape(-1).astype(np.int8)
        self._size_K = np.bincount(self.tier_N)
        self.stage = 0
        """Newest open tier."""
        self._draws = 0
        """Since it opened."""

    @property
    def n_tiers(self) -> int:
        return len(self._size_K)

    def choose(self, n: int, open_N: Bools) -> Ints:
        while self.stage + 1 < self.n_tiers and self._may_advance():
            self.stage, self._draws = self.stage + 1, 0
        tiers = [self._open_now()]
        tiers += [self.tier_N == k for k in range(self.stage + 1, self.n_tiers)]
        tiers += [self.tier_N == k for k in range(self.stage)] if not self.config.keep_open else []
        chosen = np.zeros(0, np.int64)
        for tier_N in tiers:
            if len(chosen) == n:
                break
            more = self.inner.choose(n - len(chosen), open_N & tier_N)
            chosen = np.concatenate([chosen, more])
        return chosen

    def choose_each(self, plan_D: Ints, open_N: Bools, dataset_N: NDArray[np.int32]) -> Ints:
        return one_by_one(self, plan_D, open_N, dataset_N)

    def _open_now(self) -> Bools:
        return self.tier_N <= self.stage if self.config.keep_open else self.tier_N == self.stage

    def _may_advance(self) -> bool:
        if self.config.advance == "schedule":
            open_size = (
                self._size_K[: self.stage + 1].sum() if self.config.keep_open else self._size_K[self.stage]
            )
            return self._draws >= self.config.passes_per_tier * int(open_size)
        seen = np.flatnonzero((self.tier_N == self.stage) & (self.pool.difficulty.visits_N > 0))
        if len(seen) < self.config.min_visited * self._size_K[self.stage]:
            return False
        return float(self.pool.reversion.rates(seen).mean()) >= self.config.threshold

    def drew(self, task_B: Ints) -> None:
        self._draws += len(task_B)
        self.inner.drew(task_B)

    def observe(self, table: OutcomeTable, *, easy_B: Bools) -> None:
        self.inner.observe(table, easy_B=easy_B)

    def columns(self) -> Columns:
        return self.inner.columns()

    def state(self) -> dict[str, Any]:
        return {"stage": self.stage, "draws": self._draws, "inner": self.inner.state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.stage = min(int(state["stage"]), self.n_tiers - 1)
        self._draws = int(state["draws"])
        self.inner.restore(state["inner"])

    def metrics(self) -> dict[str, float]:
        return {"stage": float(self.stage), **self.inner.metrics()}
