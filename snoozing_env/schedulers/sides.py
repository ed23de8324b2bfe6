"""Which tasks reward which of two opposed behaviours: across datasets, or hidden inside one (M4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from snoozing_env.errors import ConfigError, did_you_mean
from snoozing_env.types import Floats, TaskInfo


class Sides:
    """Which side each task is on; side 2i opposes side 2i + 1."""

    def __init__(self, pairs: Sequence[tuple[str, str]], tasks: Sequence[TaskInfo]) -> None:
        self.names = tuple(name for pair in pairs for name in pair)
        index = {name: s for s, name in enumerate(self.names)}
        side = [_side(task, index) for task in tasks] if pairs else [-1] * len(tasks)
        self.side_N = np.asarray(side, np.int16)
        """[N] -1 = on no side."""
        self.size_S = np.bincount(self.side_N[self.side_N >= 0], minlength=len(self.names))
        known = {label for t in tasks for label in (t.side, t.cluster, t.dataset) if label}
        for name, size in zip(self.names, self.size_S, strict=True):
            if not size:
                raise ConfigError(
                    f"scheduler.conflict names the side {name!r}, which no task is on.{did_you_mean(name, known)} "
                    "A side is a task's `side`, else its `cluster`, else its dataset."
                )

    def partner(self, side: int) -> int:
        return side ^ 1

    @property
    def opposed(self) -> dict[str, str]:
        """Each side's opponent, by name."""
        return {name: self.names[self.partner(s)] for s, name in enumerate(self.names)}


def _side(task: TaskInfo, index: Mapping[str, int]) -> int:
    for label in (task.side, task.cluster, task.dataset):
        if label is not None and label in index:
            return index[label]
    return -1


def of_pair(value_S: Floats) -> Floats:
    """[S] sum over the side and its partner."""
    return value_S + partners(value_S)


def partners(value_S: Floats) -> Floats:
    return value_S.reshape(-1, 2)[:, ::-1].reshape(-1)


def upper_end(rate_S: Floats, n_S: Floats, z: float) -> Floats:
    """Upper end of the one-sided Wilson interval of a rate over n observations; 1 where there is none."""
    n_S = np.maximum(n_S, 1e-9)
    centre = rate_S + z * z / (2 * n_S)
    reach = z * np.sqrt(rate_S * (1 - rate_S) / n_S + z * z / (4 * n_S * n_S))
    return np.minimum((centre + reach) / (1 + z * z / n_S), 1.0)
