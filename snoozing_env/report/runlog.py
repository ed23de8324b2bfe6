"""The run log: one JSON object per line, appended while a run lives, read by the report.

    run       once per start or resume   what is being trained, with which recipe and versions
    step      once per trainer step      what was generated, trained, snoozed, and what it cost
    eval      at a fixed interval        the held-out, unfiltered evaluation (F6)
    fallback  now and then             the evaluation sent the scheduler back to uniform, or let it return (S11)
    alarm     now and then               a signal of collapse is past its limit (A7)
    end       once                       why the run stopped

A process may be killed between any two bytes, so a torn *last* line is expected and dropped; a torn line in
the middle means the file was damaged by something else, and is an error that names the line.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import cast

from snoozing_env.errors import StateError
from snoozing_env.report.records import (
    AlarmRecord,
    EndRecord,
    EvalRecord,
    FallbackRecord,
    NoticeRecord,
    Record,
    RunRecord,
    Sample,
    StepRecord,
    parse,
    to_line,
)

__all__ = [
    "FILE_NAME",
    "AlarmRecord",
    "EndRecord",
    "EvalRecord",
    "FallbackRecord",
    "NoticeRecord",
    "Record",
    "RunLog",
    "RunRecord",
    "Sample",
    "StepRecord",
    "read",
]

FILE_NAME = "metrics.jsonl"


def _entries(path: Path) -> list[tuple[bytes, Record]]:
    """Every whole line with its record; a torn last line is left out."""
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise StateError(f"cannot read the run log {path}: {error.strerror}") from error
    numbered = [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    entries: list[tuple[bytes, Record]] = []
    for number, line in numbered:
        try:
            data = json.loads(line)
        except ValueError as error:
            if number == numbered[-1][0]:
                break
            raise StateError(
                f"{path} line {number} is not JSON ({error}); only the last line may be torn by a crash. "
                "Delete that line, or restore the file"
            ) from error
        if not isinstance(data, dict):
            raise StateError(
                f"{path} line {number} holds {type(data).__name__}; wanted one JSON object per line"
            )
        entries.append((line, parse(cast(dict[str, object], data), f"{path} line {number}")))
    return entries


def read(path: str | os.PathLike[str]) -> list[Record]:
    """Every record of a log, in order."""
    return [record for _, record in _entries(Path(path))]


class RunLog:
    """Appends records to a file; safe to reopen after a crash."""

    def __init__(self, path: str | os.PathLike[str], *, fsync: bool = False) -> None:
        self.path = Path(path)
        self._fsync = fsync
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self.path.is_file() and not self._ends_whole():
            self._rewrite([line for line, _ in _entries(self.path)])
        self._fd: int | None = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def append(self, record: Record) -> None:
        """Writes one line with one `write`, so that a reader never sees half of two lines."""
        if self._fd is None:
            raise StateError(f"the run log {self.path} is closed; open a new RunLog to go on")
        line = to_line(record).encode()
        try:
            written = os.write(self._fd, line)
            if self._fsync:
                os.fsync(self._fd)
        except OSError as error:
            raise StateError(
                f"cannot append to {self.path}: {error.strerror}; free some space and resume"
            ) from error
        if written < len(line):
            raise StateError(f"{self.path} took {written} of {len(line)} bytes; free some space and resume")

    def truncate_after(self, step: int) -> int:
        """Drops steps and evals beyond a checkpoint, and any end; returns how many records went.

        The resumed run writes those steps again, and exactly once each is what the report counts on.
        """
        entries = _entries(self.path)
        kept = [line for line, record in entries if _survives(record, step)]
        self.close()
        self._rewrite(kept)
        self._fd = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        return len(entries) - len(kept)

    def close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def __enter__(self) -> RunLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.close()

    def _ends_whole(self) -> bool:
        with self.path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - 1))
            return file.read(1) in (b"", b"\n")

    def _rewrite(self, lines: Sequence[bytes]) -> None:
        """Replaces the file whole: a crash leaves the old or the new one."""
        fresh = self.path.with_name(self.path.name + ".tmp")
        try:
            with fresh.open("wb") as file:
                file.write(b"".join(line + b"\n" for line in lines))
                file.flush()
                os.fsync(file.fileno())
            os.replace(fresh, self.path)
        except OSError as error:
            raise StateError(
                f"cannot rewrite {self.path}: {error.strerror}; free some space and resume"
            ) from error


def _survives(record: Record, step: int) -> bool:
    match record:
        case StepRecord() | EvalRecord() | AlarmRecord() | NoticeRecord():
            return record.step <= step
        case FallbackRecord():
            # Decided after the checkpoint of its step was written; the resumed run decides it again.
            return record.step < step
        case EndRecord():
            return False
        case RunRecord():
            return True
