"""Which tasks start now: the scheduler proposes, shares of the batch and predicted durations dispose.

portions(room) ─┬─ exact shares: for each dataset what its places lack, then what lent places are free for
                ├─ tail batching: long tasks wait for a round of their own
                └─ neither: what the scheduler draws
                                                         each portion longest first
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from snoozing_env.gates import LadderConfig
from snoozing_env.pacing.durations import Durations
from snoozing_env.pacing.planner import Planner
from snoozing_env.pacing.quotas import Quotas
from snoozing_env.pacing.rounds import Rounds
from snoozing_env.places import places_of, settle
from snoozing_env.schedulers import Curriculum, Scheduler
from snoozing_env.types import Ints


class Draws:
    """Draws for one asynchronous loop. A mixture with exact shares makes the planner count by dataset."""

    def __init__(
        self, scheduler: Scheduler, planner: Planner, durations: Durations, ladder: LadderConfig
    ) -> None:
        self.scheduler, self.planner, self.durations = scheduler, planner, durations
        tail = planner.config.tail
        self.rounds = None if tail is None else Rounds(scheduler, durations, tail)
        self._dry: set[str] = set()
        """Datasets that had nobody idle and awake, and of which no group has ended since."""
        if isinstance(scheduler, Curriculum) and scheduler.exact_batches:
            ask = partial(places_of, scheduler)
            planner.quotas = Quotas(
                lambda batch, shares: ask(batch, ladder, shares), partial(settle, scheduler)
            )

    @property
    def parked(self) -> tuple[int, ...]:
        """Drawn tasks that have not started."""
        return () if self.rounds is None else self.rounds.parked

    def portions(self, room: int) -> Iterator[Ints]:
        """Tasks to start, at most `room`; the caller starts a portion before it asks for the next."""
        if self.planner.quotas is not None:
            yield from self._for_places(room, self.planner.quotas)
        elif self.rounds is not None:
            batch = min(self.planner.batch, self.planner.config.max_running)
            yield self._longest_first(self.rounds.draw(room, step=self.planner.step, batch=batch))
        else:
            yield self._longest_first(self.scheduler.draw(room))

    def _longest_first(self, task_B: Ints) -> Ints:
        """What takes longest starts first, so that it is not what the step waits for (A3)."""
        return task_B[np.argsort(-self.durations.predict(task_B), kind="stable")]

    # -- exact shares -----------------------------------------------------------------------------------

    def _for_places(self, room: int, quotas: Quotas) -> Iterator[Ints]:
        for name, n in self.planner.wanted(room).items():
            if name in self._dry:
                continue
            # One dataset at a time: what is owed to one must not be drawn for the places of another.
            drawn = self._of({name: n}, n)
            room -= len(drawn)
            yield self._longest_first(drawn)
            if not len(drawn):
                self._ran_dry(name, quotas)
        yield from self._for_free(room, quotas)

    def _for_free(self, room: int, quotas: Quotas) -> Iterator[Ints]:
        while (n := min(self.planner.free(), room)) > 0:
            places = quotas.next(self.planner.batch)
            givers = places.givers
            drawn = self.scheduler.draw(n) if givers is None else self._of(dict(givers), n)
            room -= len(drawn)
            yield self._longest_first(drawn)
            if len(drawn) == n or givers is None:
                return
            if not places.lend_dry(givers, drawn.tolist(), filled=self.planner.held()):
                return

    def _of(self, wanted: dict[str, int], n: int) -> Ints:
        assert isinstance(self.scheduler, Curriculum)
        return self.scheduler.draw(n, missing=wanted)

    def _ran_dry(self, name: str, quotas: Quotas) -> None:
        """A dataset without idle tasks lends its places, unless some of it still runs."""
        self._dry.add(name)
        if not self.planner.runs(name):
            quotas.next(self.planner.batch).lend([name], filled=self.planner.waiting())

    # -- what became of them ----------------------------------------------------------------------------

    def ended(self, task: int, *, judged: bool) -> None:
        """A group has ended, with its verdicts or without."""
        quotas, batch = self.planner.quotas, self.planner.batch
        if quotas is not None:
            self._dry.discard(quotas.dataset_of(task, batch))
            if judged:
                quotas.next(batch).charge([task], filled=self.planner.waiting())

    def took(self) -> None:
        """A step was taken: who was dry is asked again."""
        self._dry.clear()

    def close(self) -> None:
        """Give back what was drawn and has not started."""
        if self.rounds is not None:
            self.rounds.close()
