"""Estimates that return to the prior the longer a task goes unvisited (S4, S11).

The policy moves under an unvisited task, so its evidence loses half its weight every `half_life` weight
updates. The clock is the policy version that outcomes report; a trainer that reports none gets no reversion
and still has the epsilon floor.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from snoozing_env.schedulers.difficulty import Difficulty
from snoozing_env.types import Ints

Floats32 = NDArray[np.floating[Any]]


class Reversion:
    """Reads `Difficulty` with faded evidence. Everything is float32 and takes a slice, so that a scan over 10^6
    tasks runs through cache-sized blocks."""

    def __init__(self, half_life: float, difficulty: Difficulty) -> None:
        self.half_life = half_life
        self.difficulty = difficulty
        self.seen_N = np.zeros(len(difficulty.visits_N), np.int32)
        """Policy version of the last judged group."""
        self.now = 0
        """Latest policy version that any outcome reported."""

    def observe(self, task_B: Ints, version_B: Ints) -> None:
        self.seen_N[task_B] = version_B
        if len(version_B):
            self.now = max(self.now, int(version_B.max()))

    def fade(self, part: slice | Ints) -> Floats32 | np.float32:
        """Weight left to each task's evidence, in (0, 1]."""
        if np.isinf(self.half_life) or self.now == 0:
            return np.float32(1.0)
        age = (self.now - self.seen_N[part]).astype(np.float32)
        return np.exp2(age * np.float32(-1.0 / self.half_life))

    def counts(self, part: slice | Ints) -> tuple[Floats32, Floats32]:
        """Successes and failures of the Beta posterior, prior included."""
        d, fade = self.difficulty, self.fade(part)
        floor_s, floor_f = d.floor_s_N[part], d.floor_f_N[part]
        return (
            floor_s + (d.successes_N[part] - floor_s) * fade,
            floor_f + (d.failures_N[part] - floor_f) * fade,
        )

    def rates(self, part: slice | Ints) -> Floats32:
        """The configured pass-rate estimate."""
        d = self.difficulty
        if d.config.estimate == "beta":
            s, f = self.counts(part)
            return s / (s + f)
        prior = d.floor_s_N[part] / np.float32(d.config.prior_strength)
        value = d.last_N[part] if d.config.estimate == "last" else d.ema_N[part]
        return prior + (value - prior) * self.fade(part)
