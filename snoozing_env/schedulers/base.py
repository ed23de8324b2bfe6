"""What a scheduler is, and the laws every one of them keeps.

Laws (checked over all kinds by the contract suite, `snoozing_env.testing`):

1. `draw(n)` returns at most n distinct idle tasks: n whenever n are awake, fewer when fewer are, and where every
   idle task is asleep it wakes the longest asleep. It is empty only when no task is idle, and never raises.
2. A drawn task is busy until it is observed or released; a busy task is never drawn.
3. Every awake task is drawn within a bounded number of draws: `uniform` offers it once per pass, every other kind
   within 1/epsilon passes of draws (no starvation).
4. The same seed, tasks and history give the same draws, also across `state_dict` / `load_state_dict`.
5. Invalid rewards change no estimate; a group with too few valid rollouts teaches nothing and is retried.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from snoozing_env.types import GroupOutcome, Ints

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadReport:
    """How a checkpoint met this run's task set (D6)."""

    kept: int
    """Tasks whose state was taken over, wherever they now stand."""
    fresh: int
    """Tasks of this run that the checkpoint does not know."""
    dropped: int
    """Tasks of the checkpoint that this run no longer has."""

    def __str__(self) -> str:
        return f"{self.kept} tasks kept their state, {self.fresh} start fresh, {self.dropped} are gone"


class Scheduler(Protocol):
    """Chooses the next tasks and learns from what became of them."""

    def draw(self, n: int) -> Ints:
        """[≤n] indices into the task list."""
        ...

    def observe(self, outcome: GroupOutcome) -> None:
        """Learn from one finished group; frees its task."""
        ...

    def observe_many(self, outcomes: Iterable[GroupOutcome]) -> None:
        """Learn from several groups in the given order."""
        ...

    def release(self, index: int) -> None:
        """Free a drawn task whose group was lost; it is offered again first."""
        ...

    def offer(self, index: int) -> None:
        """Offer an idle task again first, asleep or not: its group was observed but could not be used."""
        ...

    def wake(self, n: int) -> int:
        """Wake up to n tasks, the longest asleep first; returns how many."""
        ...

    def metrics(self) -> dict[str, float]: ...

    def state_dict(self) -> Json:
        """JSON-able state, keyed by task key."""
        ...

    def load_state_dict(self, state: Mapping[str, Any], *, merge: bool = False) -> LoadReport:
        """Continue from a state; raises `StateError` when it belongs to another task set."""
        ...
