"""How much a stale batch is still worth: effective sample size of its importance ratios, without flattery (A6).

Axes: n sequences · T tokens of one sequence. A log-ratio is log π_now(token) − log π_behaviour(token).

    Kish                (Σ r)² / (n Σ r²)    any weights; never above 1; too high in small batches (at least 1/n)
    second moment       1 / mean(r²)         seed S4's definition; needs E[r] = 1, and passes 1 when the mean is off

For log-normal ratios with E[r] = 1 both are exp(−σ²). Clamping the ratios, as the loss does, hides exactly the tail
that makes a batch worthless; so raw values come first and clamped ones stand beside them. A token's ratio says how
far the policy moved at that token; a sequence's (their product) what the gradient's variance sees.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from pydantic import Field

from snoozing_env.config import FrozenConfig
from snoozing_env.types import Floats

_CAP = 50.0
"""Log-ratios are cut here so that their squares stay finite; exp(−50) is no sample size anybody acts on."""


def kish_ess(ratios_n: Floats) -> float:
    """(Σ r)² / (n Σ r²) in [1/n, 1]; nan for no ratios (Kish 1965)."""
    total, squares = float(ratios_n.sum()), float(np.square(ratios_n).sum())
    return total * total / (len(ratios_n) * squares) if squares > 0 else float("nan")


def second_moment_ess(ratios_n: Floats) -> float:
    """1 / mean(r²) (seed S4); nan for no ratios."""
    squares = float(np.square(ratios_n).mean()) if len(ratios_n) else 0.0
    return 1.0 / squares if squares > 0 else float("nan")


@dataclass(frozen=True, slots=True)
class Ess:
    """Both estimates, of raw and of clamped ratios, in fractions of the samples."""

    kish: float
    second_moment: float
    kish_clamped: float
    second_moment_clamped: float
    samples: int

    @staticmethod
    def of(log_ratios_n: Floats, *, clamp: tuple[float, float]) -> Ess:
        """From log-ratios and the range the loss clamps ratios to."""
        ratios_n = np.exp(np.clip(log_ratios_n, -_CAP, _CAP))
        clamped_n = np.clip(ratios_n, *clamp)
        return Ess(
            kish=kish_ess(ratios_n),
            second_moment=second_moment_ess(ratios_n),
            kish_clamped=kish_ess(clamped_n),
            second_moment_clamped=second_moment_ess(clamped_n),
            samples=len(ratios_n),
        )


@dataclass(frozen=True, slots=True)
class Drift:
    """How far the policy has moved from the one that sampled these tokens."""

    distance: float
    """Mean |r - 1| over tokens; 0 = the same policy."""
    outside: float
    """Share of tokens whose ratio lies outside the loss's clip range, whatever their advantage."""
    clipped: float | None
    """Share of tokens whose gradient the clip takes away: above the range with a positive advantage, or below it with a
    negative one. None = advantages unknown."""
    tokens: int

    @staticmethod
    def of(log_ratio_T: Floats, advantage_T: Floats | None, *, clamp: tuple[float, float]) -> Drift:
        """From log-ratios, the advantage at each of them, and the range the loss clamps ratios to."""
        ratio_T = np.exp(np.clip(log_ratio_T, -_CAP, _CAP))
        above_T, below_T = ratio_T > clamp[1], ratio_T < clamp[0]
        lost_T = (
            None if advantage_T is None else (above_T & (advantage_T > 0)) | (below_T & (advantage_T < 0))
        )
        return Drift(
            distance=float(np.abs(ratio_T - 1.0).mean()),
            outside=float((above_T | below_T).mean()),
            clipped=None if lost_T is None else float(lost_T.mean()),
            tokens=len(ratio_T),
        )


@dataclass(frozen=True, slots=True)
class StalenessReport:
    """What the importance ratios of one batch say."""

    token: Ess
    sequence: Ess
    by_age: Mapping[int, Ess]
    """Sequence-level, by lag in weight updates."""
    clipped_share: float
    """Tokens whose ratio lies outside the loss's clip range."""
    by_source: Mapping[str, Drift]
    """Tokens of "fresh" and of "replayed" rollouts apart; a source without any is left out."""

    @staticmethod
    def of(
        log_ratios: Sequence[Floats],
        ages_n: Sequence[int],
        *,
        clamp: tuple[float, float],
        replayed_n: Sequence[bool] = (),
        advantages_n: Sequence[float] = (),
    ) -> StalenessReport:
        """From each sequence's [T] log-ratios of sampled tokens and its lag; () = none is replayed, advantages unknown."""
        sums_n = np.array([float(r.sum()) for r in log_ratios])
        tokens_T = np.concatenate(log_ratios) if log_ratios else np.empty(0)
        age_n = np.asarray(ages_n, np.int64)
        outside = (tokens_T < np.log(clamp[0])) | (tokens_T > np.log(clamp[1]))
        return StalenessReport(
            token=Ess.of(tokens_T, clamp=clamp),
            sequence=Ess.of(sums_n, clamp=clamp),
            by_age={int(a): Ess.of(sums_n[age_n == a], clamp=clamp) for a in np.unique(age_n)},
            clipped_share=float(outside.mean()) if len(tokens_T) else 0.0,
            by_source=_by_source(log_ratios, replayed_n, advantages_n, clamp),
        )


def _by_source(
    log_ratios: Sequence[Floats],
    replayed_n: Sequence[bool],
    advantages_n: Sequence[float],
    clamp: tuple[float, float],
) -> dict[str, Drift]:
    found: dict[str, Drift] = {}
    for name, wanted in (("fresh", False), ("replayed", True)):
        own = [i for i in range(len(log_ratios)) if (bool(replayed_n[i]) if replayed_n else False) == wanted]
        if not sum(len(log_ratios[i]) for i in own):
            continue
        advantage_T = (
            np.concatenate([np.full(len(log_ratios[i]), advantages_n[i]) for i in own])
            if advantages_n
            else None
        )
        found[name] = Drift.of(np.concatenate([log_ratios[i] for i in own]), advantage_T, clamp=clamp)
    return found


class EssConfig(FrozenConfig):
    """What a low effective sample size does to the learning rate; nothing by default."""

    scale_learning_rate: bool = False
    """Multiply the learning rate by (ESS / reference)^power, at most 1 (VCPO, arXiv 2602.17616)."""
    power: float = Field(default=0.5, gt=0)
    """0.5 because noise of the mean falls with the square root of the samples."""
    smoothing: float = Field(default=0.9, ge=0, lt=1)
    """Weight of the past in the running ESS: one batch's value is too noisy to drive anything."""
    floor: float = Field(default=0.1, gt=0, le=1)
    """Smallest factor."""


class SmoothedEss:
    """Running ESS, and the learning-rate factor that follows from it."""

    def __init__(self, config: EssConfig) -> None:
        self.config = config
        self.value: float | None = None
        self.reference: float | None = None
        """The largest running value so far: what this batch size gives on fresh data."""

    def update(self, ess: float) -> float:
        """Take in a batch's ESS (nan = none); returns the factor for the learning rate."""
        if np.isfinite(ess):
            keep = self.config.smoothing
            self.value = ess if self.value is None else keep * self.value + (1.0 - keep) * ess
            self.reference = max(self.value, self.reference or 0.0)
        if not self.config.scale_learning_rate or self.value is None or not self.reference:
            return 1.0
        return float(np.clip((self.value / self.reference) ** self.config.power, self.config.floor, 1.0))

    def state(self) -> dict[str, float | None]:
        return {"value": self.value, "reference": self.reference}

    def restore(self, state: Mapping[str, float | None]) -> None:
        self.value, self.reference = state["value"], state["reference"]
