"""The scheduler: one snooze policy, one set of estimates, and a source of tasks; every kind is this class.

draw ─▶ source (owed, passes, selector) ─▶ a fruitless lap? wake the longest asleep ─▶ indices, now busy
observe ─▶ too few valid: offer again ─ else ─▶ selector, difficulty ─▶ all at the maximum: sleep N passes
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from pydantic import Field

from snoozing_env.config import FrozenConfig
from snoozing_env.errors import ConfigError
from snoozing_env.schedulers.base import LoadReport
from snoozing_env.schedulers.clock import DatasetClock
from snoozing_env.schedulers.difficulty import Columns, Difficulty, DifficultyConfig
from snoozing_env.schedulers.mixture import Mixture, MixtureConfig
from snoozing_env.schedulers.outcomes import OutcomeTable, distinct_chunks, tabulate
from snoozing_env.schedulers.passes import PassQueue
from snoozing_env.schedulers.reversion import Reversion
from snoozing_env.schedulers.selector import Pool, Selector
from snoozing_env.schedulers.snooze import Snooze, SnoozeConfig
from snoozing_env.schedulers.source import Passes, Selection, Source
from snoozing_env.schedulers.state import Snapshot, match_keys
from snoozing_env.types import Bools, GroupOutcome, Ints, TaskInfo


class CurriculumConfig(FrozenConfig):
    """What every kind of scheduler shares."""

    snooze: SnoozeConfig = SnoozeConfig()
    """When a task sleeps: --scheduler.snooze.skip-passes N (default: 5.0), .mode, .spread, .datasets, .easy-share,
    .tolerance, .too-hard, .too-hard-cap."""
    difficulty: DifficultyConfig = DifficultyConfig()
    """How pass rates are estimated: --scheduler.difficulty.estimate (last, ema or beta), .alpha, .decay,
    .prior-strength."""
    mixture: MixtureConfig | None = None
    """Shares of datasets; None = wherever the rule finds tasks."""
    min_valid: int = Field(default=2, ge=1)
    """Groups with fewer valid rollouts teach nothing and are offered again (D1)."""
    max_retries: int = Field(default=2, ge=0)
    """Times in a row that such a group is offered again at once; after that it waits for its next pass."""

    @property
    def name(self) -> str:
        """The config's `kind`, under which its state is saved."""
        return str(type(self).model_fields["kind"].default)

    def selector(self, pool: Pool) -> Selector | None:
        """The rule that picks tasks; None = passes alone."""
        return None


class SelectedConfig(CurriculumConfig):
    """What every kind with a selector shares."""

    epsilon: float = Field(default=0.02, gt=0, le=1)
    """Share of each draw that comes from uniform passes, so that no rule starves a task (S11): each is drawn within
    1/epsilon passes of draws. The floor's groups are as informative as uniform's; in the chapter's simulation the
    band keeps .963 of its groups with hardly a floor, .961 at .02, .957 at .05."""
    half_life: float = Field(default=200.0, gt=0)
    """Weight updates after which an unvisited task's evidence counts half; inf = never (S4)."""


class Curriculum:
    """Difficulty columns, one snooze policy and a source of tasks over N tasks."""

    def __init__(self, config: CurriculumConfig, tasks: Sequence[TaskInfo], seed: int) -> None:
        self.config = config
        self.tasks = tuple(tasks)
        seeds = np.random.SeedSequence(seed).spawn(3)
        self._pass_rng, self._snooze_rng, self._selector_rng = (np.random.default_rng(s) for s in seeds)
        n = len(self.tasks)
        self.queue = PassQueue(n, self._pass_rng)
        self.snooze = Snooze(config.snooze, self.tasks, self._snooze_rng)
        self.difficulty = Difficulty(config.difficulty, self.tasks)
        half_life = config.half_life if isinstance(config, SelectedConfig) else float("inf")
        self._reversion = Reversion(half_life, self.difficulty)
        self.source: Source = self._build_source(config)
        self._busy_N = np.zeros(n, np.bool_)
        self._drawn_pass_N = np.zeros(n, np.int32)
        self._retries_N = np.zeros(n, np.uint8)
        self._drawn = self._observed = self._unjudged = 0

    def _build_source(self, config: CurriculumConfig) -> Source:
        pool = Pool(
            tasks=self.tasks,
            difficulty=self.difficulty,
            reversion=self._reversion,
            rng=self._selector_rng,
        )
        selector = config.selector(pool)
        if selector is None:
            return Passes(self.queue, self.snooze)
        clock = DatasetClock(self.tasks)
        mixture = config.mixture
        return Selection(
            self.queue,
            self.snooze,
            selector,
            clock,
            epsilon=config.epsilon if isinstance(config, SelectedConfig) else 0.0,
            mixture=None if mixture is None else Mixture(mixture, clock.names, clock.size_D),
        )

    # -- drawing ----------------------------------------------------------------------------------------

    def draw(self, n: int, *, missing: Mapping[str, int] | None = None) -> Ints:
        """[≤n] idle tasks, now busy: n of them whenever n are awake, the longest asleep when none is (Z11).

        With a mixture, `missing` says what each dataset still lacks in the batch (see `batch_shares`): then only
        tasks of those datasets are drawn, in that proportion.
        """
        if n < 0:
            raise ValueError(f"draw(n) needs n >= 0, got {n}")
        task_B, pass_B = (
            self.source.take(n, self._busy_N)
            if missing is None
            else self._mixed.take(n, self._busy_N, missing)
        )
        self._drawn_pass_N[task_B] = pass_B
        if n and not len(task_B):
            barred_N = self._busy_N if missing is None else self._busy_N | ~self._mixed.of(missing)
            task_B = self._wake_longest(n, barred_N)
            self._busy_N[task_B] = True
            self._drawn_pass_N[task_B] = self.source.now(task_B)
        # A draw that comes up short has offered every idle task; those asleep let it go by.
        idle = n if len(task_B) == n else len(self.tasks) - int(self._busy_N.sum()) + len(task_B)
        self.source.drew(task_B, offered=min(n, idle))
        self._drawn += len(task_B)
        return task_B

    def batch_shares(self, batch: int) -> dict[str, int]:
        """Groups per dataset that the next trained batch should hold; rounding is carried from batch to batch (M1)."""
        return self._mixed.batch_shares(batch)

    @property
    def _mixed(self) -> Selection:
        if not isinstance(self.source, Selection) or self.source.mixture is None:
            raise ConfigError(
                "shares per dataset were asked for, but the scheduler has no mixture; add [scheduler.mixture]"
            )
        return self.source

    def _wake_longest(self, n: int, barred_N: Bools) -> Ints:
        woken_B = self.snooze.longest_asleep(n, pass_number=self.source.now_N(), busy_N=barred_N)
        self.snooze.wake(woken_B, pass_number=self.source.now(woken_B))
        return woken_B

    def wake(self, n: int) -> int:
        """Wake up to n tasks, the longest asleep first; they come up at the next draw."""
        woken_B = self._wake_longest(n, self._busy_N)
        for task in woken_B[::-1]:
            self.queue.put_first(int(task))
        return len(woken_B)

    def release(self, index: int) -> None:
        """Free a drawn task whose group was lost; it is offered again first."""
        if self._busy_N[index]:
            self._busy_N[index] = False
            self.queue.put_first(index)

    def offer(self, index: int) -> None:
        """Offer an idle task again first: its group was observed, but came too late to be trained."""
        if not self._busy_N[index]:
            self.queue.put_first(index)

    # -- learning ---------------------------------------------------------------------------------------

    def observe(self, outcome: GroupOutcome) -> None:
        self.observe_many((outcome,))

    def observe_many(self, outcomes: Iterable[GroupOutcome]) -> None:
        """Learn from groups in the given order.

        Raises:
            OutcomeError: a reward is NaN, infinite or out of range; nothing of the call is learned.
        """
        batches = [tabulate(chunk, self.tasks) for chunk in distinct_chunks(outcomes)]
        for table in batches:
            self._learn(table)

    def _learn(self, table: OutcomeTable) -> None:
        self._busy_N[table.task_B] = False
        self._observed += len(table.task_B)
        judged = table.valid_B >= np.minimum(self.config.min_valid, table.size_B)
        if not judged.all():
            self._retry(table.task_B[~judged])
            table = table.where(judged)
        task_B = table.task_B
        self._retries_N[task_B] = 0
        easy_B, hard_B = self._extremes(table)
        self.source.observe(table, easy_B=easy_B)
        self.difficulty.observe(task_B, table.sum_B, table.valid_B.astype(np.float64))
        self._reversion.observe(task_B, table.version_B)
        self.snooze.observe(
            task_B, easy_B=easy_B, hard_B=hard_B, drawn_pass_B=self._drawn_pass_N[task_B].astype(np.int64)
        )

    def _extremes(self, table: OutcomeTable) -> tuple[Bools, Bools]:
        """[B] too easy and too hard: every valid reward at the maximum or at zero, and enough of them (Z1)."""
        snooze = self.config.snooze
        enough = table.valid_B >= np.ceil(snooze.easy_share * table.size_B)
        return enough & (table.min_B >= 1.0 - snooze.tolerance), enough & (table.max_B <= snooze.tolerance)

    def _retry(self, task_B: Ints) -> None:
        self._unjudged += len(task_B)
        again = self._retries_N[task_B] < self.config.max_retries
        self._retries_N[task_B] = np.where(again, self._retries_N[task_B] + 1, 0)
        for task in task_B[again]:
            self.queue.put_first(int(task))
        self.source.wait(task_B[~again])

    # -- reporting and state ----------------------------------------------------------------------------

    def metrics(self) -> dict[str, float]:
        n = max(len(self.tasks), 1)
        common = {
            "passes": self.source.position,
            "drawn_groups": float(self._drawn),
            "observed_groups": float(self._observed),
            "unjudged_groups": float(self._unjudged),
            "busy": float(self._busy_N.sum()),
            "asleep_share": float(self.snooze.asleep_N(self.source.now_N()).sum()) / n,
            "snoozed": float(self.snooze.snoozed),
            "woken": float(self.snooze.woken),
            "woken_early": float(self.snooze.woken_early),
            "forgotten": float(self.snooze.forgotten),
            "visited_share": float((self.difficulty.visits_N > 0).sum()) / n,
            "pass_rate_mean": float(self.difficulty.mean_N().mean()),
        }
        if isinstance(self.source, Selection):
            common["floor_groups"] = float(self.source.floor_groups)
            common |= self.source.selector.metrics()
        return common

    def snapshot(self) -> Snapshot:
        """The state as columns and a small JSON part; what the sidecar stores."""
        meta: dict[str, Any] = {
            **self.queue.state(),
            "pass_rng": self._pass_rng.bit_generator.state,
            "snooze_rng": self._snooze_rng.bit_generator.state,
            "snooze_clock": self.snooze.clock,
            "counts": {
                "drawn": self._drawn,
                "observed": self._observed,
                "unjudged": self._unjudged,
                **{name: getattr(self.snooze, name) for name in _SNOOZE_COUNTS},
            },
        }
        if isinstance(self.source, Selection):
            meta["selection"] = self.source.state()
            meta["selector_rng"] = self._selector_rng.bit_generator.state
            meta["version"] = self._reversion.now
        return Snapshot(
            kind=self.config.name, keys=[t.key for t in self.tasks], columns=self._columns(), meta=meta
        )

    def state_dict(self) -> dict[str, Any]:
        return self.snapshot().to_json()

    def load_state_dict(self, state: Mapping[str, Any], *, merge: bool = False) -> LoadReport:
        return self.restore(Snapshot.from_json(state), merge=merge)

    def restore(self, snapshot: Snapshot, *, merge: bool = False) -> LoadReport:
        """Continue from a snapshot; in-flight tasks of the saved run are idle again.

        Raises:
            StateError: another scheduler kind or schema, or (without merge) a mostly different task set.
        """
        snapshot.require_kind(self.config.name)
        moved_N, report = match_keys(snapshot.keys, [t.key for t in self.tasks], merge=merge)
        for name, column in self._columns().items():
            if name != "order":
                old = snapshot.column(name)
                column[moved_N >= 0] = old[moved_N[moved_N >= 0]]
        meta = snapshot.meta
        self._pass_rng.bit_generator.state = meta["pass_rng"]
        self._snooze_rng.bit_generator.state = meta["snooze_rng"]
        to_new = np.full(len(snapshot.keys), -1, np.int64)
        to_new[moved_N[moved_N >= 0]] = np.flatnonzero(moved_N >= 0)
        self.queue.restore(meta, snapshot.column("order"), to_new, fresh=np.flatnonzero(moved_N < 0))
        if isinstance(self.source, Selection):
            self._selector_rng.bit_generator.state = meta["selector_rng"]
            self._reversion.now = int(meta["version"])
            self.source.restore(meta["selection"], to_new)
        self.snooze.clock = int(meta["snooze_clock"])
        counts = meta["counts"]
        self._drawn, self._observed, self._unjudged = counts["drawn"], counts["observed"], counts["unjudged"]
        for name in _SNOOZE_COUNTS:
            setattr(self.snooze, name, int(counts[name]))
        self._busy_N[:] = False
        return report

    def _columns(self) -> Columns:
        """Live arrays by column name; 42 bytes a task, and at most 22 more for a selector."""
        common: Columns = {
            "order": self.queue.order_N,
            "drawn_pass": self._drawn_pass_N,
            "retries": self._retries_N,
            **self.snooze.columns(),
            **self.difficulty.columns(),
        }
        if isinstance(self.source, Selection):
            common |= {"seen": self._reversion.seen_N, **self.source.selector.columns()}
        return common


_SNOOZE_COUNTS = ("snoozed", "woken", "forgotten", "woken_early")
