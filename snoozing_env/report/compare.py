"""Runs side by side: what each paid, what it got, and the honest ratio between them.

The price of a run is the *groups it generated*: rollouts are where the time goes, and the groups a filter throws
away are paid for too. Two runs are therefore compared at the same number of trained groups.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from snoozing_env.errors import StateError
from snoozing_env.report.runlog import (
    FILE_NAME,
    AlarmRecord,
    EndRecord,
    EvalRecord,
    FallbackRecord,
    NoticeRecord,
    Record,
    RunRecord,
    StepRecord,
    read,
)
from snoozing_env.types import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run log, sorted by kind."""

    path: Path
    header: RunRecord
    steps: tuple[StepRecord, ...]
    evals: tuple[EvalRecord, ...]
    fallbacks: tuple[FallbackRecord, ...]
    alarms: tuple[AlarmRecord, ...]
    notices: tuple[NoticeRecord, ...]
    end: EndRecord | None
    label: str
    """Unique among the runs it was loaded with."""

    def total(self, name: str) -> int | None:
        """Sum of a per-step count; None when no step measured it."""
        counts = [value for step in self.steps if (value := getattr(step, name)) is not None]
        return sum(counts) if counts else None

    def cumulative(self, name: str) -> Floats:
        """[steps] running total of a per-step count, missing ones as 0."""
        return np.cumsum([float(getattr(step, name) or 0) for step in self.steps])

    def generated_by_step(self, step: int) -> int:
        """Groups generated up to and including a step."""
        return sum(record.generated_groups or 0 for record in self.steps if record.step <= step)

    def generated_at(self, trained: float) -> float:
        """Groups this run had generated when it had trained that many, between steps by straight line."""
        made = np.concatenate(([0.0], self.cumulative("generated_groups")))
        used = np.concatenate(([0.0], self.cumulative("trained_groups")))
        return float(np.interp(trained, used, made))

    @property
    def seconds(self) -> float | None:
        if self.end is not None and self.end.seconds is not None:
            return self.end.seconds
        return next((step.seconds for step in reversed(self.steps) if step.seconds is not None), None)

    @property
    def rungs(self) -> Counter[str]:
        """How often each rung of the saturation ladder was climbed."""
        return Counter(rung for step in self.steps for rung in step.rungs or ())


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """The row of one run in the headline table."""

    label: str
    trained_groups: int | None
    generated_groups: int | None
    per_trained: float | None
    """Generated groups per trained group; 1 = nothing was thrown away."""
    versus: float | None
    """Generated groups relative to the baseline's, both at the same trained groups; None for the baseline."""
    generated_tokens: int | None
    first: EvalRecord | None
    """Held-out evaluation before training, None when there was only one."""
    final: EvalRecord | None
    seconds: float | None
    ended: str
    """Reason, or "unfinished"."""


def load_runs(paths: Sequence[str | os.PathLike[str]]) -> list[Run]:
    """Reads run logs: files, run directories, or directories of run directories; the first is the baseline."""
    files = [file for path in paths for file in _files(Path(path))]
    if not files:
        raise StateError("no run log was given; name at least one metrics.jsonl or run directory")
    parts = [(file, read(file)) for file in dict.fromkeys(files)]
    headers: list[RunRecord] = []
    for file, records in parts:
        _check_order(file, records)
        header = next((r for r in reversed(records) if isinstance(r, RunRecord)), None)
        headers.append(header or RunRecord(name=file.parent.name or file.stem, arm="", seed=0))
    return [
        Run(
            path=file,
            header=header,
            steps=tuple(r for r in records if isinstance(r, StepRecord)),
            evals=tuple(r for r in records if isinstance(r, EvalRecord)),
            fallbacks=tuple(r for r in records if isinstance(r, FallbackRecord)),
            alarms=tuple(r for r in records if isinstance(r, AlarmRecord)),
            notices=tuple(r for r in records if isinstance(r, NoticeRecord)),
            end=next((r for r in reversed(records) if isinstance(r, EndRecord)), None),
            label=label,
        )
        for (file, records), header, label in zip(parts, headers, _labels(headers), strict=True)
    ]


def _check_order(file: Path, records: Sequence[Record]) -> None:
    """Refuses a log in which steps repeat: every total of the report would count them twice."""
    steps = [r.step for r in records if isinstance(r, StepRecord)]
    for before, step in pairwise(steps):
        if step <= before:
            raise StateError(
                f"{file} has step {step} after step {before}; wanted each step once. Two runs wrote to one log, or one "
                "was resumed without truncate_after: give each run its own directory"
            )


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    if (path / FILE_NAME).is_file():
        return [path / FILE_NAME]
    below = sorted(path.glob(f"*/{FILE_NAME}"))
    if not below:
        raise StateError(
            f"no run log at {path}; wanted a {FILE_NAME}, a directory with one, or a directory of such directories"
        )
    return below


def _labels(headers: Sequence[RunRecord]) -> list[str]:
    """The shortest names that tell the runs apart: arm, then arm and seed, then with the run's name or place."""
    tiers = [
        [h.arm or h.name for h in headers],
        [f"{h.arm or h.name} · seed {h.seed}" for h in headers],
        [f"{h.name} · {h.arm} · seed {h.seed}" for h in headers],
    ]
    last = [f"{label} (#{place})" for place, label in enumerate(tiers[-1], 1)]
    return next((labels for labels in tiers if len(set(labels)) == len(labels)), last)


def baseline_of(run: Run, runs: Sequence[Run]) -> Run:
    """The run to compare with: the first arm's run of the same seed, else the first run."""
    first = runs[0]
    same_seed = (r for r in runs if r.header.arm == first.header.arm and r.header.seed == run.header.seed)
    return next(same_seed, first)


def versus(run: Run, baseline: Run) -> float | None:
    """Generated groups of `run` relative to `baseline` when both had trained the same number; None = unknown."""
    trained = min(run.total("trained_groups") or 0, baseline.total("trained_groups") or 0)
    if not trained or run.total("generated_groups") is None or not baseline.generated_at(trained):
        return None
    return run.generated_at(trained) / baseline.generated_at(trained)


def headline(run: Run, runs: Sequence[Run]) -> Headline:
    """One row; `runs` holds the baseline."""
    trained, generated = run.total("trained_groups"), run.total("generated_groups")
    baseline = baseline_of(run, runs)
    return Headline(
        label=run.label,
        trained_groups=trained,
        generated_groups=generated,
        per_trained=generated / trained if generated is not None and trained else None,
        versus=None if run is baseline else versus(run, baseline),
        generated_tokens=run.total("generated_tokens"),
        first=run.evals[0] if len(run.evals) > 1 else None,
        final=run.evals[-1] if run.evals else None,
        seconds=run.seconds,
        ended=run.end.reason if run.end else "unfinished",
    )


HEADERS = ("arm", "trained groups", "generated groups", "generated / trained", "vs baseline", "generated tokens",
           "held-out before", "held-out after (95\u00a0%)", "wall time", "ended")  # fmt: skip


def cells(row: Headline) -> tuple[str, ...]:
    """The row as text, one cell per HEADERS; "–" where nothing was measured."""
    return (
        row.label,
        count(row.trained_groups),
        count(row.generated_groups),
        "–" if row.per_trained is None else f"{row.per_trained:.2f}",
        "–" if row.versus is None else f"{row.versus:.2f} ×",
        count(row.generated_tokens),
        "–" if row.first is None else percent(row.first.accuracy),
        "–" if row.final is None else accuracy(row.final),
        duration(row.seconds),
        row.ended,
    )


def accuracy(record: EvalRecord) -> str:
    """`62.5 % [58.1, 66.7]`."""
    interval = (
        ""
        if record.low is None or record.high is None
        else f" [{100 * record.low:.1f}, {100 * record.high:.1f}]"
    )
    return percent(record.accuracy) + interval


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def count(value: int | None) -> str:
    """`12 480`, with narrow no-break spaces."""
    return "–" if value is None else f"{value:,}".replace(",", "\u202f")


def duration(seconds: float | None) -> str:
    """`42 s`, `3 min 05 s` or `2 h 07 min`."""
    if seconds is None:
        return "–"
    whole = round(seconds)
    if whole < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
