"""Random histories of one scheduler as a hypothesis state machine."""
# pyright: basic
# hypothesis' decorators are untyped where rules return nothing.

from __future__ import annotations

import json
from typing import Any, ClassVar

import numpy as np
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from snoozing_env.schedulers.base import Scheduler
from snoozing_env.testing.histories import run_histories
from snoozing_env.testing.laws import MODES, Subject, outcome
from snoozing_env.types import TaskInfo


def run_machine(subject: Subject) -> None:
    """Try `subject.examples` random histories; raises what the smallest failing one raised."""
    run_histories(History, subject)


class History(RuleBasedStateMachine):
    """Random draws, outcomes, losses and restarts; a twin restored from saved state must draw the same."""

    subject: ClassVar[Subject]
    scheduler: Scheduler | None = None

    @initialize(
        mode=st.sampled_from(MODES),
        n=st.integers(1, 40),
        too_hard=st.booleans(),
        seed=st.integers(0, 5),
    )
    def build(self, mode: str, n: int, too_hard: bool, seed: int) -> None:
        self.snooze: dict[str, Any] = {"mode": mode, "skip_passes": 3, "too_hard": too_hard}
        self.tasks = [
            TaskInfo(key=f"task-{i}", dataset="ab"[i % 2], difficulty_prior=(None, 0.2, 0.9)[i % 3])
            for i in range(n)
        ]
        self.seed = seed
        self.scheduler = self.subject.build(self.tasks, seed, self.snooze)
        self.busy: set[int] = set()
        self.version = 0

    @rule(n=st.integers(0, 50))
    def draw(self, n: int) -> None:
        drawn = self._scheduler.draw(n).tolist()
        idle = len(self.tasks) - len(self.busy)
        assert len(drawn) <= min(n, idle)
        assert drawn or not min(n, idle), "a draw is empty only when no task is idle"
        assert len(drawn) == min(n, idle) or self.snooze["mode"] != "off" or self.snooze["too_hard"], (
            "a draw is full whenever enough tasks are awake and idle"
        )
        assert len(set(drawn)) == len(drawn), "no task twice in a draw"
        assert not self.busy & set(drawn), "no busy task is drawn"
        assert all(0 <= t < len(self.tasks) for t in drawn)
        self.busy |= set(drawn)

    @precondition(lambda self: self.busy)
    @rule(data=st.data(), solved=st.integers(0, 4), valid=st.integers(0, 4), later=st.integers(0, 300))
    def observe(self, data: st.DataObject, solved: int, valid: int, later: int) -> None:
        task = data.draw(st.sampled_from(sorted(self.busy)))
        self.version += later
        self._scheduler.observe(outcome(task, solved, valid=valid, version=self.version))
        self.busy.discard(task)

    @rule(solved=st.integers(0, 4))
    def observe_all(self, solved: int) -> None:
        self._scheduler.observe_many([outcome(t, solved, version=self.version) for t in sorted(self.busy)])
        self.busy.clear()

    @precondition(lambda self: self.busy)
    @rule(data=st.data())
    def lose(self, data: st.DataObject) -> None:
        task = data.draw(st.sampled_from(sorted(self.busy)))
        self._scheduler.release(task)
        self.busy.discard(task)

    @rule(n=st.integers(0, 10))
    def wake(self, n: int) -> None:
        assert 0 <= self._scheduler.wake(n) <= n

    @rule(n=st.integers(1, 20))
    def restart(self, n: int) -> None:
        """In-flight groups of a killed run are lost; everything else goes on bit for bit."""
        for task in sorted(self.busy):
            self._scheduler.release(task)
        self.busy.clear()
        twin = self.subject.build(self.tasks, self.seed + 1, self.snooze)
        report = twin.load_state_dict(json.loads(json.dumps(self._scheduler.state_dict(), allow_nan=False)))
        assert (report.kept, report.fresh, report.dropped) == (len(self.tasks), 0, 0)
        mine, theirs = self._scheduler.draw(n).tolist(), twin.draw(n).tolist()
        assert mine == theirs, "a restarted scheduler draws something else"
        self.scheduler = twin
        self.busy = set(theirs)

    @invariant()
    def metrics_are_finite(self) -> None:
        if self.scheduler is not None:
            metrics = self.scheduler.metrics()
            assert all(np.isfinite(v) for v in metrics.values())
            assert metrics["busy"] == len(self.busy)
            assert 0 <= metrics["asleep_share"] <= 1

    @property
    def _scheduler(self) -> Scheduler:
        assert self.scheduler is not None, "hypothesis runs initialize rules first"
        return self.scheduler
