"""Which groups may start, which may be trained, and for what a step must wait (A1, A3, A4).

    room ─▶ start ─▶ running ─┬─ lost ────▶ (started again)
                              └─ finish ─┬─ filtered             gives its place back at once
                                         ├─ over age             dropped or requeued
                                         └─ accepted ─▶ take(step) ─▶ trained

Why nothing paced this way is dropped. A group that starts on weights v must be trained by step v + K. From the next
step s on (s = v, or v + 1 while step v is being trained) that leaves v + K − s + 1 steps of B groups each, and no more
than that many groups run or wait when it starts. Each step takes the oldest that have finished, and before a step every
horizon is checked: of the groups that must be trained by step s + h, no more may be left over than the h steps after s
can take. While too few of them have finished, the step waits. A step that trained less than B groups breaks the
argument, so `take` checks the bound again. Under exact shares of the batch (`quotas`) all this holds for each dataset
by itself, with its places instead of B.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from snoozing_env.pacing.config import PacingConfig
from snoozing_env.pacing.quotas import Quotas
from snoozing_env.types import Group

Fate = Literal["accepted", "filtered", "over_age"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Flight:
    """One group in flight."""

    id: int
    """Dispatch number, unique in a run; becomes the group's id."""
    task: int
    key: str
    version: int
    """Weights served at dispatch: the first token is of this version or a later one."""
    started_s: float
    predicted_s: float = 0.0
    attempt: int = 0
    """Times that this task's group was lost to infrastructure before."""


@dataclass(slots=True)
class Counts:
    """What became of every group since the start of the run; `started` is the sum of the others and of what runs."""

    started: int = 0
    lost: int = 0
    filtered: int = 0
    over_age: int = 0
    """Finished too late to be trained."""
    expired: int = 0
    """Accepted, then too old when their step came."""
    trained: int = 0


class Planner:
    """Running and accepted groups of one run; B groups are trained per step."""

    def __init__(self, config: PacingConfig, *, batch: int, steps: int | None = None) -> None:
        """`steps`: where training ends, so that nothing is generated past it; None = never."""
        self.config, self.batch, self.steps = config, batch, steps
        self.most = batch
        """Groups that a step can train at all."""
        self.step = 0
        """Next step to be trained; equal to the version that trains it."""
        self.version = 0
        """Weights that the engine serves; behind `step` while a step is being trained."""
        self.counts = Counts()
        self.shrunk = False
        """Whether B ever fell."""
        self.quotas: Quotas | None = None
        """Whose the places of a batch are; None = anybody's."""
        self._running: dict[int, Flight] = {}
        self._accepted: list[Group] = []

    # -- starting ---------------------------------------------------------------------------------------

    @property
    def running(self) -> tuple[Flight, ...]:
        return tuple(self._running.values())

    @property
    def accepted(self) -> tuple[Group, ...]:
        return tuple(self._accepted)

    def room(self) -> int:
        """Groups that may start now and still be trained in time: (v + K − s + 1)·B less what runs or waits."""
        if self.quotas is None:
            ahead = self._steps_ahead * self.batch - len(self._accepted) - len(self._running)
        else:
            ahead = sum(self.wanted().values()) + self.free()
        return max(min(ahead, self.config.max_running - len(self._running)), 0)

    @property
    def _steps_ahead(self) -> int:
        """Steps that may train what starts now."""
        steps = self.version + self.config.max_staleness - self.step + 1
        return steps if self.steps is None else max(min(steps, self.steps - self.step), 0)

    def wanted(self, limit: int | None = None) -> dict[str, int]:
        """Of the groups that may start, those for places of their own dataset, by dataset (M1)."""
        if self.quotas is None:
            return {}
        return self.quotas.wanted(self.held(), steps=self._steps_ahead, batch=self.batch, limit=limit)

    def free(self) -> int:
        """Of the groups that may start, those for places that are anybody's."""
        if self.quotas is None:
            return self.room()
        return self.quotas.free(self.held(), steps=self._steps_ahead, batch=self.batch)

    def held(self) -> Counter[str]:
        """Groups that run or wait, by dataset; under one name without quotas."""
        return self.waiting() + Counter(self._dataset(flight.task) for flight in self._running.values())

    def waiting(self) -> Counter[str]:
        """Accepted groups that the next step may train, by dataset."""
        return Counter(
            self._dataset(group.outcome.task)
            for group in self._accepted
            if self.lag(group) <= self.config.bound
        )

    def runs(self, name: str) -> bool:
        """Whether a group of this dataset is in flight."""
        return any(self._dataset(flight.task) == name for flight in self._running.values())

    def _dataset(self, task: int) -> str:
        return "" if self.quotas is None else self.quotas.dataset_of(task, self.batch)

    def start(self, flight: Flight) -> None:
        if flight.id in self._running:
            raise ValueError(f"group {flight.id} is in flight already")
        self._running[flight.id] = flight
        self.counts.started += 1

    def lose(self, flight_id: int) -> Flight:
        """A group that ended without a verdict: infrastructure failed, or it was cancelled."""
        self.counts.lost += 1
        return self._running.pop(flight_id)

    # -- finishing --------------------------------------------------------------------------------------

    def finish(self, flight_id: int, group: Group, *, admitted: bool) -> Fate:
        """A group with its verdicts; the scheduler has been told already, whatever its fate."""
        del self._running[flight_id]
        if not admitted:
            self.counts.filtered += 1
            return "filtered"
        if self.lag(group) > self.config.bound:
            self.counts.over_age += 1
            return "over_age"
        self._accepted.append(group)
        return "accepted"

    def lag(self, group: Group) -> int:
        """Weight updates between the group's first token and the next step."""
        return self.step - group.outcome.version

    def resize(self, batch: int) -> None:
        """Train B groups per step from the next on; the rest of a batch comes from elsewhere."""
        self.shrunk = self.shrunk or batch < self.batch
        if self.quotas is not None:
            self.quotas.resize(batch)
        self.batch = batch

    def publish(self, version: int) -> None:
        """The engine serves these weights from now on."""
        if not self.version <= version <= self.step:
            raise ValueError(f"version {version} published after {self.version}, with step {self.step} next")
        self.version = version

    # -- training ---------------------------------------------------------------------------------------

    def awaited(self) -> tuple[Flight, ...]:
        """Running groups of which some must finish before the next step, or they can never be trained."""
        if self.config.stragglers == "let-go":
            return ()
        by_dataset: dict[str, list[Flight]] = {}
        for flight in self._running.values():
            by_dataset.setdefault(self._dataset(flight.task), []).append(flight)
        for name, flights in by_dataset.items():
            if due := self._due(flights, self._later(name)):
                return due
        return ()

    def _later(self, name: str) -> Sequence[int]:
        """[K + 1] places in the first 0, 1, … K steps after the next, for groups of a dataset."""
        bound = self.config.max_staleness
        if self.quotas is None:
            return [horizon * self.batch for horizon in range(bound + 1)]
        return self.quotas.later(name, bound, self.batch)

    def _due(self, flights: Sequence[Flight], later: Sequence[int]) -> tuple[Flight, ...]:
        """Those of which some must finish now: one pass over versions, oldest first, for a group of weights v must be
        trained by step v + K."""
        running, still_running = Counter(flight.version for flight in flights), 0
        oldest = self.step - self.config.max_staleness
        for horizon, places in enumerate(later):
            still_running += running[oldest + horizon]
            if still_running > places:
                return tuple(f for f in flights if oldest <= f.version <= oldest + horizon)
        return ()

    def ready(self) -> bool:
        """Whether the next step can be taken in full."""
        waiting = self.waiting()
        if self.quotas is not None and not self.quotas.filled(waiting, self.batch):
            return False
        return waiting.total() >= self.batch and not self.awaited()

    def take(self) -> list[Group]:
        """The ≤ B oldest accepted groups, for the next step; the step counts as trained.

        More than B where B fell since they started and this is the last step that may train them, and never more than
        a step can train: a resume brings back what undone steps had trained, which may be more than its versions allow.
        """
        self.expire()
        # Oldest weights first: their last possible step comes first. Equal ones in the order of dispatch.
        self._accepted.sort(key=lambda group: (group.outcome.version, group.id))
        last = sum(self.lag(group) == self.config.bound for group in self._accepted)
        n = max(self.batch, min(last, self.most) if self.shrunk else 0)
        taken = self._accepted[:n] if self.quotas is None else self._fill_places(self.quotas)
        ids = {group.id for group in taken}
        self._accepted = [group for group in self._accepted if group.id not in ids]
        self.counts.trained += len(taken)
        self.step += 1
        return taken

    def _fill_places(self, quotas: Quotas) -> list[Group]:
        """A batch by datasets; one that is taken before all of its places were filled lends those."""
        waiting, places = self.waiting(), quotas.next(self.batch)
        places.lend(quotas.short(waiting, self.batch), filled=waiting)
        taken = quotas.take(self._accepted, self.batch)
        if not self.shrunk:
            return taken
        ids = {group.id for group in taken}
        last = [g for g in self._accepted if self.lag(g) == self.config.bound]
        return taken + [group for group in last if group.id not in ids]

    def expire(self) -> list[Group]:
        """Drop accepted groups that are past the bound at the next step."""
        old = [group for group in self._accepted if self.lag(group) > self.config.bound]
        if old:
            gone = {group.id for group in old}
            self._accepted = [group for group in self._accepted if group.id not in gone]
            self.counts.expired += len(old)
        return old

    # -- state ------------------------------------------------------------------------------------------

    def restore(self, *, step: int, accepted: Iterable[Group], counts: Counts) -> None:
        """Continue a run: what was in flight was lost with the process and is to be started again."""
        self.step, self.version, self.counts = step, step, counts
        self._running, self._accepted = {}, list(accepted)

    def balance(self) -> int:
        """Groups that the counts cannot account for; 0, or the ledger is wrong."""
        c = self.counts
        ended = c.lost + c.filtered + c.over_age + c.expired + c.trained
        return c.started - ended - len(self._running) - len(self._accepted)
