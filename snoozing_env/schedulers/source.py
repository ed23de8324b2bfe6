"""Where drawn tasks come from: passes alone, or a selector over a floor of passes.

uniform          owed ─▶ the pass
other kinds      owed ─▶ the pass (epsilon of the draw) ─▶ the selector ─▶ tasks that were to wait a pass

The floor is what keeps every rule from starving a task: within 1/epsilon passes of draws the walk has offered
every awake task once, whatever the selector thinks of it (S10, S11).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Protocol

import numpy as np

from snoozing_env.schedulers.clock import DatasetClock
from snoozing_env.schedulers.mixture import Mixture
from snoozing_env.schedulers.outcomes import OutcomeTable
from snoozing_env.schedulers.passes import PassQueue
from snoozing_env.schedulers.selector import Selector
from snoozing_env.schedulers.snooze import Snooze
from snoozing_env.types import Bools, Ints


class Source(Protocol):
    """Offers idle, awake tasks and tells which pass a task is in."""

    def take(self, n: int, busy_N: Bools) -> tuple[Ints, Ints]:
        """Up to n tasks, now busy, and the pass each is drawn in."""
        ...

    def now(self, task_B: Ints) -> int | Ints:
        """The pass of each task."""
        ...

    def now_N(self) -> int | Ints:
        """The pass of every task; one number where all share it."""
        ...

    @property
    def position(self) -> float:
        """Passes so far, as a fraction."""
        ...

    def drew(self, task_B: Ints, *, offered: int) -> None:
        """Every drawn task, woken sleepers included, and how many places the draw had to offer."""
        ...

    def wait(self, task_B: Ints) -> None:
        """Tasks whose groups could not be judged too often in a row: not before their next pass."""
        ...

    def observe(self, table: OutcomeTable, *, easy_B: Bools) -> None: ...


class Passes:
    """`uniform`: the pass queue as it is."""

    def __init__(self, queue: PassQueue, snooze: Snooze) -> None:
        self._queue, self._snooze = queue, snooze

    def take(self, n: int, busy_N: Bools) -> tuple[Ints, Ints]:
        return self._queue.take(n, busy_N=busy_N, door=self._snooze)

    def now(self, task_B: Ints) -> int:
        return self._queue.number

    def now_N(self) -> int:
        return self._queue.number

    @property
    def position(self) -> float:
        return self._queue.position

    def drew(self, task_B: Ints, *, offered: int) -> None:
        """The queue counts for itself."""

    def wait(self, task_B: Ints) -> None:
        """The walk is past them already."""

    def observe(self, table: OutcomeTable, *, easy_B: Bools) -> None:
        """Passes learn nothing."""


class Selection:
    """A selector over a floor of passes. Passes are counted by offered draws per dataset (Z7)."""

    def __init__(
        self,
        queue: PassQueue,
        snooze: Snooze,
        selector: Selector,
        clock: DatasetClock,
        *,
        epsilon: float,
        fallback: Selector,
        mixture: Mixture | None = None,
    ) -> None:
        self.mixture = mixture
        self.fallen_back = False
        """Draws come from the floor alone, and from `fallback` where a mixture says which dataset gives (S11)."""
        self._fallback = fallback
        self._offered_D = clock.size_D / clock.size_D.sum()
        """Share of the running draw that each dataset is offered."""
        self._queue, self._snooze, self._clock, self.selector = queue, snooze, clock, selector
        self._epsilon = epsilon
        self._awake: int | Ints = clock.size_D.copy() if mixture is not None else len(clock.dataset_N)
        """Tasks that are awake for the running draw: all, or [D] of each dataset."""
        self._credit = 0.0
        """Draws owed to the floor; below one between draws."""
        self._waiting = np.zeros(0, np.int64)
        self._waits_for = np.zeros(0, np.int64)
        """Pass before which each waiting task is not selected."""
        self.floor_groups = 0

    # -- drawing ----------------------------------------------------------------------------------------

    def take(self, n: int, busy_N: Bools, missing: Mapping[str, int] | None = None) -> tuple[Ints, Ints]:
        """With `missing`, only tasks of the datasets that a batch still lacks."""
        awake_N = ~self._snooze.asleep_N(self._clock.now_N())
        self._awake = (
            int(np.count_nonzero(awake_N))
            if self.mixture is None
            else self._clock.count(np.flatnonzero(awake_N))
        )
        closed_N = busy_N if missing is None else busy_N | ~self.of(missing)
        owed = self._queue.take_owed(n, busy_N=closed_N, door=self).astype(np.int64)
        due = self._snooze.due(
            min(int(self._snooze.config.recheck_share * n), n - len(owed)), awake_N & ~closed_N
        )
        closed_N[due] = True
        floor = self._take_floor(n - len(owed) - len(due), closed_N, held=missing is not None)
        task_B = np.concatenate([owed, due, floor])
        if left := n - len(task_B):
            chosen = self._choose(left, closed_N, awake_N, drawn=task_B, missing=missing)
            task_B = np.concatenate([task_B, chosen])
        busy_N[task_B] = True
        return task_B, self._clock.now(task_B)

    def batch_shares(self, batch: int) -> dict[str, int]:
        """The mixture's next batch; empty without one."""
        awake = np.flatnonzero(~self._snooze.asleep_N(self._clock.now_N()))
        return {} if self.mixture is None else self.mixture.batch_shares(batch, self._clock.count(awake))

    def settle_batch(
        self, asked: Mapping[str, int], trained: Mapping[str, int], barren: Collection[str]
    ) -> None:
        """What became of it."""
        if self.mixture is not None:
            self.mixture.settle(asked, trained, barren)

    def of(self, wanted: Mapping[str, int]) -> Bools:
        """[N] True for tasks of the datasets with a count above zero."""
        wanted_D = np.array([wanted.get(name, 0) > 0 for name in self._clock.names])
        return wanted_D[self._clock.dataset_N]

    def _take_floor(self, n: int, busy_N: Bools, *, held: bool) -> Ints:
        """The floor's part of n; while `held`, it only adds up, for the walk would pass by the other datasets."""
        if self.fallen_back:
            due = 0 if held or self.mixture is not None else n
        else:
            self._credit += self._epsilon * n
            due = 0 if held else min(int(self._credit), n)
            self._credit -= due  # what the walk cannot give, it cannot owe: nothing else is awake
        if not due:
            return np.zeros(0, np.int64)
        task_B, _ = self._queue.walk(due, busy_N=busy_N, door=self, owe_busy=self.fallen_back)
        self.floor_groups += len(task_B)
        return task_B

    def _choose(
        self, n: int, busy_N: Bools, awake_N: Bools, *, drawn: Ints, missing: Mapping[str, int] | None
    ) -> Ints:
        """n tasks from the selector, then from those that were to wait a pass."""
        waiting = self._still_waiting()
        open_N = awake_N & ~busy_N
        open_N[waiting] = False
        if self.mixture is None:
            task_B = self._chooser.choose(n, open_N)
        else:
            task_B = self._choose_mixed(n, open_N, drawn=drawn, missing=missing)
        if len(task_B) < n:
            rest = waiting[~busy_N[waiting] & awake_N[waiting]][: n - len(task_B)]
            task_B = np.concatenate([task_B, rest])
        busy_N[task_B] = True
        return task_B

    @property
    def _chooser(self) -> Selector:
        return self._fallback if self.fallen_back else self.selector

    def _choose_mixed(self, n: int, open_N: Bools, *, drawn: Ints, missing: Mapping[str, int] | None) -> Ints:
        mixture = self.mixture
        if mixture is None:
            return np.zeros(0, np.int64)
        drawn_D, open_D = self._clock.count(drawn), self._clock.count(np.flatnonzero(open_N))
        total = n + len(drawn)
        if missing is None:
            awake_D = np.asarray(self._awake, np.int64)
            self._offered_D = mixture.shares(awake_D)
            plan_D = mixture.plan(total, drawn_D=drawn_D, open_D=open_D, awake_D=awake_D)
        else:
            plan_D = mixture.missing(total, missing, drawn_D=drawn_D, open_D=open_D)
            # Who lacks is offered, asleep or not, or its clock would stop and its tasks sleep for ever (Z7).
            self._offered_D = mixture.lacking(missing)
        return self._chooser.choose_each(plan_D, open_N, self._clock.dataset_N)

    def _still_waiting(self) -> Ints:
        if len(self._waiting):
            keep = self._waits_for > self._clock.now(self._waiting)
            self._waiting, self._waits_for = self._waiting[keep], self._waits_for[keep]
        return self._waiting

    def asleep(self, task_B: Ints, pass_number: int) -> Bools:
        """The queue's door: its own lap number means nothing here."""
        return self._snooze.asleep(task_B, self._clock.now(task_B))

    # -- the clock --------------------------------------------------------------------------------------

    def now(self, task_B: Ints) -> Ints:
        return self._clock.now(task_B)

    def now_N(self) -> int | Ints:
        return self._clock.now_N()

    @property
    def position(self) -> float:
        return self._clock.position

    def drew(self, task_B: Ints, *, offered: int) -> None:
        self._clock.advance(offered if self.mixture is None else offered * self._offered_D, self._awake)
        self.selector.drew(task_B)

    def wait(self, task_B: Ints) -> None:
        if len(task_B):
            keep = ~np.isin(self._waiting, task_B)
            self._waiting = np.concatenate([self._waiting[keep], task_B])
            self._waits_for = np.concatenate([self._waits_for[keep], self._clock.now(task_B) + 1])

    def observe(self, table: OutcomeTable, *, easy_B: Bools) -> None:
        self.selector.observe(table, easy_B=easy_B)

    # -- state ------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """JSON-able; task indices are in the order of this run's task list."""
        return {
            "clock": self._clock.state(),
            "credit": self._credit,
            "waiting": self._waiting.tolist(),
            "waits_for": self._waits_for.tolist(),
            "floor_groups": self.floor_groups,
            "selector": self.selector.state(),
            "mixture": {} if self.mixture is None else self.mixture.state(),
        }

    def restore(self, state: Mapping[str, Any], to_new: Ints) -> None:
        """`to_new` maps a saved task index to this run's, -1 where the task is gone."""
        self._clock.restore(state["clock"])
        self._credit, self.floor_groups = float(state["credit"]), int(state["floor_groups"])
        waiting = to_new[np.asarray(state["waiting"], np.int64)]
        self._waiting = waiting[waiting >= 0]
        self._waits_for = np.asarray(state["waits_for"], np.int64)[waiting >= 0]
        self.selector.restore(state["selector"])
        if self.mixture is not None:
            self.mixture.restore(state["mixture"])
