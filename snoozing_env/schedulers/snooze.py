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

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import BeforeValidator, Field, model_validator

from snoozing_env.config import FrozenConfig
from snoozing_env.schedulers.forgetting import AutoConfig, Forgetting
from snoozing_env.schedulers.outcomes import OutcomeTable
from snoozing_env.schedulers.sides import Sides
from snoozing_env.types import Bools, Floats, Ints, TaskInfo

NEVER = np.int32(2**31 - 1)
"""Wake pass of a task that sleeps for good."""

Mode = Literal["deterministic", "jittered", "probabilistic", "literal", "permanent", "off"]


def _passes(value: Any) -> Any:
    """One message for both halves of the union."""
    if value == "auto":
        return value
    try:
        passes = float(value)
    except (TypeError, ValueError):
        passes = float("nan")
    if not passes >= 0:
        raise ValueError("wanted is 'auto' or a number of passes (inf included) greater than or equal to 0")
    return passes


Factor = Annotated[float | Literal["auto"], BeforeValidator(_passes)]
"""N, or "auto": as long as the measured forgetting allows."""


class SnoozeConfig(FrozenConfig):
    """When a task sleeps and for how long."""

    mode: Mode = "deterministic"
    skip_passes: Factor = 5.0
    """N: passes skipped after a too-easy group. 0 = never snooze, inf = permanent filter, "auto" = as many as each
    dataset's forgetting allows (Z9). The post's "returns at epoch e+N" is N-1 here (Z2)."""
    spread: int = Field(default=2, ge=0)
    """`jittered` only: N is drawn uniformly from N-spread to N+spread."""
    datasets: dict[str, Factor] = Field(default_factory=dict)
    """N or "auto" per dataset; a task's own factor wins over it, it wins over `skip_passes` (Z6)."""
    clusters: dict[str, Factor] = Field(default_factory=dict)
    """N per cluster, or "auto" to measure its forgetting apart from its dataset's; wins over `datasets`."""
    auto: AutoConfig = AutoConfig()
    """What "auto" allows: .auto.forgotten-share, .auto.prior-passes, .auto.min-passes, .auto.max-passes,
    .auto.half-life."""
    recheck_share: float = Field(default=0.5, ge=0, le=1)
    """Largest share of a selector's draw that goes to tasks that woke, before the rule chooses. A rule that looks for
    half-solved tasks would never check a mastered one again; passes offer them in turn, whatever this says."""
    easy_share: float = Field(default=0.5, gt=0, le=1)
    """A group counts as too easy only if at least this share of its rollouts was valid (Z1)."""
    tolerance: float = Field(default=1e-6, ge=0)
    """A reward this close to the maximum is the maximum."""
    too_hard: bool = False
    """Also snooze all-zero groups, doubling from one pass with every all-zero re-check (Z10)."""
    too_hard_cap: int = Field(default=16, ge=1)
    """Longest too-hard snooze, in passes."""

    @model_validator(mode="after")
    def _auto_needs_rechecks(self) -> Self:
        auto = "auto" in (self.skip_passes, *self.datasets.values(), *self.clusters.values())
        if auto and self.mode in ("permanent", "literal"):
            raise ValueError(
                f"skip_passes = 'auto' learns from re-checks N passes apart, which mode {self.mode!r} does not make; "
                "use deterministic, jittered or probabilistic"
            )
        return self


class Snooze:
    """Who sleeps until which pass. Columns over N tasks; draws its skips from a seeded generator."""

    def __init__(
        self,
        config: SnoozeConfig,
        tasks: Sequence[TaskInfo],
        rng: np.random.Generator,
        sides: Sides,
    ) -> None:
        self.config = config
        self._rng = rng
        self.factor_N, self._cell_N, cells = _resolve_factors(config, tasks, sides)
        self.forgetting = Forgetting(config.auto, cells, sides.opposed)
        self.wake_pass_N = np.zeros(len(tasks), np.int32)
        """First pass in which the task may be drawn again; 0 = it is awake."""
        self.slept_at_N = np.zeros(len(tasks), np.int64)
        """Order in which tasks fell asleep, from 1; 0 = not snoozed, or its re-check came back imperfect."""
        self.slept_pass_N = np.zeros(len(tasks), np.int32)
        """Pass of the group that put the task to sleep; meaningful where slept_at is above 0."""
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

    def due(self, n: int, open_N: Bools) -> Ints:
        """Up to n open tasks that woke and were not checked since, the one that fell asleep first in front (Z8)."""
        if not self.snoozed or not n:
            return np.zeros(0, np.int64)
        due = np.flatnonzero((self.slept_at_N > 0) & open_N)
        due = due[self.hard_streak_N[due] == 0]
        if len(due) > n:
            due = due[np.argpartition(self.slept_at_N[due], n - 1)[:n]]
        return due[np.argsort(self.slept_at_N[due], kind="stable")].astype(np.int64)

    def wake(self, task_B: Ints, *, pass_number: int | Ints) -> None:
        """End a sleep before its time; the next group still counts as a re-check."""
        self.wake_pass_N[task_B] = np.minimum(self.wake_pass_N[task_B], pass_number)
        self.woken_early += len(task_B)

    def shorten(self, task_K: Ints, most: float) -> None:
        """Let sleepers skip at most so many passes, those already skipped included; the next group is a re-check."""
        limit_K = np.minimum(self.slept_pass_N[task_K] + 1 + np.rint(most), float(NEVER))
        self.wake_pass_N[task_K] = np.minimum(self.wake_pass_N[task_K], limit_K).astype(np.int32)

    def extremes(self, table: OutcomeTable) -> tuple[Bools, Bools]:
        """[B] too easy and too hard: every valid reward at the maximum or at zero, and enough of them (Z1)."""
        enough_B = table.valid_B >= np.ceil(self.config.easy_share * table.size_B)
        easy_B = enough_B & (table.min_B >= 1.0 - self.config.tolerance)
        return easy_B, enough_B & (table.max_B <= self.config.tolerance)

    # -- who falls asleep -------------------------------------------------------------------------------

    def rechecks(self, task_B: Ints) -> Bools:
        """[B] True where a group of the task shows what became of a mastered one."""
        return (self.slept_at_N[task_B] > 0) & (self.hard_streak_N[task_B] == 0)

    def factors(self, task_B: Ints) -> Floats:
        """[B] N of each task, as it stands."""
        factor_B = self.factor_N[task_B]
        cell_B = self._cell_N[task_B]
        auto_B = cell_B >= 0
        factor_B[auto_B] = self.forgetting.factor_C[cell_B[auto_B]]
        return factor_B

    def observe(
        self,
        task_B: Ints,
        *,
        easy_B: Bools,
        hard_B: Bools,
        drawn_pass_B: Ints,
        most_B: Floats | float = np.inf,
    ) -> None:
        """Put too-easy (and, if configured, too-hard) tasks to sleep, for `most_B` passes at most; count re-checks
        that came back imperfect."""
        recheck_B = self.rechecks(task_B)
        self.woken += int(recheck_B.sum())
        self.forgotten += int((recheck_B & ~easy_B).sum())
        self._measure(task_B, recheck_B, easy_B, drawn_pass_B)
        streak = np.where(hard_B, np.minimum(self.hard_streak_N[task_B], 200) + 1, 0).astype(np.uint8)
        skips = np.where(easy_B, self._draw_skips(task_B), 0)
        if self.config.too_hard and self.config.mode != "off":
            backoff = np.minimum(
                2.0 ** np.minimum(streak.astype(np.float64) - 1, 30), self.config.too_hard_cap
            )
            skips = np.where(hard_B, backoff, skips)
        skips = np.minimum(skips, np.rint(most_B))
        sleeps = skips > 0
        wake = np.minimum(drawn_pass_B + 1 + skips, float(NEVER))
        self.hard_streak_N[task_B] = streak
        self.wake_pass_N[task_B] = np.where(sleeps, wake, 0).astype(np.int32)
        ticks = self.clock + 1 + np.arange(len(task_B))
        self.slept_at_N[task_B] = np.where(sleeps, ticks, 0)
        self.slept_pass_N[task_B] = np.where(sleeps, drawn_pass_B, 0)
        self.clock += len(task_B)
        self.snoozed += int((sleeps & easy_B).sum())

    def _measure(self, task_B: Ints, recheck_B: Bools, easy_B: Bools, drawn_pass_B: Ints) -> None:
        seen = np.flatnonzero(recheck_B & (self._cell_N[task_B] >= 0))
        self.forgetting.observe(
            self._cell_N[task_B[seen]],
            passes_B=drawn_pass_B[seen] - self.slept_pass_N[task_B[seen]],
            lapsed_B=~easy_B[seen],
            now_B=drawn_pass_B[seen],
        )

    def _draw_skips(self, task_B: Ints) -> Floats:
        """[B] passes to skip; inf = for good. One call consumes the generator the same way whatever the mode's outcome."""
        mode, factor_B = self.config.mode, self.factors(task_B)
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
        if mode != "probabilistic" and (auto_B := self._cell_N[task_B] >= 0).any():
            skips = np.where(auto_B, self._round(factor_B), skips)
        return np.where(for_good, np.inf, skips)

    def _round(self, factor_B: Floats) -> Floats:
        """[B] N as a whole number, rounded up or down at random so that its mean is N."""
        return np.floor(factor_B + self._rng.random(len(factor_B)))

    def columns(self) -> dict[str, np.ndarray]:
        """The state, one array per column (17 bytes a task)."""
        return {
            "wake_pass": self.wake_pass_N,
            "slept_at": self.slept_at_N,
            "slept_pass": self.slept_pass_N,
            "hard_streak": self.hard_streak_N,
        }

    def state(self) -> dict[str, Any]:
        """JSON-able rest."""
        counts = {name: getattr(self, name) for name in _COUNTS}
        return {"rng": self._rng.bit_generator.state, "forgetting": self.forgetting.state(), **counts}

    def restore(self, state: Mapping[str, Any]) -> None:
        self._rng.bit_generator.state = state["rng"]
        self.forgetting.restore(state["forgetting"])
        for name in _COUNTS:
            setattr(self, name, int(state[name]))

    def metrics(self) -> dict[str, float]:
        """Counts since the start of the run, and N of each dataset or cluster that measures its own."""
        counts = {name: float(getattr(self, name)) for name in _COUNTS if name != "clock"}
        cells = zip(self.forgetting.cells, self.forgetting.factor_C.tolist(), strict=True)
        return counts | {f"auto_factor/{name}": factor for name, factor in cells}


_COUNTS = ("clock", "snoozed", "woken", "forgotten", "woken_early")


def _resolve_factors(
    config: SnoozeConfig, tasks: Sequence[TaskInfo], sides: Sides
) -> tuple[Floats, Ints, list[str]]:
    """[N] the task's own factor, else its cluster's, its dataset's, or the global one (Z6); for "auto", [N] the cell
    that measures it (-1 = none) and the cells' names."""
    factors, cell = np.empty(len(tasks)), np.full(len(tasks), -1, np.int32)
    cells: dict[str, int] = {}
    for i, task in enumerate(tasks):
        own: Factor | None = task.snooze_factor
        name: str = task.dataset
        if own is None and task.cluster is not None and task.cluster in config.clusters:
            own, name = config.clusters[task.cluster], task.cluster
        elif own is None:
            own = config.datasets.get(name, config.skip_passes)
        if own == "auto":
            side = int(sides.side_N[i])
            name = sides.names[side] if side >= 0 else name
            cell[i] = cells.setdefault(name, len(cells))
        factors[i] = config.auto.prior_passes if own == "auto" else own
    bad = np.flatnonzero(np.isnan(factors) | (factors < 0))
    if len(bad):
        task = tasks[int(bad[0])]
        raise ValueError(
            f"task {task.key!r} has snooze_factor {factors[bad[0]]}; it must be >= 0 (0 = never snooze, inf = permanent)"
        )
    return factors, cell.astype(np.int64), list(cells)
