"""The clock of selectors that walk no passes: offered draws over dataset size (Z7).

A walk that draws n of the A awake tasks passes by the sleepers among them, which lets every sleeper's turn go by as
well: n draws offer n·N/A tasks, n/A of a pass. Counting draws alone (n/N) would keep the sleepers of a mostly mastered
dataset asleep many times longer than the same factor does in passes, long enough for a policy to forget them all.

Offered, not taken: a dataset whose tasks all sleep gives nothing, and if only taken draws counted, its clock would
stop and they would sleep for ever. Without a mixture every task is offered alike, so all datasets are in the same
pass; with one, a dataset is offered its share of each draw, and one that sleeps as a whole goes by its size, or with
the rest of the pool where that is faster. No draw goes further than one pass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from snoozing_env.types import Floats, Ints, TaskInfo

ROUNDING = 1e-9
"""A pass that is complete but for the rounding of its fractions is complete."""


class DatasetClock:
    """One pass counter per dataset."""

    def __init__(self, tasks: Sequence[TaskInfo]) -> None:
        names: dict[str, int] = {}
        dataset = [names.setdefault(task.dataset, len(names)) for task in tasks]
        self.names = tuple(names)
        self.dataset_N = np.asarray(dataset, np.int32)
        self.size_D = np.bincount(self.dataset_N, minlength=len(names)).astype(np.int64)
        self._passes_D = np.zeros(len(names))
        self._number_D = np.zeros(len(names), np.int64)

    def advance(self, offered: int | Floats, awake: int | Ints) -> None:
        """Count draws, [D] of them or a number that the whole pool shared, over the tasks that were awake for them."""
        if isinstance(offered, int):
            part = offered / (awake or len(self.dataset_N))
        else:
            pool = float(offered.sum()) / max(int(np.sum(awake)), 1)
            part = np.where(awake, offered / np.maximum(awake, 1), np.maximum(offered / self.size_D, pool))
        self._passes_D += np.minimum(part, 1.0)
        self._number_D = np.floor(self._passes_D + ROUNDING).astype(np.int64)

    def count(self, task_B: Ints) -> Ints:
        """[D] how many of the tasks are of each dataset."""
        return np.bincount(self.dataset_N[task_B], minlength=len(self.names))

    def now(self, task_B: Ints) -> Ints:
        """[B] the pass that each task's dataset is in."""
        return self._number_D[self.dataset_N[task_B]]

    def now_N(self) -> int | Ints:
        """The pass of every task, as one number where all share it (a gather costs 2 ms at 10^6 tasks)."""
        first = int(self._number_D[0])
        return first if (self._number_D == first).all() else self._number_D[self.dataset_N]

    @property
    def position(self) -> float:
        """Passes over the whole pool, the fraction of the current one included."""
        return float((self._passes_D * self.size_D).sum() / self.size_D.sum())

    def state(self) -> dict[str, float]:
        """Passes per dataset name."""
        return dict(zip(self.names, self._passes_D.tolist(), strict=True))

    def restore(self, state: Mapping[str, Any]) -> None:
        """Datasets that the state does not know start at the latest pass of those it does."""
        latest = max((float(passes) for passes in state.values()), default=0.0)
        self._passes_D[:] = [float(state.get(name, latest)) for name in self.names]
        self.advance(0, 0)
