"""The scheduler: one snooze policy, one set of estimates, and a source of tasks; every kind is this class.

draw ─▶ source (owed, passes, selector) ─▶ a fruitless lap? wake the longest asleep ─▶ indices, now busy
observe ─▶ too few valid: offer again ─ else ─▶ selector, difficulty ─▶ all at the maximum: sleep N passes
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from snoozing_env.errors import ConfigError
from snoozing_env.schedulers.base import LoadReport
from snoozing_env.schedulers.clock import DatasetClock
from snoozing_env.schedulers.conflict import NO_CAP, Conflict, Wake
from snoozing_env.schedulers.difficulty import Columns, Difficulty
from snoozing_env.schedulers.ledger import Ledger
from snoozing_env.schedulers.mixture import Mixture
from snoozing_env.schedulers.outcomes import OutcomeTable, distinct_chunks, tabulate
from snoozing_env.schedulers.passes import PassQueue
from snoozing_env.schedulers.reversion import Reversion
from snoozing_env.schedulers.selector import AnyOpen, Pool
from snoozing_env.schedulers.shared import CurriculumConfig, SelectedConfig
from snoozing_env.schedulers.snooze import Snooze
from snoozing_env.schedulers.source import Passes, Selection, Source
from snoozing_env.schedulers.state import Snapshot, match_keys
from snoozing_env.types import Bools, GroupOutcome, Ints, TaskInfo


class Curriculum:
    """Difficulty columns, one snooze policy and a source of tasks over N tasks."""

    def __init__(self, config: CurriculumConfig, tasks: Sequence[TaskInfo], seed: int) -> None:
        self.config = config
        self.tasks = tuple(tasks)
        seeds = np.random.SeedSequence(seed).spawn(3)
        self._pass_rng, snooze_rng, self._selector_rng = (np.random.default_rng(s) for s in seeds)
        n = len(self.tasks)
        self.queue = PassQueue(n, self._pass_rng)
        self.conflict = Conflict(config.conflict, self.tasks)
        self.snooze = Snooze(config.snooze, self.tasks, snooze_rng, self.conflict.sides)
        self.difficulty = Difficulty(config.difficulty, self.tasks)
        half_life = config.half_life if isinstance(config, SelectedConfig) else float("inf")
        self._reversion = Reversion(half_life, self.difficulty)
        self.source: Source = self._build_source(config)
        self.ledger = Ledger(n, config.max_retries)
        self._fallen_back = False

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
            fallback=AnyOpen(pool),
        )

    # -- the way back to uniform ------------------------------------------------------------------------

    @property
    def fallen_back(self) -> bool:
        """Whether draws are uniform until `recover` (S11)."""
        return self._fallen_back

    def fall_back(self) -> None:
        """Draw uniformly until `recover`: passes over the awake tasks, within each dataset where a mixture sets shares.

        For a trainer whose fixed, unfiltered evaluation has dropped (S11). The selector goes on learning, so that it is
        up to date when it returns; snoozing, the mixture and the conflict monitor stay as configured, for `uniform`
        has them too. Where passes are all there is, nothing changes but the metric.
        """
        self._set_fallen_back(True)

    def recover(self) -> None:
        """Let the selector draw again."""
        self._set_fallen_back(False)

    def _set_fallen_back(self, fallen_back: bool) -> None:
        self._fallen_back = fallen_back
        if isinstance(self.source, Selection):
            self.source.fallen_back = fallen_back

    # -- drawing ----------------------------------------------------------------------------------------

    def draw(self, n: int, *, missing: Mapping[str, int] | None = None) -> Ints:
        """[≤n] idle tasks, now busy: n of them whenever n are awake, the longest asleep when none is (Z11).

        With a mixture, `missing` says what each dataset still lacks in the batch (see `batch_shares`): then only
        tasks of those datasets are drawn, in that proportion and no sleeper woken; short = one of them has too few
        awake.
        """
        if n < 0:
            raise ValueError(f"draw(n) needs n >= 0, got {n}")
        busy_N = self.ledger.busy_N
        task_B, pass_B = (
            self.source.take(n, busy_N) if missing is None else self._mixed.take(n, busy_N, missing)
        )
        if n and not len(task_B) and missing is None:
            task_B = self._wake_longest(n, busy_N)
            pass_B = self.source.now(task_B)
        self.ledger.drew(task_B, pass_B)
        # A draw that comes up short has offered every idle task; those asleep let it go by.
        idle = n if len(task_B) == n else len(self.tasks) - int(busy_N.sum()) + len(task_B)
        self.source.drew(task_B, offered=min(n, idle))
        return task_B

    def batch_shares(self, batch: int) -> dict[str, int]:
        """Groups per dataset that the next trained batch should hold; rounding is carried from batch to batch (M1)."""
        return self._mixed.batch_shares(batch)

    @property
    def exact_batches(self) -> bool:
        """Whether the mixture's shares are those of the trained batch; then a loop asks `batch_shares` first."""
        return self.config.mixture is not None and self.config.mixture.shares_of == "batch"

    def settle_batch(
        self, asked: Mapping[str, int], trained: Mapping[str, int], barren: Collection[str] = ()
    ) -> None:
        """What became of `batch_shares`, group by group: who lent places is repaid in later batches (M2)."""
        self._mixed.settle_batch(asked, trained, barren)

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
        woken_B = self._wake_longest(n, self.ledger.busy_N)
        self._put_first(woken_B)
        return len(woken_B)

    def _put_first(self, task_B: Ints) -> None:
        for task in task_B[::-1]:
            self.queue.put_first(int(task))

    def release(self, index: int) -> None:
        """Free a drawn task whose group was lost; it is offered again first."""
        if self.ledger.busy_N[index]:
            self.ledger.busy_N[index] = False
            self.queue.put_first(index)

    def offer(self, index: int) -> None:
        """Offer an idle task again first: its group was observed, but came too late to be trained."""
        if not self.ledger.busy_N[index]:
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
        self.ledger.finished(table.task_B)
        judged = table.valid_B >= np.minimum(self.config.min_valid, table.size_B)
        if not judged.all():
            again, wait = self.ledger.failed(table.task_B[~judged])
            self._put_first(again)
            self.source.wait(wait)
            table = table.where(judged)
        task_B = table.task_B
        self.ledger.judged(task_B)
        easy_B, hard_B = self.snooze.extremes(table)
        self.source.observe(table, easy_B=easy_B)
        self.difficulty.observe(task_B, table.sum_B, table.valid_B.astype(np.float64))
        self._reversion.observe(task_B, table.version_B)
        wakes = self.conflict.observe(table, recheck_B=self.snooze.rechecks(task_B))
        self.snooze.observe(
            task_B,
            easy_B=easy_B,
            hard_B=hard_B,
            drawn_pass_B=self.ledger.drawn_pass_N[task_B].astype(np.int64),
            most_B=self.conflict.most(task_B),
        )
        for wake in wakes:
            self._wake_side(wake)

    def _wake_side(self, wake: Wake) -> None:
        elsewhere_N = self.conflict.sides.side_N != wake.side
        if wake.most < NO_CAP:
            asleep_N = self.snooze.asleep_N(self.source.now_N())
            self.snooze.shorten(np.flatnonzero(asleep_N & ~elsewhere_N), wake.most)
        if wake.looks:
            self._put_first(self._wake_longest(wake.looks, self.ledger.busy_N | elsewhere_N))

    def warnings(self) -> list[str]:
        """What the run should say aloud, once each: what came up since the last call."""
        messages = list(self.conflict.messages)
        self.conflict.messages.clear()
        return messages

    # -- reporting and state ----------------------------------------------------------------------------

    def metrics(self) -> dict[str, float]:
        n = max(len(self.tasks), 1)
        common = {
            "passes": self.source.position,
            **self.ledger.metrics(),
            "fallback": float(self._fallen_back),
            "asleep_share": float(self.snooze.asleep_N(self.source.now_N()).sum()) / n,
            **self.snooze.metrics(),
            **self.conflict.metrics(),
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
            "snooze": self.snooze.state(),
            "fallen_back": self._fallen_back,
            "conflict": self.conflict.state(),
            "counts": self.ledger.state(),
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
        self.snooze.restore(meta["snooze"])
        to_new = np.full(len(snapshot.keys), -1, np.int64)
        to_new[moved_N[moved_N >= 0]] = np.flatnonzero(moved_N >= 0)
        self.queue.restore(meta, snapshot.column("order"), to_new, fresh=np.flatnonzero(moved_N < 0))
        if isinstance(self.source, Selection):
            self._selector_rng.bit_generator.state = meta["selector_rng"]
            self._reversion.now = int(meta["version"])
            self.source.restore(meta["selection"], to_new)
        self.conflict.restore(meta["conflict"])
        self.ledger.restore(meta["counts"])
        self._set_fallen_back(bool(meta["fallen_back"]))
        return report

    def _columns(self) -> Columns:
        """Live arrays by column name; 46 bytes a task, and at most 18 more for a selector."""
        common: Columns = {
            "order": self.queue.order_N,
            **self.ledger.columns(),
            **self.snooze.columns(),
            **self.difficulty.columns(),
        }
        if isinstance(self.source, Selection):
            common |= {"seen": self._reversion.seen_N, **self.source.selector.columns()}
        return common
