"""Signs of a collapse, watched together: one alone proves little (A7).

A public run collapsed at an effective sample size of .989, so entropy, clipping, truncation, reward and dead groups
are watched too. A signal *alarms* when it has been past its limit for `patience` steps running. A *collapse* is
declared when several alarm at once: the run then saves, reports and stops, because a collapsed policy does not come
back (seed S4), and what it would train on until somebody looks is wasted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from pydantic import Field

from snoozing_env.config import FrozenConfig

Signal = Literal["ess", "entropy", "clip_fraction", "truncation", "reward", "dead_groups", "grad_norm"]


class AlarmConfig(FrozenConfig):
    """Limits; relative ones are against the signal's own median over its first `baseline` steps."""

    ess_below: float = Field(default=0.3, ge=0, le=1)
    """Sequence-level effective sample size (seed S4: below .3 is mostly noise)."""
    entropy_below: float = Field(default=0.2, ge=0)
    """Fraction of its baseline to which the entropy may fall."""
    clip_above: float = Field(default=0.3, ge=0, le=1)
    """Share of clipped tokens."""
    truncation_above: float = Field(default=0.5, ge=0, le=1)
    """Share of rollouts that hit the token limit."""
    reward_below: float = Field(default=0.5, ge=0)
    """Fraction of its best running value to which the mean reward may fall."""
    dead_above: float = Field(default=0.95, ge=0, le=1)
    """Share of generated groups without a gradient; silent in a run that began above it, as one of rare successes does."""
    grad_norm_above: float = Field(default=10.0, gt=0)
    """Multiple of its baseline that the gradient norm may reach."""
    baseline: int = Field(default=10, ge=1)
    """Steps that make a baseline; signals that are held against one are silent before."""
    patience: int = Field(default=5, ge=1)
    """Steps in a row past its limit before a signal alarms."""
    collapse_at: int = Field(default=2, ge=1)
    """Signals alarming at once that mean collapse."""
    pause_on_collapse: bool = True
    """Save, report and stop on a collapse; False = only say so."""


@dataclass(frozen=True, slots=True)
class Alarm:
    """One signal past its limit for long enough."""

    signal: Signal
    value: float
    limit: float
    steps: int

    def __str__(self) -> str:
        return f"{self.signal} {self.value:.3g} past {self.limit:.3g} for {self.steps} steps"


class Alarms:
    """Watches one run, a step at a time."""

    def __init__(self, config: AlarmConfig) -> None:
        self.config = config
        self._streaks: dict[str, int] = {}
        self._first: dict[str, list[float]] = {}
        self._reward: float | None = None
        self._best_reward = 0.0

    def update(self, values: Mapping[Signal, float | None]) -> list[Alarm]:
        """Take in a step's signals (None or nan = not measured, changes nothing); returns what alarms now."""
        alarms: list[Alarm] = []
        for signal, value in values.items():
            if value is None or not np.isfinite(value):
                continue
            level = self._smooth_reward(value) if signal == "reward" else value
            limit, low_is_bad = self._limit(signal, value)
            past = limit is not None and (level < limit if low_is_bad else level > limit)
            self._streaks[signal] = self._streaks.get(signal, 0) + 1 if past else 0
            if limit is not None and self._streaks[signal] >= self.config.patience:
                alarms.append(Alarm(signal, level, limit, self._streaks[signal]))
        return alarms

    def collapsed(self, alarms: list[Alarm]) -> bool:
        """Whether these alarms together mean that the policy collapsed."""
        return len(alarms) >= self.config.collapse_at

    def _limit(self, signal: Signal, value: float) -> tuple[float | None, bool]:
        """The limit, and whether values below it are the bad ones; None while a baseline is being made."""
        c = self.config
        match signal:
            case "ess":
                return c.ess_below, True
            case "clip_fraction":
                return c.clip_above, False
            case "truncation":
                return c.truncation_above, False
            case "dead_groups":
                began = self._baseline(signal, value)
                return (None if began is None or began > c.dead_above else c.dead_above), False
            case "reward":
                return c.reward_below * self._best_reward, True
            case "entropy" | "grad_norm":
                low, began = signal == "entropy", self._baseline(signal, value)
                factor = c.entropy_below if low else c.grad_norm_above
                return (None if began is None else factor * began), low

    def _baseline(self, signal: Signal, value: float) -> float | None:
        """Median over the first steps; None while they are being gathered, this value included."""
        first = self._first.setdefault(signal, [])
        if len(first) < self.config.baseline:
            first.append(value)
            return None
        return float(np.median(first))

    def _smooth_reward(self, value: float) -> float:
        self._reward = value if self._reward is None else 0.8 * self._reward + 0.2 * value
        self._best_reward = max(self._best_reward, self._reward)
        return self._reward

    def state(self) -> dict[str, Any]:
        """JSON-able."""
        return {
            "streaks": dict(self._streaks),
            "first": {name: list(values) for name, values in self._first.items()},
            "reward": self._reward,
            "best_reward": self._best_reward,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        self._streaks = dict(state["streaks"])
        self._first = {name: list(values) for name, values in state["first"].items()}
        self._reward, self._best_reward = state["reward"], float(state["best_reward"])
