"""The outcome log: what became of every finished group, one JSON object per line; a run writes it, replay reads it.

    {"step": 3, "task": "gsm8k/17", "version": 2, "rewards": [1, 0, 1, 1], "tokens": 512, "duration_s": 1.4}
    {"task": "gsm8k/17", "version": 80, "pass_rate": 0.9}             a measured or estimated rate, from anywhere
    optional: "dataset", "cluster", "side" (+1, -1), each taken from the task's first line;
              "valid" [G] where not every rollout got a verdict, whose rewards then stand for nothing

A run appends to `outcomes.jsonl` in its directory with one write per round of groups, so a kill leaves at most one torn
line, the last. A checkpoint knows how long the log was; a resumed run cuts it back to there and writes the rest again,
so that no group is missing or doubled.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from snoozing_env.errors import CatalogueError, StateError, did_you_mean
from snoozing_env.types import Group, TaskInfo

FILE_NAME = "outcomes.jsonl"
FIELDS = (
    "task", "version", "rewards", "pass_rate", "dataset", "cluster", "side", "valid", "step", "tokens", "duration_s",
)  # fmt: skip


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
    step: int | None = None
    """Step that the group was generated for, in the log of a run."""


class OutcomeLog:
    """Appends finished groups to a file; safe to reopen after a crash."""

    def __init__(self, path: Path, infos: Sequence[TaskInfo]) -> None:
        self.path, self._infos = path, infos
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        except OSError as error:
            raise StateError(f"cannot open the outcome log {path}: {error.strerror}") from error

    def append(self, groups: Iterable[Group], *, step: int) -> None:
        """Every group of a round, informative or not; `step` is the step they were generated for.

        Raises:
            StateError: the disk is full.
        """
        payload = "".join(to_line(group, self._infos[group.outcome.task], step) for group in groups).encode()
        try:
            written = os.write(self._fd, payload)
        except OSError as error:
            raise StateError(
                f"cannot append to {self.path}: {error.strerror}; free some space and resume"
            ) from error
        if written < len(payload):
            raise StateError(
                f"{self.path} took {written} of {len(payload)} bytes; free some space and resume"
            )

    def mark(self) -> int:
        """Bytes written so far, now safe on disk; what a checkpoint stores."""
        os.fsync(self._fd)
        return os.fstat(self._fd).st_size

    def cut(self, mark: int) -> int:
        """Drop what was written after a mark; returns how many bytes went, below zero where some are missing."""
        extra = os.fstat(self._fd).st_size - mark
        if extra > 0:
            os.ftruncate(self._fd, mark)
        return extra

    def close(self) -> None:
        os.close(self._fd)


def to_line(group: Group, info: TaskInfo, step: int) -> str:
    """One group as a line, newline included."""
    outcome = group.outcome
    rewards = [int(r) if r == int(r) else r for r in outcome.rewards_G.tolist()]
    fields: dict[str, Any] = {"step": step, "task": group.key, "version": outcome.version, "rewards": rewards}
    if outcome.valid_G is not None and not outcome.valid_G.all():
        fields["valid"] = [int(v) for v in outcome.valid_G]
    if info.dataset:
        fields["dataset"] = info.dataset
    if info.cluster is not None:
        fields["cluster"] = info.cluster
    fields |= {"tokens": outcome.tokens, "duration_s": round(outcome.duration_s, 3)}
    return json.dumps(fields, ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n"


def read_outcomes(path: Path) -> list[LoggedOutcome]:
    """Every line of a log, or of the log of a run directory, that has a verdict; a torn last line is left out.

    Raises:
        CatalogueError: the file is missing or empty, or a line is no outcome; names the line and what was wanted.
    """
    path = path / FILE_NAME if path.is_dir() else path
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise CatalogueError(f"cannot read the outcome log {path}: {error.strerror}") from error
    numbered = [(n, line) for n, line in enumerate(text.split("\n"), 1) if line.strip()]
    if numbered and not text.endswith("\n") and _is_torn(numbered[-1][1]):
        numbered.pop()
    parsed = [_parse(line, f"{path} line {n}") for n, line in numbered]
    outcomes = [outcome for outcome in parsed if outcome is not None]
    if not outcomes:
        raise CatalogueError(
            f"the outcome log {path} has no line with a verdict; log at least one group for each task"
        )
    return outcomes


def _is_torn(line: str) -> bool:
    """Whether a crash may have cut a last line short: it begins as an object and does not end as one."""
    return line.startswith("{") and len(line) > 1 and not line.rstrip().endswith("}")


def _parse(line: str, where: str) -> LoggedOutcome | None:
    """None = a group of which no rollout got a verdict."""
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
    if "valid" in fields:
        rewards = _valid(rewards, fields["valid"], where)
        if not rewards:
            return None
    rate = _numbers([fields["pass_rate"]], f"{where}: pass_rate") if "pass_rate" in fields else ()
    if bool(rewards) == bool(rate):
        raise CatalogueError(f"{where} needs either the rewards of a group or its pass_rate")
    step = fields.get("step")
    if step is not None and (not isinstance(step, int) or isinstance(step, bool)):
        raise CatalogueError(f"{where} has step {step!r}; wanted a whole number")
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
        step=step,
    )


def _valid(rewards: tuple[float, ...], mask: object, where: str) -> tuple[float, ...]:
    """The rewards of the rollouts that got a verdict."""
    kept = _numbers(mask, f"{where}: valid")
    if len(kept) != len(rewards):
        raise CatalogueError(
            f"{where} has {len(rewards)} rewards and {len(kept)} marks in valid; wanted one each"
        )
    return tuple(reward for reward, mark in zip(rewards, kept, strict=True) if mark)


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
