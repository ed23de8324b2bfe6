"""Logged outcomes as the source of rewards: what would another scheduler have drawn, and what would it have cost?

Between two versions of a task the later one has not happened yet: the latest line at or before the current version
counts, the first one before that. Rollouts are drawn with replacement from a group's own rewards, or as verdicts at
the pass rate. The policy's path is the recorded one whatever is trained here: replay compares what schedulers *cost*
(survival, asleep share, regret) on real difficulties, not what they would have taught. A run writes such a log by
itself (`snoozing_env.outcome_log`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from snoozing_env.errors import CatalogueError
from snoozing_env.outcome_log import LoggedOutcome
from snoozing_env.types import Floats, Ints, TaskInfo


class Replay:
    """A world that repeats a log, whatever it is trained on."""

    def __init__(self, outcomes: Sequence[LoggedOutcome], seed: int) -> None:
        if not outcomes:
            raise CatalogueError(
                "the outcome log has no line; log at least one group or pass rate for each task"
            )
        self._rng = np.random.default_rng(np.random.SeedSequence([seed, 1]))
        first: dict[str, LoggedOutcome] = {}
        for outcome in outcomes:
            first.setdefault(outcome.task, outcome)
        index = {key: i for i, key in enumerate(first)}
        self._tasks = tuple(
            TaskInfo(key=key, dataset=outcome.dataset, cluster=outcome.cluster)
            for key, outcome in first.items()
        )
        self._side_N = np.array([outcome.side for outcome in first.values()])
        # By task, then version: a task's lines lie side by side and its current one only ever moves right.
        self._lines = sorted(outcomes, key=lambda o: (index[o.task], o.version))
        task_R = np.array([index[o.task] for o in self._lines], np.int64)
        self._rate_R = np.array([o.pass_rate for o in self._lines])
        self._version_R = np.array([o.version for o in self._lines], np.int64)
        self._current_N: Ints = np.searchsorted(task_R, np.arange(len(first)))
        self._end_N: Ints = np.append(self._current_N[1:], len(self._lines))
        self.version = 0
        self._advance()

    @property
    def tasks(self) -> Sequence[TaskInfo]:
        return self._tasks

    @property
    def side_N(self) -> Floats:
        return self._side_N

    def rates_N(self) -> Floats:
        return self._rate_R[self._current_N]

    def verdicts_N(self) -> Floats:
        return self.rates_N()

    def sample(self, task_B: Ints, rollouts: int) -> Floats:
        rewards_B_G = np.empty((len(task_B), rollouts))
        for b, line in enumerate(self._lines[int(r)] for r in self._current_N[task_B]):
            if line.rewards:
                rewards_B_G[b] = self._rng.choice(line.rewards, rollouts)
            else:
                rewards_B_G[b] = self._rng.random(rollouts) < line.pass_rate
        return rewards_B_G

    def train(self, task_B: Ints, rewards_B: Sequence[Floats]) -> None:
        """The recorded policy moves on by one version."""
        self.version += 1
        self._advance()

    def _advance(self) -> None:
        while True:
            ahead_N = np.minimum(self._current_N + 1, self._end_N - 1)
            due = (ahead_N > self._current_N) & (self._version_R[ahead_N] <= self.version)
            if not due.any():
                return
            self._current_N = np.where(due, ahead_N, self._current_N)
