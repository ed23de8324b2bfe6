"""Informative groups that were paid for are trained on more than once (B1; seed S1, rollout replay).

    fresh groups ─▶ trained ─▶ put ─▶ FIFO of `capacity` groups ─▶ take ─▶ trained again beside fresh ones

A replayed group keeps the log-probs of the policy that sampled it, so its importance ratios are against that
*behaviour* policy, however often it returns. Past `max_staleness` weight updates it is not trained any more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from pydantic import Field

from snoozing_env.config import FrozenConfig
from snoozing_env.types import Group


class ReplayConfig(FrozenConfig):
    """How much of a batch is replayed, and for how long."""

    capacity: int = Field(default=512, ge=1)
    """Groups kept; the oldest leave first (512 in seed S1)."""
    fresh: float = Field(default=0.5, gt=0, le=1)
    """δ: share of a batch that is generated for it; 1 = no replay."""
    max_staleness: int = Field(default=8, ge=1)
    """Largest lag in weight updates at which a group is still trained."""
    max_uses: int | None = Field(default=None, ge=1)
    """Times that a group may be replayed; None = as often as it is drawn."""


class ReplayBuffer:
    """First in, first out; draws uniformly without replacement within a step."""

    def __init__(self, config: ReplayConfig, *, seed: int) -> None:
        self.config = config
        self._rng = np.random.default_rng(seed)
        self._groups: dict[int, Group] = {}
        self._uses: dict[int, int] = {}
        self.replayed = 0
        """Groups handed out since the start of the run."""

    def __len__(self) -> int:
        return len(self._groups)

    @property
    def groups(self) -> tuple[Group, ...]:
        """Oldest first."""
        return tuple(self._groups.values())

    def put(self, groups: Iterable[Group]) -> None:
        """Keep groups that were trained as fresh ones; the caller has gated them."""
        for group in groups:
            self._groups[group.id] = group
        for id in list(self._groups)[: max(len(self._groups) - self.config.capacity, 0)]:
            self._forget(id)

    def available(self, batch: int, *, version: int) -> int:
        """Groups of a batch of B that can be replayed: B − ⌈δB⌉, or fewer while the buffer is short.

        What is lacking is generated: a short buffer means more fresh groups, never a smaller batch.
        """
        self.expire(version=version)
        return min(batch - int(np.ceil(self.config.fresh * batch - 1e-9)), len(self._groups))

    def take(self, n: int, *, version: int, without: Collection[int] = ()) -> list[Group]:
        """Up to n distinct groups within the age bound, none with an id in `without`."""
        self.expire(version=version)
        ids = [id for id in self._groups if id not in without]
        taken = [self._groups[ids[i]] for i in self._rng.permutation(len(ids))[:n].tolist()]
        for group in taken:
            self._uses[group.id] = self._uses.get(group.id, 0) + 1
            if self.config.max_uses is not None and self._uses[group.id] >= self.config.max_uses:
                self._forget(group.id)
        self.replayed += len(taken)
        return [replace(group, replayed=True) for group in taken]

    def expire(self, *, version: int) -> int:
        """Forget what is too old for a step at `version`; returns how many."""
        bound = self.config.max_staleness
        old = [id for id, g in self._groups.items() if version - g.outcome.version > bound]
        for id in old:
            self._forget(id)
        return len(old)

    def _forget(self, id: int) -> None:
        del self._groups[id]
        self._uses.pop(id, None)

    def state(self) -> dict[str, Any]:
        """What is not in the groups: JSON-able."""
        return {
            "rng": self._rng.bit_generator.state,
            "uses": {str(id): n for id, n in self._uses.items()},
            "replayed": self.replayed,
        }

    def restore(self, state: Mapping[str, Any], groups: Iterable[Group]) -> None:
        """Continue from saved groups, oldest first, and `state`."""
        self._groups = {group.id: group for group in groups}
        self._uses = {int(id): n for id, n in state["uses"].items() if int(id) in self._groups}
        self._rng.bit_generator.state = state["rng"]
        self.replayed = int(state["replayed"])
