"""Seconds by state, of the trainer and of the engine: one state at any instant, so that they add up to the wall time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, get_args

Clock = Callable[[], float]
"""Seconds since any fixed moment; never runs backwards."""
Phase = Literal["starting", "training", "waiting", "syncing", "evaluating", "saving", "undone"]
PHASES: tuple[Phase, ...] = get_args(Phase)
"""What the trainer does: waiting is for rollouts; undone are steps that a kill took back."""
State = Literal["generating", "waiting", "paused", "evaluating", "failed", "undone"]
STATES: tuple[State, ...] = get_args(State)
"""What the engine does: waiting is for the trainer, whose bound lets nothing start; paused while it takes weights;
failed between a failure and the next try."""


class TrainerTime:
    """The trainer's side; used by its thread alone."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self._since = clock, clock()
        self._phase: Phase = "starting"
        self._seconds: dict[Phase, float] = dict.fromkeys(PHASES, 0.0)

    def enter(self, phase: Phase) -> None:
        """From now on."""
        now = self._clock()
        self._seconds[self._phase] += now - self._since
        self._since, self._phase = now, phase

    @contextmanager
    def during(self, phase: Phase) -> Iterator[None]:
        """While the block runs; then the phase from before goes on."""
        before = self._phase
        self.enter(phase)
        try:
            yield
        finally:
            self.enter(before)

    def add(self, seconds: Mapping[str, float]) -> None:
        """Seconds by phase from elsewhere: of a checkpoint, or undone; phases that are unknown here are left out."""
        for phase in PHASES:
            self._seconds[phase] += seconds.get(phase, 0.0)

    @property
    def seconds(self) -> dict[Phase, float]:
        """By phase, up to now."""
        self.enter(self._phase)
        return dict(self._seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSeconds:
    """The engine's time at one instant."""

    by_state: dict[State, float]
    in_flight: float
    """Groups in flight, integrated over time: divided by the wall time, how many were so on average."""
    running: float
    """Own seconds, so far, of the groups in flight."""


class EngineTime:
    """The engine's side; used by the loop's thread alone.

    Where several engines serve, the paused share of them counts as paused and the rest as what it does. A group's own
    seconds are its part of the generating time: an instant with n groups in flight gives each 1/n, so that the parts
    of all groups add up to the time in which there was one.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock, self._since = clock, clock()
        self._seconds: dict[State, float] = dict.fromkeys(STATES, 0.0)
        self._running: dict[int, float] = {}
        """`_served` when each group started."""
        self._served = 0.0
        """Seconds that a group in flight since the beginning would have had for itself."""
        self._flight_seconds = 0.0
        self._paused = 0.0
        self._failing = self._evaluating = False

    def start(self, id: int) -> None:
        """A group is in flight."""
        self._advance()
        self._running[id] = self._served

    def land(self, id: int, *, failed: bool | None = None) -> float:
        """It is no more; returns its own seconds. `failed`: the engine did not serve it (None = not its doing)."""
        self._advance()
        if failed is not None:
            self._failing = failed
        return self._served - self._running.pop(id)

    def pause(self, share: float) -> None:
        """So many more of the engines (a share of all) take weights and decode nothing; negative when they are done."""
        self._advance()
        self._paused = min(max(self._paused + share, 0.0), 1.0)

    def evaluate(self, on: bool) -> None:
        """A held-out evaluation begins or ends."""
        self._advance()
        self._evaluating = on

    def add(self, seconds: Mapping[str, float], *, in_flight: float = 0.0) -> None:
        """Seconds by state from elsewhere: of a checkpoint, or undone."""
        for state in STATES:
            self._seconds[state] += seconds.get(state, 0.0)
        self._flight_seconds += in_flight

    def read(self) -> EngineSeconds:
        """Up to now."""
        self._advance()
        return EngineSeconds(
            by_state=dict(self._seconds),
            in_flight=self._flight_seconds,
            running=sum(self._served - start for start in self._running.values()),
        )

    def _advance(self) -> None:
        now = self._clock()
        passed, self._since = now - self._since, now
        running, paused = len(self._running), passed * self._paused
        self._seconds["paused"] += paused
        self._seconds[self._state] += passed - paused
        self._flight_seconds += running * passed
        if running:
            self._served += (passed - paused) / running

    @property
    def _state(self) -> State:
        if self._running:
            return "generating"
        if self._evaluating:
            return "evaluating"
        return "failed" if self._failing else "waiting"
