"""After generation: which finished groups may reach the gradient, and what to do when too few may (F1 to F4)."""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from snoozing_env.config import FrozenConfig
from snoozing_env.types import GroupOutcome

Admission = Literal["admitted", "all_max", "all_min", "no_spread", "out_of_band", "too_few_valid"]
Rung = Literal["refill", "widen", "wake", "partial", "stop"]


class GateConfig(FrozenConfig):
    """Which groups carry a gradient."""

    tolerance: float = Field(default=1e-6, ge=0)
    """Rewards closer than this are equal."""
    min_valid: int = Field(default=2, ge=2)
    """Valid rollouts a group needs; one alone has no baseline."""
    band: tuple[float, float] | None = None
    """Also drop groups whose mean reward is <= the first or >= the second value, e.g. (0.05, 0.9). None = off."""


def judge(config: GateConfig, outcome: GroupOutcome, *, wide: bool = False) -> Admission:
    """Whether a group's advantages are non-zero; `wide` ignores the optional band (the ladder's first rung)."""
    rewards = outcome.valid_rewards
    if rewards.size < config.min_valid:
        return "too_few_valid"
    low, high = float(rewards.min()), float(rewards.max())
    if high - low <= config.tolerance:
        if low >= 1.0 - config.tolerance:
            return "all_max"
        return "all_min" if high <= config.tolerance else "no_spread"
    if config.band is not None and not wide:
        mean = float(rewards.mean())
        if mean <= config.band[0] or mean >= config.band[1]:
            return "out_of_band"
    return "admitted"


class LadderConfig(FrozenConfig):
    """How far a step goes for a full batch before it settles for less. All limits count generated groups per
    batch group, so a step ends after at most `stop_after · B` groups."""

    widen_after: float = Field(default=8.0, gt=0)
    """Generated groups per batch group after which the band filter is ignored."""
    wake_after: float = Field(default=16.0, gt=0)
    """... after which the longest asleep are woken."""
    partial_after: float = Field(default=32.0, gt=0)
    """... after which the step trains on what there is."""
    dead_steps: int = Field(default=3, ge=1)
    """Consecutive steps without a single informative group that end the run."""


class Ladder:
    """The saturation ladder, climbed once per step: refill → widen → wake → partial (→ stop). Pure."""

    def __init__(self, config: LadderConfig) -> None:
        self.config = config
        self.dead_streak = 0

    def rung(self, *, generated: int, batch: int) -> Rung:
        """Where a step stands that has generated so many groups for a batch of `batch`."""
        per_group = generated / batch
        if per_group >= self.config.partial_after:
            return "partial"
        if per_group >= self.config.wake_after:
            return "wake"
        return "widen" if per_group >= self.config.widen_after else "refill"

    def close_step(self, *, trained: int) -> Rung:
        """Account for a finished step; "stop" when too many in a row had nothing to train on."""
        self.dead_streak = 0 if trained else self.dead_streak + 1
        return "stop" if self.dead_streak >= self.config.dead_steps else "refill"


def refill_size(*, missing: int, survival: float, limit: int) -> int:
    """Groups to generate next: the missing ones over the survival fraction, within the limit (seed S3, exercise 3).

    B=256 with half the pool at p=.5 and half at p=.9, G=8: ρ=.78086, so 328 groups.
    """
    return int(min(np.ceil(missing / max(survival, 1e-3)), limit))
