"""The buffers of this package as the laws see them. To add one: a file in `buffers/` and a name here.

    fresh                 surplus of a step; given out once
    replay                trained groups; given out again
    success, importance   rare successes; verified before each use, with an age bound
    success, anchor       the same, without one

The prioritized *prompt* buffer (B3) stores tasks and no completions: it is the scheduler kind `prioritized`, whose state
is saved with every checkpoint, and keeps the schedulers' laws.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from snoozing_env.buffers.fresh import FreshBuffer, FreshConfig
from snoozing_env.buffers.replay import ReplayBuffer, ReplayConfig
from snoozing_env.buffers.success import SuccessBuffer, SuccessConfig
from snoozing_env.types import Group

Verify = Callable[[Group], bool | None]
"""A grader's newest verdict on what is about to be handed out; None = it could not say."""

TASKS, BOUND = 6, 2
"""Room and age bound that the buffers under test are built with."""


class Stock(Protocol):
    """A buffer with its `put` and `take` brought to one form; the rest is the protocol `snoozing_env.buffers.base.Buffer`."""

    def __len__(self) -> int: ...

    @property
    def groups(self) -> tuple[Group, ...]: ...

    def put(self, group: Group, /) -> object:
        """A finished group with both outcomes, of a task that is rarely solved."""
        ...

    def take(
        self, n: int, *, version: int, without: Collection[int] = (), verify: Verify | None = None
    ) -> list[Group]:
        """Up to n groups to train at `version`, none with an id in `without`; `verify` None = all are accepted."""
        ...

    def expire(self, *, version: int) -> int: ...

    def state(self) -> dict[str, Any]: ...

    def restore(self, state: Mapping[str, Any], groups: Iterable[Group]) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferSubject:
    """A buffer under test."""

    build: Callable[[int], Stock]
    """Seed → an empty buffer of `capacity` and `bound`."""
    capacity: int = TASKS
    """Most that it may hold."""
    per_task: int = 1
    """Most that it may hold of one task."""
    bound: int | None = BOUND
    """Largest lag in weight updates at which a group is still handed out; None = any."""
    gives_again: bool = False
    """Whether a group may be handed out in more than one step."""
    draws: bool = False
    """Whether chance decides what is handed out."""
    verifies: bool = False
    """Whether a grader looks again first."""
    examples: int = 50
    """Random histories that the state machine tries."""

    @property
    def tasks(self) -> int:
        """Tasks that it has room for."""
        return self.capacity // self.per_task


class FreshStock(FreshBuffer):
    """Surplus: what is asked to be left out was never put in again."""

    def put(self, groups: Group | Iterable[Group]) -> None:
        super().put([groups] if isinstance(groups, Group) else groups)

    def take(
        self, n: int, *, version: int, without: Collection[int] = (), verify: Verify | None = None
    ) -> list[Group]:
        return super().take(n, version=version)


class ReplayStock(ReplayBuffer):
    """Trained groups."""

    def put(self, groups: Group | Iterable[Group]) -> None:
        super().put([groups] if isinstance(groups, Group) else groups)

    def take(
        self, n: int, *, version: int, without: Collection[int] = (), verify: Verify | None = None
    ) -> list[Group]:
        return super().take(n, version=version, without=without)


class SuccessStock(SuccessBuffer):
    """Successes of the tasks whose turn it is, as groups of one, verified as the trainer does it."""

    def put(self, group: Group, *, pass_rate: float = 0.1) -> int:
        return super().put(group, pass_rate=pass_rate)

    def take(
        self, n: int, *, version: int, without: Collection[int] = (), verify: Verify | None = None
    ) -> list[Group]:
        tasks = self.next_tasks(n, version=version)
        found = (self._accepted(key, version, verify) for key in tasks)
        return [group for group in found if group is not None]

    def _accepted(self, key: str, version: int, verify: Verify | None) -> Group | None:
        for success in self.candidates(key, version=version):
            group = success.as_group(0)
            if self.verified(success, True if verify is None else verify(group)):
                return group
        return None


BUFFERS: dict[str, BufferSubject] = {
    "fresh": BufferSubject(
        build=lambda seed: FreshStock(FreshConfig(max_staleness=BOUND, capacity=TASKS)),
    ),
    "replay": BufferSubject(
        build=lambda seed: ReplayStock(ReplayConfig(max_staleness=BOUND, capacity=TASKS), seed=seed),
        gives_again=True,
        draws=True,
    ),
    "success, importance": BufferSubject(
        build=lambda seed: SuccessStock(
            SuccessConfig(use="importance", max_staleness=BOUND, tasks=TASKS, per_task=2)
        ),
        capacity=2 * TASKS,
        per_task=2,
        gives_again=True,
        verifies=True,
    ),
    "success, anchor": BufferSubject(
        build=lambda seed: SuccessStock(SuccessConfig(use="anchor", tasks=TASKS, per_task=2)),
        capacity=2 * TASKS,
        per_task=2,
        bound=None,
        gives_again=True,
        verifies=True,
    ),
}
"""Every buffer, by the name that tests and messages call it."""
