"""Finished groups as columns: what B outcomes say, without a Python loop over rollouts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from snoozing_env.errors import OutcomeError
from snoozing_env.types import Bools, Floats, GroupOutcome, Ints, TaskInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeTable:
    """B groups of distinct tasks, reduced over their valid rollouts."""

    task_B: Ints
    size_B: Ints
    """Rollouts dispatched per group."""
    valid_B: Ints
    """Valid rollouts per group."""
    sum_B: Floats
    """Summed valid rewards."""
    min_B: Floats
    max_B: Floats
    version_B: Ints

    def where(self, keep_B: Bools) -> OutcomeTable:
        return OutcomeTable(**{name: getattr(self, name)[keep_B] for name in self.__slots__})


def tabulate(outcomes: Sequence[GroupOutcome], tasks: Sequence[TaskInfo]) -> OutcomeTable:
    """Reduce B outcomes to columns.

    Raises:
        OutcomeError: a valid reward is NaN, infinite or outside [0, 1]; names the task's key and the value (D2).
    """
    task_B = np.fromiter((o.task for o in outcomes), np.int64, len(outcomes))
    size_B = np.fromiter((o.rewards_G.size for o in outcomes), np.int64, len(outcomes))
    rewards: Floats = np.concatenate([o.rewards_G for o in outcomes])
    valid: Bools = np.concatenate([o.valid_G for o in outcomes if o.valid_G is not None])
    bad = np.flatnonzero(valid & ~((rewards >= -1e-9) & (rewards <= 1 + 1e-9)))
    if len(bad):
        first = int(bad[0])
        group = int((np.cumsum(size_B) <= first).sum())
        raise OutcomeError(
            f"task {tasks[int(task_B[group])].key!r}: reward {float(rewards[first])} is not in [0, 1]; fix the environment's "
            "reward, or mark the rollout invalid if no verdict was reached"
        )
    starts = np.concatenate([[0], np.cumsum(size_B)[:-1]])
    return OutcomeTable(
        task_B=task_B,
        size_B=size_B,
        valid_B=np.add.reduceat(valid.astype(np.int64), starts),
        sum_B=np.add.reduceat(np.where(valid, rewards, 0.0), starts),
        min_B=np.minimum.reduceat(np.where(valid, rewards, np.inf), starts),
        max_B=np.maximum.reduceat(np.where(valid, rewards, -np.inf), starts),
        version_B=np.fromiter((o.version for o in outcomes), np.int64, len(outcomes)),
    )


def distinct_chunks(outcomes: Iterable[GroupOutcome]) -> Iterator[list[GroupOutcome]]:
    """Split at a repeated task, so that each chunk can be learned as columns."""
    chunk: list[GroupOutcome] = []
    seen: set[int] = set()
    for outcome in outcomes:
        if outcome.task in seen:
            yield chunk
            chunk, seen = [], set()
        chunk.append(outcome)
        seen.add(outcome.task)
    if chunk:
        yield chunk
