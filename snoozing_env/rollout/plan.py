"""What one group's rollouts have in common: how many, from which noise, until when."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import numpy as np

from snoozing_env.rollout.engines.base import SamplingParams


@dataclass(frozen=True, slots=True)
class Deadline:
    """When a group must have its last verdict."""

    at: float
    """On the event loop's clock."""
    seconds: float
    """Time from the dispatch, for messages."""

    @classmethod
    def within(cls, seconds: float) -> Deadline:
        return cls(asyncio.get_running_loop().time() + seconds, seconds)

    @property
    def reason(self) -> str:
        return f"cancelled: unfinished at its group's deadline of {self.seconds:g} s"


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutPlan:
    """One group, before it is rolled out."""

    n: int
    """G: rollouts that are used."""
    spare: int = 0
    """r: rollouts that are started beyond G."""
    seed: int
    """The group's noise."""
    sampling: SamplingParams
    deadline: Deadline | None = None

    def noise(self, k: int) -> int:
        """Seed of rollout k where each has a request of its own."""
        return int(np.random.SeedSequence([self.seed, k]).generate_state(1)[0])

    @property
    def late(self) -> str:
        """Why a rollout that the deadline cut off has no verdict."""
        return "" if self.deadline is None else self.deadline.reason
