"""Snoozing: a mastered task sleeps for some passes and is then checked again (S0; Z1 to Z8, Z10).

Every mode is one distribution of the number of skipped passes, drawn when the task falls asleep:

    deterministic   N                    "snooze it for N epochs", back in pass e+N+1
    jittered        N ± spread           the same mean, so wake-ups do not come in waves
    probabilistic   Geometric, q=N/(N+1) skipped in each pass with q; memoryless, mean N
    literal         Geometric, q=1/N     the post's sentence "filter it at each epoch with a probability of
                                         1/N" taken at its word: mean 1/(N-1), which is not what it wants
    permanent       never back           what the post calls dynamic difficulty filtering
    off             0                    plain dynamic sampling
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from pydantic import Field, NonNegativeFloat

from snoozing_env.config import FrozenConfig
from snoozing_env.types import Bools, Floats, Ints, TaskInfo

NEVER = np.int32(2**31 - 1)
"""Wake pass of a task that sleeps for good."""

Mode = Literal["deterministic", "jittered", "probabilistic", "literal", "permanent", "off"]


class SnoozeConfig(FrozenConfig):
    """When a task sleeps and for how long."""

    mode: Mode = "deterministic"
    skip_passes: NonNegativeFloat = 5.0
    """N: passes skipped after a too-easy group. 0 = never snooze, inf = permanent filter. The post's "returns at
    epoch e+N" is N-1 here (Z2)."""
    spread: int = Field(default=2, ge=0)
    """`jittered` only: N is drawn uniformly from N-spread to N+spread."""
    datasets: dict[str, NonNegativeFloat] = Field(default_factory=dict)
    """N per dataset; a task's own factor wins over it, it wins over `skip_passes` (Z6)."""
    easy_share: float = Field(default=0.5, gt=0, le=1)
    """A group counts as too easy only if at least this share of its rollouts was valid (Z1)."""
    tolerance: float = Field(default=1e-6, ge=0)
    """A reward this close to the maximum is the maximum."""
    too_hard: bool = False
    """Also snooze all-zero groups, doubling from one pass with every all-zero re-check (Z10)."""
    too_hard_cap: int = Field(default=16, ge=1)
    """Longest too-hard snooze, in passes."""


class Snooze:
    """Who sleeps until which pass. Columns over N tasks; draws its skips from a seeded generator."""

    def __init__(self, config: SnoozeConfig, tasks: Sequence[TaskInfo], rng: np.random.Generator) -> None:
        self.config = config
        self._rng = rng
        self.factor_N = _resolve_factors(config, tasks)
        self.wake_pass_N = np.zeros(len(tasks), np.int32)
        """First pass in which the task may be drawn again; 0 = it is awake."""
        self.slept_at_N = np.zeros(len(tasks), np.int64)
        """Order in which tasks fell asleep, from 1; 0 = not snoozed, or its re-check came back imperfect."""
        self.hard_streak_N = np.zeros(len(tasks), np.uint8)
        """Consecutive all-zero groups; 0 also for a task that sleeps because it is too easy."""
        self.clock = 0
        self.snoozed = self.woken = self.forgotten = self.woken_early = 0
        """Counts since the start of the run."""

    # -- who sleeps -------------------------------------------------------------------------------------

    def asleep(self, task_B: Ints, pass_number: int | Ints) -> Bools:
        """[B] True where the task skips pass `pass_number`, one for all or one each."""
        return self.wake_pass_N[task_B] > pass_number

    def asleep_N(self, pass_number: int | Ints) -> Bools:
        return self.wake_pass_N > pass_number

    def longest_asleep(self, n: int, *, pass_number: int | Ints, busy_N: Bools) -> Ints:
        """Up to n sleeping, idle tasks, the one that fell asleep first in front (Z11)."""
        sleepers = np.flatnonzero(self.asleep_N(pass_number) & ~busy_N)
        if len(sleepers) > n:
            sleepers = sleepers[np.argpartition(self.slept_at_N[sleepers], n - 1)[:n]] if n else sleepers[:0]
        return sleepers[np.argsort(self.slept_at_N[sleepers], kind="stable")].astype(np.int64)

    def wake(self, task_B: Ints, *, pass_number: int | Ints) -> None:
        """End a sleep before its time; the next group still counts as a re-check."""
        self.wake_pass_N[task_B] = np.minimum(self.wake_pass_N[task_B], pass_number)
        self.woken_early += len(task_B)

    # -- who falls asleep -------------------------------------------------------------------------------

    def observe(self, task_B: Ints, *, easy_B: Bools, hard_B: Bools, drawn_pass_B: Ints) -> None:
        """Put too-easy (and, if configured, too-hard) tasks to sleep; count re-checks that came back imperfect."""
        recheck = (self.slept_at_N[task_B] > 0) & (self.hard_streak_N[task_B] == 0)
        self.woken += int(recheck.sum())
        self.forgotten += int((recheck & ~easy_B).sum())
        streak = np.where(hard_B, np.minimum(self.hard_streak_N[task_B], 200) + 1, 0).astype(np.uint8)
        skips = np.where(easy_B, self._draw_skips(self.factor_N[task_B]), 0)
        if self.config.too_hard and self.config.mode != "off":
            backoff = np.minimum(
                2.0 ** np.minimum(streak.astype(np.float64) - 1, 30), self.config.too_hard_cap
            )
            skips = np.where(hard_B, backoff, skips)
        sleeps = skips > 0
        wake = np.minimum(drawn_pass_B + 1 + skips, float(NEVER))
        self.hard_streak_N[task_B] = streak
        self.wake_pass_N[task_B] = np.where(sleeps, wake, 0).astype(np.int32)
        ticks = self.clock + 1 + np.arange(len(task_B))
        self.slept_at_N[task_B] = np.where(sleeps, ticks, 0)
        self.clock += len(task_B)
        self.snoozed += int((sleeps & easy_B).sum())

    def _draw_skips(self, factor_B: Floats) -> Floats:
        """[B] passes to skip; inf = for good. One call consumes the generator the same way whatever the mode's outcome."""
        mode = self.config.mode
        if mode == "off":
            return np.zeros_like(factor_B)
        for_good = np.isinf(factor_B) | ((mode == "permanent") & (factor_B > 0))
        finite = np.where(for_good, 1.0, factor_B)
        if mode == "jittered":
            reach = np.minimum(self.config.spread, np.rint(finite)).astype(np.int64)
            skips = np.rint(finite) + self._rng.integers(-reach, reach + 1)
        elif mode == "probabilistic":
            skips = self._rng.geometric(1.0 / (finite + 1.0)) - 1.0
        elif mode == "literal":
            for_good = for_good | ((factor_B > 0) & (factor_B <= 1.0))
            skips = self._rng.geometric(1.0 - 1.0 / np.maximum(finite, 1.0 + 1e-9)) - 1.0
        else:
            skips = np.rint(finite)
        skips = np.where(factor_B == 0, 0.0, skips)
        return np.where(for_good, np.inf, skips)

    def columns(self) -> dict[str, np.ndarray]:
        """The state, one array per column (13 bytes a task)."""
        return {"wake_pass": self.wake_pass_N, "slept_at": self.slept_at_N, "hard_streak": self.hard_streak_N}


def _resolve_factors(config: SnoozeConfig, tasks: Sequence[TaskInfo]) -> Floats:
    """[N] the task's own factor, else its dataset's, else the global one (Z6)."""
    factors = np.empty(len(tasks))
    for i, task in enumerate(tasks):
        own = task.snooze_factor
        factors[i] = own if own is not None else config.datasets.get(task.dataset, config.skip_passes)
    bad = np.flatnonzero(np.isnan(factors) | (factors < 0))
    if len(bad):
        task = tasks[int(bad[0])]
        raise ValueError(
            f"task {task.key!r} has snooze_factor {factors[bad[0]]}; it must be >= 0 (0 = never snooze, inf = permanent)"
        )
    return factors
