"""Informative groups that wait for their step: surplus is carried over, never discarded, never trained too late (F2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pydantic import Field

from snoozing_env.config import FrozenConfig
from snoozing_env.types import Group


class FreshConfig(FrozenConfig):
    """How long an informative group may wait."""

    max_staleness: int = Field(default=1, ge=0)
    """Largest allowed lag in weight updates between a group's first token and its training step. 0 = surplus is dropped."""
    capacity: int = Field(default=4096, ge=1)
    """Most groups that may wait; the oldest are dropped beyond. A step's surplus stays far below it."""


class FreshBuffer:
    """First in, first out; nothing older than the bound ever leaves through `take`."""

    def __init__(self, config: FreshConfig) -> None:
        self.config = config
        self._groups: list[Group] = []
        self.expired = 0
        """Groups dropped, for age or for room, since the start of the run."""

    def __len__(self) -> int:
        return len(self._groups)

    @property
    def groups(self) -> tuple[Group, ...]:
        return tuple(self._groups)

    def put(self, groups: Iterable[Group]) -> None:
        self._groups.extend(groups)
        surplus = max(len(self._groups) - self.config.capacity, 0)
        self._groups, self.expired = self._groups[surplus:], self.expired + surplus

    def take(self, n: int, *, version: int) -> list[Group]:
        """Up to n groups, oldest first, that are within the staleness bound at `version`."""
        self.expire(version=version)
        taken, self._groups = self._groups[:n], self._groups[n:]
        return taken

    def take_of(
        self, open_places: Mapping[str, int], *, version: int, dataset_of: Callable[[Group], str]
    ) -> list[Group]:
        """Oldest first, of each dataset up to so many; the others' groups wait on."""
        self.expire(version=version)
        left = dict(open_places)
        taken: list[Group] = []
        kept: list[Group] = []
        for group in self._groups:
            name = dataset_of(group)
            fits = left.get(name, 0) > 0
            (taken if fits else kept).append(group)
            if fits:
                left[name] -= 1
        self._groups = kept
        return taken

    def expire(self, *, version: int) -> int:
        """Drop what is too old for a step at `version`; returns how many."""
        fresh = [g for g in self._groups if version - g.outcome.version <= self.config.max_staleness]
        dropped = len(self._groups) - len(fresh)
        self._groups, self.expired = fresh, self.expired + dropped
        return dropped

    def state(self) -> dict[str, Any]:
        """JSON-able; the groups are saved beside it."""
        return {"expired": self.expired}

    def restore(self, state: Mapping[str, Any], groups: Iterable[Group]) -> None:
        """Continue from saved groups, oldest first, and `state`."""
        self._groups, self.expired = list(groups), int(state["expired"])
