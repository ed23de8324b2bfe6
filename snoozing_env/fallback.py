"""Giving up on a selector that loses to uniform: the fixed, unfiltered evaluation decides (S11).

    evaluation ─▶ paired with the best one so far, task by task ─┬─ significantly lower, `patience` times ─▶ fall back
                                                                 └─ as good again, as often ─▶ recover

A public run with a difficulty curriculum ended at .166 where uniform sampling ended at .289. No signal of the training
batches shows that: their tasks are the ones the selector likes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from pydantic import Field

from snoozing_env.config import FrozenConfig
from snoozing_env.intervals import paired
from snoozing_env.types import Floats

Action = Literal["fall_back", "recover"]


class FallbackConfig(FrozenConfig):
    """When a drop of the evaluation sends the scheduler back to uniform draws."""

    min_drop: float = Field(default=0.02, ge=0, lt=1)
    """A drop of the mean accuracy smaller than this is never acted on, however certain."""
    confidence: float = Field(default=0.99, gt=0, lt=1)
    """Of the interval of the change, paired by task, that must lie below zero. Two in a row at .99 leave one false alarm
    in twenty runs of twenty evaluations; at .95 there are six, for the best of many evaluations is a lucky one."""
    patience: int = Field(default=2, ge=1)
    """Evaluations in a row that must be significantly below the best one, and as good again to return. Each further fall
    doubles what a return takes: a selector that keeps losing is tried ever more rarely."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What one evaluation says about the scheduler."""

    action: Action | None
    """None = go on."""
    accuracy: float
    best: float
    """Accuracy of the best evaluation before this one, over the tasks that both judged."""
    low: float
    """Interval of the change from the best."""
    high: float


class FallsBack(Protocol):
    """A scheduler that can be told to draw uniformly."""

    def fall_back(self) -> None: ...

    def recover(self) -> None: ...


class FallbackMonitor:
    """Watches the evaluations of one run. Pure: the caller tells the scheduler, and saves `state`."""

    def __init__(self, config: FallbackConfig) -> None:
        self.config = config
        self.fallen_back = False
        self.last_step = -1
        """Step of the last evaluation seen."""
        self._best: dict[str, float] = {}
        """Mean per task key of the best evaluation so far."""
        self._low_streak = self._good_streak = self._falls = 0

    def judge(self, step: int, keys: Sequence[str], mean_N: Floats) -> Judgement:
        """Take in the evaluation at a step: [N] the mean reward of each task, by key."""
        now = dict(zip(keys, mean_N.tolist(), strict=True))
        self.last_step = step
        shared = [key for key in now if key in self._best]
        if len(shared) < 2:
            self._best = self._best or now
            mean = float(mean_N.mean())
            return Judgement(action=None, accuracy=mean, best=mean, low=0.0, high=0.0)
        after, before = (np.array([means[key] for key in shared]) for means in (now, self._best))
        low, high = paired(after, before, confidence=self.config.confidence)
        change = float(after.mean() - before.mean())
        action = self._decide(change, low, high)
        if change > 0:
            self._best = now
        return Judgement(
            action=action, accuracy=float(after.mean()), best=float(before.mean()), low=low, high=high
        )

    def _decide(self, change: float, low: float, high: float) -> Action | None:
        fell = high < 0 and change <= -self.config.min_drop
        self._low_streak = self._low_streak + 1 if fell else 0
        good = change > -max(self.config.min_drop, (high - low) / 4)  # half the way to a significant drop
        self._good_streak = self._good_streak + 1 if good else 0
        if not self.fallen_back and self._low_streak >= self.config.patience:
            self.fallen_back, self._good_streak = True, 0
            self._falls += 1
            return "fall_back"
        wanted = self.config.patience * 2 ** max(self._falls - 1, 0)
        if self.fallen_back and self._good_streak >= wanted:
            self.fallen_back, self._low_streak = False, 0
            return "recover"
        return None

    def state(self) -> dict[str, Any]:
        """JSON-able."""
        return {
            "fallen_back": self.fallen_back,
            "last_step": self.last_step,
            "best": self._best,
            "streaks": [self._low_streak, self._good_streak],
            "falls": self._falls,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        self.fallen_back, self.last_step = bool(state["fallen_back"]), int(state["last_step"])
        self._best = {str(key): float(mean) for key, mean in state["best"].items()}
        self._low_streak, self._good_streak = map(int, state["streaks"])
        self._falls = int(state["falls"])


def apply(action: Action | None, scheduler: FallsBack) -> None:
    """Tell the scheduler."""
    if action == "fall_back":
        scheduler.fall_back()
    elif action == "recover":
        scheduler.recover()
