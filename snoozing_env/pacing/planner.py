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
argument, so `take` checks the bound again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from snoozing_env.pacing.config import PacingConfig
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
        steps = self.version + self.config.max_staleness - self.step + 1
        if self.steps is not None:
            steps = min(steps, self.steps - self.step)
        ahead = steps * self.batch - len(self._accepted) - len(self._running)
        return max(min(ahead, self.config.max_running - len(self._running)), 0)

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
        # One pass over versions, oldest first: a group of weights v must be trained by step v + K.
        running = Counter(flight.version for flight in self._running.values())
        accepted = Counter(group.outcome.version for group in self._accepted)
        still_running = finished = 0
        for horizon in range(self.config.max_staleness + 1):
            version = self.step - self.config.max_staleness + horizon
            still_running, finished = still_running + running[version], finished + accepted[version]
            later = horizon * self.batch
            if still_running > later:
                return tuple(f for f in self._running.values() if version - horizon <= f.version <= version)
        return ()

    def ready(self) -> bool:
        """Whether the next step can be taken in full."""
        return (
            sum(self.lag(g) <= self.config.bound for g in self._accepted) >= self.batch and not self.awaited()
        )

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
        taken, self._accepted = self._accepted[:n], self._accepted[n:]
        self.counts.trained += len(taken)
        self.step += 1
        return taken

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
