"""A scheduler's draws through the tail: short tasks now, long ones in rounds of their own; for both loops."""

from __future__ import annotations

import numpy as np

from snoozing_env.pacing.durations import Durations
from snoozing_env.pacing.tail import Tail, TailConfig
from snoozing_env.schedulers import Scheduler
from snoozing_env.types import Ints


class Rounds:
    """Draws of one run with tail batching; `durations` is taught by whoever sees groups finish."""

    def __init__(self, scheduler: Scheduler, durations: Durations, config: TailConfig) -> None:
        self.scheduler, self.durations = scheduler, durations
        self.tail = Tail(config)

    @property
    def parked(self) -> tuple[int, ...]:
        """Drawn tasks that have not started."""
        return self.tail.parked

    def draw(self, n: int, *, step: int, batch: int) -> Ints:
        """[≤n] tasks that start now: a long round if it is time for one, else short ones, drawn until they are n."""
        tail = self.tail
        now = tail.round(n, step=step, batch=batch)
        while (lacking := n - len(now)) > 0:
            drawn = self.scheduler.draw(lacking)
            now += tail.park(drawn, self.durations.predict(drawn), step=step, batch=batch)
            if len(drawn) < lacking:  # nobody else is idle and awake
                now += tail.take(n - len(now))
                break
        return np.array(now, np.int64)

    def close(self) -> None:
        """Give back what was drawn and has not started."""
        for task in reversed(self.tail.take(len(self.tail.parked))):
            self.scheduler.release(task)
