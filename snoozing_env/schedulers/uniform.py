"""`uniform`: shuffled passes with snoozing; the scheduler that every other one must beat (S1, Z1 to Z11).

draw ─▶ owed tasks, then the pass ─▶ a fruitless lap? wake the longest asleep ─▶ indices, now busy
observe ─▶ too few valid: offer again ─ else ─▶ difficulty ─▶ all at the maximum: sleep N passes
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from pydantic import Field

from snoozing_env.config import FrozenConfig
from snoozing_env.schedulers.base import LoadReport
from snoozing_env.schedulers.difficulty import Columns, Difficulty, DifficultyConfig
from snoozing_env.schedulers.outcomes import OutcomeTable, tabulate
from snoozing_env.schedulers.passes import PassQueue
from snoozing_env.schedulers.snooze import Snooze, SnoozeConfig
from snoozing_env.schedulers.state import Snapshot, match_keys
from snoozing_env.types import GroupOutcome, Ints, TaskInfo


class UniformConfig(FrozenConfig):
    """Every task once per shuffled pass, mastered ones asleep."""

    kind: Literal["uniform"] = "uniform"
    snooze: SnoozeConfig = SnoozeConfig()
    difficulty: DifficultyConfig = DifficultyConfig()
    min_valid: int = Field(default=2, ge=1)
    """Groups with fewer valid rollouts teach nothing and are offered again (D1)."""
    max_retries: int = Field(default=2, ge=0)
    """Times in a row that such a group is offered again at once; after that it waits for its next pass."""


class UniformScheduler:
    """Shuffled passes, difficulty columns and one snooze policy over N tasks."""

    def __init__(self, config: UniformConfig, tasks: Sequence[TaskInfo], seed: int) -> None:
        self.config = config
        self.tasks = tuple(tasks)
        pass_seed, snooze_seed = np.random.SeedSequence(seed).spawn(2)
        self._pass_rng, self._snooze_rng = (
            np.random.default_rng(pass_seed),
            np.random.default_rng(snooze_seed),
        )
        n = len(self.tasks)
        self.queue = PassQueue(n, self._pass_rng)
        self.snooze = Snooze(config.snooze, self.tasks, self._snooze_rng)
        self.difficulty = Difficulty(config.difficulty, self.tasks)
        self._busy_N = np.zeros(n, np.bool_)
        self._drawn_pass_N = np.zeros(n, np.int32)
        self._retries_N = np.zeros(n, np.uint8)
        self._drawn = self._observed = self._unjudged = 0

    # -- drawing ----------------------------------------------------------------------------------------

    def draw(self, n: int) -> Ints:
        """[≤n] idle tasks, now busy; fewer than n only when fewer are idle."""
        if n < 0:
            raise ValueError(f"draw(n) needs n >= 0, got {n}")
        task_B, pass_B = self.queue.take(n, busy_N=self._busy_N, door=self.snooze)
        self._drawn_pass_N[task_B] = pass_B
        if len(task_B) < n:
            sleeper_B = self._draw_sleepers(n - len(task_B))
            self._drawn_pass_N[sleeper_B] = self.queue.number
            task_B = np.concatenate([task_B, sleeper_B])
        self._drawn += len(task_B)
        return task_B

    def _draw_sleepers(self, n: int) -> Ints:
        woken_B = self.snooze.longest_asleep(n, pass_number=self.queue.number, busy_N=self._busy_N)
        self.snooze.wake(woken_B, pass_number=self.queue.number)
        self._busy_N[woken_B] = True
        return woken_B

    def wake(self, n: int) -> int:
        """Wake up to n tasks, the longest asleep first; they come up when their pass reaches them."""
        woken_B = self.snooze.longest_asleep(n, pass_number=self.queue.number, busy_N=self._busy_N)
        self.snooze.wake(woken_B, pass_number=self.queue.number)
        for task in woken_B[::-1]:
            self.queue.put_first(int(task))
        return len(woken_B)

    def release(self, index: int) -> None:
        """Free a drawn task whose group was lost; it is offered again first."""
        if self._busy_N[index]:
            self._busy_N[index] = False
            self.queue.put_first(index)

    # -- learning ---------------------------------------------------------------------------------------

    def observe(self, outcome: GroupOutcome) -> None:
        self.observe_many((outcome,))

    def observe_many(self, outcomes: Iterable[GroupOutcome]) -> None:
        """Learn from groups in the given order.

        Raises:
            OutcomeError: a reward is NaN, infinite or out of range; nothing of the call is learned.
        """
        batches = [tabulate(chunk, self.tasks) for chunk in _distinct_chunks(outcomes)]
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
        self.difficulty.observe(task_B, table.sum_B, table.valid_B.astype(np.float64))
        snooze = self.config.snooze
        enough = table.valid_B >= np.ceil(snooze.easy_share * table.size_B)
        self.snooze.observe(
            task_B,
            easy_B=enough & (table.min_B >= 1.0 - snooze.tolerance),
            hard_B=enough & (table.max_B <= snooze.tolerance),
            drawn_pass_B=self._drawn_pass_N[task_B].astype(np.int64),
        )

    def _retry(self, task_B: Ints) -> None:
        self._unjudged += len(task_B)
        again = self._retries_N[task_B] < self.config.max_retries
        self._retries_N[task_B] = np.where(again, self._retries_N[task_B] + 1, 0)
        for task in task_B[again]:
            self.queue.put_first(int(task))

    # -- reporting and state ----------------------------------------------------------------------------

    def metrics(self) -> dict[str, float]:
        n = max(len(self.tasks), 1)
        return {
            "passes": self.queue.position,
            "drawn_groups": float(self._drawn),
            "observed_groups": float(self._observed),
            "unjudged_groups": float(self._unjudged),
            "busy": float(self._busy_N.sum()),
            "asleep_share": float(self.snooze.asleep_N(self.queue.number).sum()) / n,
            "snoozed": float(self.snooze.snoozed),
            "woken": float(self.snooze.woken),
            "woken_early": float(self.snooze.woken_early),
            "forgotten": float(self.snooze.forgotten),
            "visited_share": float((self.difficulty.visits_N > 0).sum()) / n,
            "pass_rate_mean": float(self.difficulty.mean_N().mean()),
        }

    def snapshot(self) -> Snapshot:
        """The state as columns and a small JSON part; what the sidecar stores."""
        meta: dict[str, Any] = {
            "pass_number": self.queue.number,
            "cursor": self.queue.cursor,
            "owed": self.queue.owed.tolist(),
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
        return Snapshot(
            kind=self.config.kind, keys=[t.key for t in self.tasks], columns=self._columns(), meta=meta
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
        snapshot.require_kind(self.config.kind)
        moved_N, report = match_keys(snapshot.keys, [t.key for t in self.tasks], merge=merge)
        for name, column in self._columns().items():
            if name != "order":
                old = snapshot.column(name)
                column[moved_N >= 0] = old[moved_N[moved_N >= 0]]
        meta = snapshot.meta
        self._pass_rng.bit_generator.state = meta["pass_rng"]
        self._snooze_rng.bit_generator.state = meta["snooze_rng"]
        self._restore_queue(snapshot, moved_N)
        self.snooze.clock = int(meta["snooze_clock"])
        counts = meta["counts"]
        self._drawn, self._observed, self._unjudged = counts["drawn"], counts["observed"], counts["unjudged"]
        for name in _SNOOZE_COUNTS:
            setattr(self.snooze, name, int(counts[name]))
        self._busy_N[:] = False
        return report

    def _restore_queue(self, snapshot: Snapshot, moved_N: Ints) -> None:
        """Rebuild the walk in the new task order; tasks the snapshot does not know join the current pass at random."""
        to_new = np.full(len(snapshot.keys), -1, np.int64)
        kept = np.flatnonzero(moved_N >= 0)
        to_new[moved_N[kept]] = kept
        order, cursor = snapshot.column("order"), int(snapshot.meta["cursor"])
        done, ahead = to_new[order[:cursor]], to_new[order[cursor:]]
        done, ahead = done[done >= 0], ahead[ahead >= 0]
        fresh = np.flatnonzero(moved_N < 0)
        if len(fresh):
            ahead = self._pass_rng.permutation(np.concatenate([ahead, fresh]))
        owed = to_new[np.asarray(snapshot.meta["owed"], np.int64)]
        self.queue.order_N = np.concatenate([done, ahead]).astype(np.int32)
        self.queue.cursor = len(done)
        self.queue.number = int(snapshot.meta["pass_number"])
        self.queue.owed = owed[owed >= 0].astype(np.int32)

    def _columns(self) -> Columns:
        """Live arrays by column name; 38 bytes a task."""
        return {
            "order": self.queue.order_N,
            "drawn_pass": self._drawn_pass_N,
            "retries": self._retries_N,
            **self.snooze.columns(),
            **self.difficulty.columns(),
        }


_SNOOZE_COUNTS = ("snoozed", "woken", "forgotten", "woken_early")


def _distinct_chunks(outcomes: Iterable[GroupOutcome]) -> Iterator[list[GroupOutcome]]:
    """Split at a repeated task, so that each chunk can be learned as columns."""
    chunk: list[GroupOutcome] = []
    seen: set[int] = set()
    for outcome in outcomes:
        if outcome.task in seen:
            yield chunk
            chunk, seen = [], set()
        chunk.append(outcome)
        seen.add(outcome.task)
    if chunk:
        yield chunk
