"""Tail batching: what is predicted to take long waits until there is enough of it for a round of its own (seed S4).

    drawn ─▶ park ─┬─ short ─────────────────────▶ starts now
                   └─ long ─▶ parked ─▶ enough of them, or one has waited `within` steps ─▶ a long round

A step is as long as its slowest group. With a slow fifth and 8 groups a step, five steps of six wait for a slow one;
put off and run together they hold up one step of five. Nothing about the bound changes: a parked task has not started.
What is parked is drawn already, so that the scheduler offers it to nobody else; a kill gives it back.
"""

from __future__ import annotations

from collections import deque

import numpy as np
from pydantic import Field

from snoozing_env.config import FrozenConfig
from snoozing_env.types import Floats, Ints

WINDOW = 256
"""Latest draws whose median says what is usual."""


class TailConfig(FrozenConfig):
    """When a task is put off."""

    over: float = Field(default=4.0, gt=1)
    """A task is long when it is predicted to take more than this many times the median of the tasks drawn lately."""
    within: int = Field(default=8, ge=1)
    """Steps that a task waits at most before a round is made of what there is, however little. A pool with fewer long
    tasks than a batch makes only such rounds, and its long tasks have fewer turns than the others."""


class Tail:
    """Tasks that were put off, first in, first out."""

    def __init__(self, config: TailConfig) -> None:
        self.config = config
        self._parked: deque[tuple[int, int]] = deque()
        """(task, step at which it was put off)."""
        self._usual: deque[float] = deque(maxlen=WINDOW)
        self._long_step: int | None = None
        """The step for which a long round has begun."""

    @property
    def parked(self) -> tuple[int, ...]:
        return tuple(task for task, _ in self._parked)

    def round(self, room: int, *, step: int, batch: int) -> list[int]:
        """Tasks of a long round that may start now, at most `room`; empty while short ones have their turn.

        A round begins where there is room for the whole of it, so that it does not fall into a step that has begun.
        """
        waited = step - self._parked[0][1] if self._parked else 0
        whole = len(self._parked) >= batch and room >= batch
        if whole or waited >= self.config.within:
            self._long_step = step
        return self.take(room) if self._long_step == step else []

    def park(self, task_B: Ints, predicted_B: Floats, *, step: int, batch: int) -> list[int]:
        """Of drawn tasks those that start now; the others are put off, at most two batches of them at a time."""
        self._usual.extend(predicted_B.tolist())
        if not len(task_B):
            return []
        limit = self.config.over * float(np.median(self._usual))
        now: list[int] = []
        for task, seconds in zip(task_B.tolist(), predicted_B.tolist(), strict=True):
            if seconds <= limit or self._long_step == step or len(self._parked) >= 2 * batch:
                now.append(task)
            else:
                self._parked.append((task, step))
        return now

    def take(self, n: int) -> list[int]:
        """The n that wait longest; for a step that nothing else can fill, too."""
        return [self._parked.popleft()[0] for _ in range(min(n, len(self._parked)))]
