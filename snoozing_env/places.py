"""The places of one batch, as decisions: whose each is, who lends his, which groups fill them (M1, M2).

Under exact shares of the batch a place belongs to a dataset and only its groups fill it. A dataset that has nobody
awake, or that has cost `lend_after` groups a place without filling it, lends its open places to the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import ceil

import numpy as np

from snoozing_env.buffers.fresh import FreshBuffer
from snoozing_env.gates import LadderConfig
from snoozing_env.schedulers import Curriculum, Scheduler
from snoozing_env.schedulers.mixture import fill
from snoozing_env.types import Group


def places_of(
    scheduler: Scheduler, batch: int, ladder: LadderConfig, shares: Mapping[str, int] | None = None
) -> Places:
    """Whose the places of one more batch are. The scheduler is asked, and counts them as given; with `shares` it was
    asked before."""
    if not isinstance(scheduler, Curriculum) or not scheduler.exact_batches:
        return Places(batch)
    mixture, tasks = scheduler.config.mixture, scheduler.tasks
    # Half the ladder at most, or a step would end with a partial batch before anybody lends.
    patience = ladder.partial_after / 2
    return Places(
        batch,
        scheduler.batch_shares(batch) if shares is None else shares,
        lend_after=patience if mixture is None else min(mixture.lend_after, patience),
        dataset_of=lambda task: tasks[task].dataset,
    )


def settle(scheduler: Scheduler, places: Places, trained: Iterable[Group]) -> None:
    """Tell the scheduler what became of the places that it gave out."""
    if places.shares and isinstance(scheduler, Curriculum):
        by_dataset = Counter(places.dataset_of(group.outcome.task) for group in trained)
        scheduler.settle_batch(places.shares, by_dataset, places.barren)


class Places:
    """The places of one batch: each a dataset's own under exact shares, anybody's otherwise."""

    def __init__(
        self,
        batch: int,
        shares: Mapping[str, int] | None = None,
        *,
        lend_after: float = 0.0,
        dataset_of: Callable[[int], str] = lambda task: "",
    ) -> None:
        self.batch = batch
        self.shares: Mapping[str, int] = shares or {}
        """Places by dataset; empty = nobody's in particular."""
        self.dataset_of = dataset_of
        self._lend_after = lend_after
        self.open = {name: share for name, share in self.shares.items() if share}
        """Places that wait for a group of their own dataset."""
        self.free = batch - sum(self.open.values())
        """Places that any group may fill."""
        self._worth = dict(self.open)
        """Places by dataset that its groups are generated for."""
        self._lent: set[str] = set()
        self.barren: set[str] = set()
        """Datasets that cost too many groups for a place."""
        self._cost = Counter[str]()

    def of(self, batch: int, shares: Mapping[str, int]) -> Places:
        """Untouched places of the same datasets."""
        return Places(batch, shares, lend_after=self._lend_after, dataset_of=self.dataset_of)

    def resized(self, batch: int) -> Places:
        """As many places as that, in the same proportions."""
        if batch == self.batch or not self.shares:
            return self if batch == self.batch else self.of(batch, {})
        share_D = np.array(list(self.shares.values()), np.int64)
        total = round(int(share_D.sum()) * batch / self.batch)
        scaled_D = fill(
            total, share_D.astype(np.float64) * (batch / self.batch), np.full(len(share_D), batch)
        )
        return self.of(batch, dict(zip(self.shares, scaled_D.tolist(), strict=True)))

    @property
    def missing(self) -> int:
        return self.free + sum(self.open.values())

    @property
    def givers(self) -> Mapping[str, int] | None:
        """Who is asked to fill free places, in proportion to its share; None = wherever the scheduler likes."""
        return {n: s for n, s in self.shares.items() if s and n not in self._lent} or None

    def budget(self, name: str) -> int:
        """Groups that a dataset's places may still cost."""
        return max(ceil(self._lend_after * self.shares[name] - self._cost[name]), 1)

    def fill(self, buffer: FreshBuffer, *, version: int) -> list[Group]:
        """Groups from the buffer, oldest first, each into a place that it may have."""
        groups = (
            buffer.take_of(self.open, version=version, dataset_of=lambda g: self.dataset_of(g.outcome.task))
            if self.open
            else []
        )
        for group in groups:
            self._close(self.dataset_of(group.outcome.task))
        rest = buffer.take(self.free, version=version)
        self.free -= len(rest)
        return groups + rest

    def _close(self, name: str) -> None:
        self.open[name] -= 1
        if not self.open[name]:
            del self.open[name]

    def choose(self, groups: Sequence[Group]) -> list[Group]:
        """Of finished groups, in their order, those that the places take: own places first, then free ones."""
        own = [group for group in groups if self._give(self.dataset_of(group.outcome.task))]
        ids = {group.id for group in own}
        others = [group for group in groups if group.id not in ids][: self.free]
        self.free -= len(others)
        ids.update(group.id for group in others)
        return [group for group in groups if group.id in ids]

    def _give(self, name: str) -> bool:
        if name not in self.open:
            return False
        self._close(name)
        return True

    def lend(self, names: Iterable[str], *, filled: Mapping[str, int] | None = None) -> None:
        """These have nothing to give: their open places are anybody's for this batch, but for those that `filled`
        counts, by dataset, as taken by groups that wait."""
        for name in names:
            self._lent.add(name)
            share = self.open.pop(name, 0)
            kept = min((filled or {}).get(name, 0), share)
            self.free += share - kept
            if kept:
                self.open[name] = kept
            self._worth[name] = kept

    def lend_dry(
        self, wanted: Iterable[str], drawn: Sequence[int], *, filled: Mapping[str, int] | None = None
    ) -> bool:
        """After a draw that came up short: who was wanted and gave nothing has nobody awake. True = there was one."""
        given = {self.dataset_of(task) for task in drawn}
        dry = [name for name in wanted if name not in given]
        self.lend(dry, filled=filled)
        return bool(dry)

    def charge(self, tasks: Iterable[int], *, filled: Mapping[str, int] | None = None) -> None:
        """Count generated groups; a dataset that costs more than its places are worth lends those not yet filled."""
        if not self.shares:
            return
        self._cost.update(self.dataset_of(task) for task in tasks)
        waiting = filled or {}
        dear = [
            name
            for name, n in self.open.items()
            if waiting.get(name, 0) < n and self._cost[name] >= self._lend_after * self._worth[name]
        ]
        self.barren.update(dear)
        self.lend(dear, filled=filled)
