"""`lze`: Learning-Zone Energy and its forward pruner (S6).

energy = max(1 - p0, .05) · 4p(1-p) · (1 + .3 · min(2·momentum, 1)),  momentum = |p - ema|

p0 is the task's first pass rate (its prior until then), ema a slow average from p0, taken before the group
whose p it is compared with. A draw looks at n / ratio random candidates and keeps the n of most energy, as the
paper keeps 40 % of each batch. A task that was all correct twice in a row is pruned; a tenth of the pruned
tasks is checked again per pass, and one imperfect group brings a task back.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from snoozing_env.config import FrozenConfig
from snoozing_env.schedulers.difficulty import Columns
from snoozing_env.schedulers.outcomes import OutcomeTable
from snoozing_env.schedulers.reversion import Floats32
from snoozing_env.schedulers.selector import Pool, Selector, one_by_one, sample, smallest
from snoozing_env.schedulers.shared import SelectedConfig
from snoozing_env.types import Bools, Ints


class LzeOptions(FrozenConfig):
    """Energy, how much of it is kept, and the pruner."""

    kind: Literal["lze"] = "lze"
    ratio: float = Field(default=0.4, gt=0, le=1)
    """Share of the candidates that is kept."""
    anchor_floor: float = Field(default=0.05, ge=0, le=1)
    """Least initial difficulty."""
    momentum_weight: float = Field(default=0.3, ge=0)
    """How much a moving pass rate raises the energy."""
    ema_decay: float = Field(default=0.9, ge=0, lt=1)
    """Of the average that momentum is measured against."""
    signed: bool = False
    """Count only rising pass rates as momentum: forgetting is not learning. False = the paper's."""
    prune_after: int = Field(default=2, ge=1, le=255)
    """Consecutive all-correct groups that prune a task."""
    recheck_share: float = Field(default=0.1, ge=0, le=1)
    """Share of the pruned tasks that is checked again per pass."""

    def selector(self, pool: Pool) -> Selector:
        return Lze(self, pool)


class LzeConfig(LzeOptions, SelectedConfig):
    """Learning-Zone Energy; set difficulty.estimate = "last" to read p as the paper does."""

    kind: Literal["lze"] = "lze"


class Lze:
    def __init__(self, options: LzeOptions, pool: Pool) -> None:
        self.options, self.pool = options, pool
        n = len(pool.tasks)
        prior = pool.difficulty.last_N.copy()
        self.first_N, self.ema_N = prior, prior.copy()
        self.momentum_N = np.zeros(n, np.float32)
        """p - ema of the latest group, signed."""
        self.streak_N = np.zeros(n, np.uint8)
        """Consecutive all-correct groups, up to `prune_after`."""
        self._n_pruned = 0
        self._credit = 0.0
        """Re-checks of pruned tasks that are due; below zero when the floor has made more."""

    def energy(self, part: slice | Ints) -> Floats32:
        o, rate = self.options, self.pool.reversion.rates(part)
        momentum = self.momentum_N[part] * self.pool.reversion.fade(part)
        moved = np.maximum(momentum, np.float32(0)) if o.signed else np.abs(momentum)
        anchor = np.maximum(1 - self.first_N[part], np.float32(o.anchor_floor))
        boost = 1 + np.float32(o.momentum_weight) * np.minimum(2 * moved, np.float32(1))
        return anchor * 4 * rate * (1 - rate) * boost

    def choose(self, n: int, open_N: Bools) -> Ints:
        rng = self.pool.rng
        pruned_N = self.streak_N >= self.options.prune_after
        pruned = np.flatnonzero(open_N & pruned_N) if self._n_pruned else np.zeros(0, np.int64)
        rechecks = sample(pruned, min(n, max(0, int(self._credit))), rng)
        wanted = n - len(rechecks)
        candidates = sample(
            np.flatnonzero(open_N & ~pruned_N), int(np.ceil(wanted / self.options.ratio)), rng
        )
        best = candidates[smallest(-self.energy(candidates), wanted, rng)]
        chosen = np.concatenate([best, rechecks])
        if len(chosen) == n:
            return chosen
        rest = pruned[~np.isin(pruned, rechecks)]
        return np.concatenate([chosen, sample(rest, n - len(chosen), rng)])

    def choose_each(self, plan_D: Ints, open_N: Bools, dataset_N: NDArray[np.int32]) -> Ints:
        return one_by_one(self, plan_D, open_N, dataset_N)

    def drew(self, task_B: Ints) -> None:
        share = self.options.recheck_share * self._n_pruned
        again = int((self.streak_N[task_B] >= self.options.prune_after).sum())
        credit = self._credit + share * len(task_B) / len(self.streak_N) - again
        most = max(share, 1.0)
        self._credit = min(max(credit, -most), most)

    def observe(self, table: OutcomeTable, *, easy_B: Bools) -> None:
        task_B, o = table.task_B, self.options
        rate = table.sum_B / table.valid_B
        first = self.pool.difficulty.visits_N[task_B] == 0
        self.first_N[task_B] = np.where(first, rate, self.first_N[task_B])
        ema = np.where(first, rate, self.ema_N[task_B])
        self.momentum_N[task_B] = rate - ema
        self.ema_N[task_B] = o.ema_decay * ema + (1 - o.ema_decay) * rate
        before = self.streak_N[task_B]
        after = np.where(easy_B, np.minimum(before.astype(np.int64) + 1, o.prune_after), 0)
        self.streak_N[task_B] = after
        self._n_pruned += int((after >= o.prune_after).sum()) - int((before >= o.prune_after).sum())

    def columns(self) -> Columns:
        return {
            "lze_first": self.first_N,
            "lze_ema": self.ema_N,
            "lze_momentum": self.momentum_N,
            "lze_streak": self.streak_N,
        }

    def state(self) -> dict[str, Any]:
        return {"credit": self._credit}

    def restore(self, state: Mapping[str, Any]) -> None:
        self._credit = float(state["credit"])
        self._n_pruned = int((self.streak_N >= self.options.prune_after).sum())

    def metrics(self) -> dict[str, float]:
        return {"pruned_share": self._n_pruned / len(self.streak_N)}
