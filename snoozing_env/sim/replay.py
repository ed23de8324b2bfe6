"""Logged outcomes as the source of rewards: what would another scheduler have drawn, and what would it have cost?

A log has one JSON object per line, one per group or per task and version:

    {"task": "gsm8k/17", "version": 40, "rewards": [1, 0, 1, 1]}        a finished group
    {"task": "gsm8k/17", "version": 80, "pass_rate": 0.9}               a measured or estimated rate
    optional: "dataset", "cluster", "side" (+1, -1), each taken from the task's first line

Between two versions of a task the later one has not happened yet: the latest line at or before the current version
counts, the first one before that. Rollouts are drawn with replacement from a group's own rewards, or as verdicts at
the pass rate. The policy's path is the recorded one whatever is trained here: replay compares what schedulers *cost*
(survival, asleep share, regret) on real difficulties, not what they would have taught.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from snoozing_env.errors import CatalogueError, did_you_mean
from snoozing_env.types import Floats, Ints, TaskInfo

FIELDS = ("task", "version", "rewards", "pass_rate", "dataset", "cluster", "side")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedOutcome:
    """One line of the log."""

    task: str
    version: int
    rewards: tuple[float, ...] = ()
    """Of one group, in [0, 1]; empty where only the rate is known."""
    pass_rate: float
    """Mean of the rewards where there are some."""
    dataset: str = ""
    cluster: str | None = None
    side: float = 0.0


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


def read_outcomes(path: Path) -> list[LoggedOutcome]:
    """Every line of a log.

    Raises:
        CatalogueError: the file is missing or empty, or a line is no outcome; names the line and what was wanted.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise CatalogueError(f"cannot read the outcome log {path}: {error.strerror}") from error
    outcomes = [_parse(line, f"{path} line {n}") for n, line in enumerate(lines, 1) if line.strip()]
    if not outcomes:
        raise CatalogueError(f"the outcome log {path} has no line; log at least one group for each task")
    return outcomes


def _parse(line: str, where: str) -> LoggedOutcome:
    try:
        data: object = json.loads(line)
    except json.JSONDecodeError as error:
        raise CatalogueError(
            f"{where} is not JSON ({error}); wanted one object per line with task and version"
        ) from error
    if not isinstance(data, dict):
        raise CatalogueError(f"{where} holds {type(data).__name__}; wanted one JSON object per line")
    fields = cast("Mapping[str, Any]", data)
    unknown = [name for name in fields if name not in FIELDS]
    if unknown:
        raise CatalogueError(
            f"{where}: unknown key {unknown[0]!r}.{did_you_mean(unknown[0], FIELDS)} Known: {', '.join(FIELDS)}."
        )
    key, version = fields.get("task"), fields.get("version", 0)
    if not isinstance(key, str) or not isinstance(version, int) or isinstance(version, bool):
        raise CatalogueError(
            f"{where} has task {key!r} and version {version!r}; wanted a text key and a whole number"
        )
    rewards = _numbers(fields.get("rewards", []), f"{where}: rewards")
    rate = _numbers([fields["pass_rate"]], f"{where}: pass_rate") if "pass_rate" in fields else ()
    if bool(rewards) == bool(rate):
        raise CatalogueError(f"{where} needs either the rewards of a group or its pass_rate")
    side = fields.get("side", 0)
    if side not in (-1, 0, 1):
        raise CatalogueError(f"{where} has side {side!r}; wanted 1, -1 or 0")
    cluster = fields.get("cluster")
    return LoggedOutcome(
        task=key,
        version=version,
        rewards=rewards,
        pass_rate=rate[0] if rate else sum(rewards) / len(rewards),
        dataset=str(fields.get("dataset", "")),
        cluster=None if cluster is None else str(cluster),
        side=float(side),
    )


def _numbers(values: object, where: str) -> tuple[float, ...]:
    """Values in [0, 1]; a NaN is none of them (D2)."""
    items = cast("list[object]", values) if isinstance(values, list) else [values]
    numbers: list[float] = []
    for value in items:
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not math.isfinite(value)
            or not 0 <= value <= 1
        ):
            raise CatalogueError(f"{where} holds {value!r}; wanted numbers in [0, 1]")
        numbers.append(float(value))
    return tuple(numbers)
