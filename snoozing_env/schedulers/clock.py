"""The clock of selectors that walk no passes: draws offered from a dataset over its size (Z7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from snoozing_env.types import Ints, TaskInfo


class DatasetClock:
    """One pass counter per dataset: after as many draws as a dataset has tasks, its next pass begins."""

    def __init__(self, tasks: Sequence[TaskInfo]) -> None:
        names: dict[str, int] = {}
        dataset = [names.setdefault(task.dataset, len(names)) for task in tasks]
        self.names = tuple(names)
        self._dataset_N = np.asarray(dataset, np.int32)
        self._size_D = np.bincount(self._dataset_N, minlength=len(names)).astype(np.int64)
        self._draws_D = np.zeros(len(names), np.int64)
        """Draws within the current pass."""
        self._number_D = np.zeros(len(names), np.int64)

    def advance(self, task_B: Ints) -> None:
        """Count drawn tasks as offered."""
        if len(self.names) == 1:
            self._draws_D[0] += len(task_B)
        else:
            self._draws_D += np.bincount(self._dataset_N[task_B], minlength=len(self.names))
        self._number_D += self._draws_D // self._size_D
        self._draws_D %= self._size_D

    def now(self, task_B: Ints) -> Ints:
        """[B] the pass that each task's dataset is in."""
        return self._number_D[self._dataset_N[task_B]]

    def now_N(self) -> int | Ints:
        """The pass of every task, as one number while there is one dataset (a gather costs 2 ms at 10^6 tasks)."""
        return int(self._number_D[0]) if len(self.names) == 1 else self._number_D[self._dataset_N]

    @property
    def position(self) -> float:
        """Passes over the whole pool, the fraction of the current one included."""
        return float((self._number_D * self._size_D + self._draws_D).sum() / self._size_D.sum())

    def state(self) -> dict[str, list[int]]:
        """Whole passes and draws since, per dataset name."""
        rows = zip(self.names, self._number_D.tolist(), self._draws_D.tolist(), strict=True)
        return {name: [number, draws] for name, number, draws in rows}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Datasets that the state does not know start at the latest pass of those it does: their tasks owe no sleep."""
        latest = max((int(number) for number, _ in state.values()), default=0)
        for i, name in enumerate(self.names):
            number, draws = state.get(name, (latest, 0))
            self._number_D[i] = number
            self._draws_D[i] = min(int(draws), int(self._size_D[i]) - 1)
