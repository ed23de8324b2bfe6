"""What a selector is: it ranks tasks, and nothing else. Snoozing, passes, the floor and in-flight tasks are the
curriculum's business, so a new selection rule is one small file.

keys(block) ─▶ [block] float32, smaller = sooner ─▶ the n smallest over all open tasks, ties broken at random
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from snoozing_env.schedulers.difficulty import Columns, Difficulty
from snoozing_env.schedulers.outcomes import OutcomeTable
from snoozing_env.schedulers.reversion import Floats32, Reversion
from snoozing_env.types import Bools, Ints, TaskInfo

BLOCK = 1 << 15
"""Tasks ranked at once: a dozen float32 temporaries of this size stay in the second-level cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """What a selector may read."""

    tasks: Sequence[TaskInfo]
    difficulty: Difficulty
    reversion: Reversion
    """The same estimates, faded by time since the last visit."""
    rng: np.random.Generator
    """The selector's own; saved and restored by the curriculum."""


class Selector(Protocol):
    """Chooses among open tasks and may keep columns of its own."""

    def choose(self, n: int, open_N: Bools) -> Ints:
        """min(n, open) distinct tasks where `open_N`, the most wanted first."""
        ...

    def choose_each(self, plan_D: Ints, open_N: Bools, dataset_N: NDArray[np.int32]) -> Ints:
        """`choose` for plan_D[d] open tasks of each dataset d."""
        ...

    def drew(self, task_B: Ints) -> None:
        """Told of every drawn task, whoever chose it."""
        ...

    def observe(self, table: OutcomeTable, *, easy_B: Bools) -> None:
        """Told of every judged group, before the estimates take it in."""
        ...

    def columns(self) -> Columns:
        """Live [N] arrays of its own, saved by name."""
        ...

    def state(self) -> dict[str, Any]:
        """JSON-able rest."""
        ...

    def restore(self, state: Mapping[str, Any]) -> None: ...

    def metrics(self) -> dict[str, float]: ...


class RankingSelector:
    """Base of selectors whose whole rule is a key per task."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self._keys_N = np.empty(len(pool.tasks), np.float32)

    def keys(self, part: slice) -> Floats32:
        """[part] finite keys, smaller = sooner."""
        raise NotImplementedError

    def choose(self, n: int, open_N: Bools) -> Ints:
        return self.first(n, self.rank(open_N))

    def choose_each(self, plan_D: Ints, open_N: Bools, dataset_N: NDArray[np.int32]) -> Ints:
        """Keys are computed once for all datasets; once for each took a mixture of four over its budget at 10^6 tasks."""
        keys_N = self.rank(open_N)
        chosen = [
            self.first(int(plan_D[d]), np.where(dataset_N == d, keys_N, np.float32(np.inf)))
            for d in np.flatnonzero(plan_D)
        ]
        return np.concatenate([np.zeros(0, np.int64), *chosen])

    def first(self, n: int, keys_N: Floats32) -> Ints:
        """Up to n tasks with a key below inf."""
        return smallest(keys_N, n, self.pool.rng)

    def rank(self, open_N: Bools) -> Floats32:
        """[N] keys of open tasks, inf for the others; valid until the next call."""
        for start in range(0, len(self._keys_N), BLOCK):
            part = slice(start, start + BLOCK)
            self._keys_N[part] = np.where(open_N[part], self.keys(part), np.float32(np.inf))
        return self._keys_N

    def drew(self, task_B: Ints) -> None:
        """Nothing to note."""

    def observe(self, table: OutcomeTable, *, easy_B: Bools) -> None:
        """Nothing to keep."""

    def columns(self) -> Columns:
        return {}

    def state(self) -> dict[str, Any]:
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Nothing to restore."""

    def metrics(self) -> dict[str, float]:
        return {}


class AnyOpen(RankingSelector):
    """No rule: a random sample of what is open, which is what a curriculum falls back to (S11)."""

    def keys(self, part: slice) -> Floats32:
        return np.zeros(len(self._keys_N[part]), np.float32)


def one_by_one(selector: Selector, plan_D: Ints, open_N: Bools, dataset_N: NDArray[np.int32]) -> Ints:
    """`choose_each` of a selector whose choices in one dataset do not share work with those in another."""
    chosen = [selector.choose(int(plan_D[d]), open_N & (dataset_N == d)) for d in np.flatnonzero(plan_D)]
    return np.concatenate([np.zeros(0, np.int64), *chosen])


def smallest(keys_N: Floats32, n: int, rng: np.random.Generator) -> Ints:
    """[≤n] indices of the n smallest keys below inf, in order; ties are broken at random.

    A task set is often sorted by source, so breaking ties by position would draw one dataset first.
    """
    if n <= 0:
        return np.zeros(0, np.int64)
    candidate = np.flatnonzero(keys_N <= _bound(keys_N, n))
    if len(candidate) < n:  # the bound was a guess from a sample
        candidate = np.flatnonzero(keys_N < np.inf)
    keys = keys_N[candidate]
    if len(candidate) > n:
        edge = np.partition(keys, n - 1)[n - 1]
        inside, tied = np.flatnonzero(keys < edge), np.flatnonzero(keys == edge)
        inside = np.concatenate([inside, sample(tied, n - len(inside), rng)])
        candidate, keys = candidate[inside], keys[inside]
    return candidate[np.argsort(keys, kind="stable")]


def _bound(keys_N: Floats32, n: int) -> float:
    """A key that probably has a few more than n keys at or below it, read off a sample."""
    stride = len(keys_N) // 4096
    largest = float(np.finfo(np.float32).max)
    if stride < 8:
        return largest
    some = keys_N[::stride]
    rank = 2 * n // stride + 16
    return min(float(np.partition(some, rank)[rank]), largest) if rank < len(some) else largest


def sample(items: Ints, n: int, rng: np.random.Generator) -> Ints:
    """[≤n] distinct items at random."""
    if n >= len(items):
        return items
    return items[rng.choice(len(items), n, replace=False)]
