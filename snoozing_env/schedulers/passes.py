"""Shuffled passes over a set of tasks: the clock that snoozing counts in.

    order   [ t7 t2 t9 | t4 t0 t5 … ]     cursor moves right; at the end a new shuffle begins the next pass
    owed    [ t1 ]                        offered while in flight; first in line at the next draw

A task is *offered* once per pass. What it does with the offer is decided outside: asleep tasks let it go by
(that is one skip), busy ones are owed it, everything else is drawn.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from snoozing_env.types import Bools, Ints

IntColumn = NDArray[np.int32]


class Doorkeeper(Protocol):
    """Says which offered tasks sleep through this pass."""

    def asleep(self, task_B: Ints, pass_number: int) -> Bools:
        """[B] True where the task lets this pass's offer go by."""
        ...


class PassQueue:
    """A seeded walk through shuffled passes; O(tasks scanned) per draw, never O(N) unless it must be."""

    def __init__(self, n: int, rng: np.random.Generator) -> None:
        self._rng = rng
        self.order_N: IntColumn = rng.permutation(n).astype(np.int32)
        self.cursor = 0
        self.number = 0
        """Pass that is being walked, from 0."""
        self.owed: IntColumn = np.zeros(0, np.int32)

    @property
    def position(self) -> float:
        """Passes walked so far, the fraction of the current one included."""
        return self.number + self.cursor / max(len(self.order_N), 1)

    def take(self, n: int, *, busy_N: Bools, door: Doorkeeper) -> tuple[Ints, Ints]:
        """Up to n distinct, awake, idle tasks in order, and the pass each was drawn in; marks them busy.

        Returns fewer when fewer are open: a draw that starts with a pass ends with it at the latest, any other may
        cross one pass end. So no draw counts more than one pass for a sleeper, and a draw of the whole pool is a pass.
        """
        owed = self.take_owed(n, busy_N=busy_N, door=door)
        pass_B = np.full(len(owed), self.number)
        ahead, ahead_pass_B = self.walk(n - len(owed), busy_N=busy_N, door=door)
        return np.concatenate([owed.astype(np.int64), ahead]), np.concatenate([pass_B, ahead_pass_B])

    def walk(self, n: int, *, busy_N: Bools, door: Doorkeeper, owe_busy: bool = True) -> tuple[Ints, Ints]:
        """`take` without the owed ones. Busy tasks on the way are owed their offer unless `owe_busy` says that
        whoever drew them was their offer."""
        picked: list[IntColumn] = [self.owed[:0]]
        passes: list[Ints] = [np.zeros(0, np.int64)]
        may_cross = 0 < self.cursor < len(self.order_N)
        left = n
        if left and self.cursor == len(self.order_N):
            self._begin_pass()
        while left > 0:
            if self.cursor == len(self.order_N):
                if not may_cross:
                    break
                may_cross = False
                self._begin_pass()
            taken = self._take_ahead(left, busy_N, door, owe_busy)
            picked.append(taken)
            passes.append(np.full(len(taken), self.number))
            left -= len(taken)
        return np.concatenate(picked).astype(np.int64), np.concatenate(passes)

    def put_first(self, task: int) -> None:
        """Offer a task again before anything else (its group could not be judged)."""
        self._owe(np.array([task], np.int32), front=True)

    def state(self) -> dict[str, Any]:
        """JSON-able; `order_N` is saved as a column."""
        return {"pass_number": self.number, "cursor": self.cursor, "owed": self.owed.tolist()}

    def restore(self, state: Mapping[str, Any], order: Ints, to_new: Ints, *, fresh: Ints) -> None:
        """Rebuild the walk in a new task order: `to_new` maps saved indices (-1 = gone), fresh tasks join the current
        pass at random."""
        cursor = int(state["cursor"])
        done, ahead = to_new[order[:cursor]], to_new[order[cursor:]]
        done, ahead = done[done >= 0], ahead[ahead >= 0]
        if len(fresh):
            ahead = self._rng.permutation(np.concatenate([ahead, fresh]))
        owed = to_new[np.asarray(state["owed"], np.int64)]
        self.order_N = np.concatenate([done, ahead]).astype(np.int32)
        self.cursor = len(done)
        self.number = int(state["pass_number"])
        self.owed = owed[owed >= 0].astype(np.int32)

    def _begin_pass(self) -> None:
        self.number += 1
        self.cursor = 0
        self.order_N = self._rng.permutation(self.order_N)

    def take_owed(self, n: int, *, busy_N: Bools, door: Doorkeeper) -> IntColumn:
        """Up to n owed tasks that are idle and awake; marks them busy."""
        if not len(self.owed):
            return self.owed
        asleep = door.asleep(self.owed.astype(np.int64), self.number)
        open_positions = np.flatnonzero(~asleep & ~busy_N[self.owed])[:n]
        taken = self.owed[open_positions]
        keep = ~asleep
        keep[open_positions] = False
        self.owed = self.owed[keep]
        busy_N[taken] = True
        return taken

    def _take_ahead(self, n: int, busy_N: Bools, door: Doorkeeper, owe_busy: bool) -> IntColumn:
        """Draw from one window past the cursor and move it."""
        window = self.order_N[self.cursor : self.cursor + max(4 * n, 1024)]
        awake = ~door.asleep(window.astype(np.int64), self.number)
        busy = busy_N[window]
        open_positions = np.flatnonzero(awake & ~busy)[:n]
        scanned = int(open_positions[-1]) + 1 if len(open_positions) == n else len(window)
        taken = window[open_positions]
        busy_N[taken] = True
        if owe_busy:
            self._owe(window[:scanned][(awake & busy)[:scanned]])
        self.cursor += scanned
        return taken

    def _owe(self, task_B: IntColumn, *, front: bool = False) -> None:
        fresh = task_B[~np.isin(task_B, self.owed)]
        if len(fresh):
            self.owed = np.concatenate([fresh, self.owed] if front else [self.owed, fresh])
