"""What is in flight: which tasks, drawn in which pass, and how often in a row each came back unjudged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from snoozing_env.schedulers.difficulty import Columns
from snoozing_env.types import Ints

_COUNTS = ("drawn", "observed", "unjudged")


class Ledger:
    """Columns over N tasks, and counts since the start of the run."""

    def __init__(self, n: int, max_retries: int) -> None:
        self._max_retries = max_retries
        self.busy_N = np.zeros(n, np.bool_)
        """Drawn and neither observed nor released; not saved, for a killed run's groups are lost."""
        self.drawn_pass_N = np.zeros(n, np.int32)
        self._retries_N = np.zeros(n, np.uint8)
        self.drawn = self.observed = self.unjudged = 0

    def drew(self, task_B: Ints, pass_B: int | Ints) -> None:
        self.busy_N[task_B] = True
        self.drawn_pass_N[task_B] = pass_B
        self.drawn += len(task_B)

    def finished(self, task_B: Ints) -> None:
        self.busy_N[task_B] = False
        self.observed += len(task_B)

    def judged(self, task_B: Ints) -> None:
        self._retries_N[task_B] = 0

    def failed(self, task_B: Ints) -> tuple[Ints, Ints]:
        """Of tasks whose groups could not be judged: those to offer again at once, and those to wait a pass."""
        self.unjudged += len(task_B)
        again_B = self._retries_N[task_B] < self._max_retries
        self._retries_N[task_B] = np.where(again_B, self._retries_N[task_B] + 1, 0)
        return task_B[again_B], task_B[~again_B]

    def metrics(self) -> dict[str, float]:
        counts = {f"{name}_groups": float(getattr(self, name)) for name in _COUNTS}
        return {**counts, "busy": float(self.busy_N.sum())}

    def columns(self) -> Columns:
        """The state, one array per column (5 bytes a task)."""
        return {"drawn_pass": self.drawn_pass_N, "retries": self._retries_N}

    def state(self) -> dict[str, int]:
        return {name: getattr(self, name) for name in _COUNTS}

    def restore(self, state: Mapping[str, Any]) -> None:
        for name in _COUNTS:
            setattr(self, name, int(state[name]))
        self.busy_N[:] = False
