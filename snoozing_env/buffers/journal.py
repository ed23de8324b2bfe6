"""Every finished group, on disk before anything else happens to it: a kill loses none (B4).

A journal is a file of frames, appended to and flushed to the disk one by one:

    "SNZ1"   u32 length of the header · header as JSON · u32 length of the body · body · u32 crc of header and body

The header says what the scheduler must learn from the group and what became of it; the body is the group itself as
parquet, present only where it can still be trained. A frame cut off by a kill is ignored, with everything after it.
A new journal starts with every checkpoint, so what a resumed run reads is what finished since. It reads the journals
of undone steps too and merges them into the one of its checkpoint: appended to behind a cut-off frame, or read again
after the next checkpoint, they would lose groups or train them twice.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any

import numpy as np

from snoozing_env.buffers.store import dump_groups, parse_groups
from snoozing_env.errors import StateError
from snoozing_env.files import write_atomically
from snoozing_env.types import Group, GroupOutcome

MAGIC = b"SNZ1"
_U32 = struct.Struct("<I")
_LIMIT = 2**30


@dataclass(frozen=True, slots=True)
class Entry:
    """One finished group, read back."""

    id: int
    fate: str
    """What became of it when it finished, e.g. "accepted" or "filtered"."""
    outcome: GroupOutcome
    """What the scheduler is told; its task index is of the present task set."""
    group: Group | None
    """Whole, where it was accepted."""


class Journal:
    """Append-only record of finished groups between two checkpoints."""

    def __init__(self, path: Path) -> None:
        """Open for appending; the file is created.

        Raises:
            StateError: the directory cannot be written.
        """
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file: FileIO = path.open("ab", buffering=0)
        except OSError as error:
            raise StateError(f"cannot open the journal {path}: {error.strerror}") from error

    def append(self, group: Group, fate: str) -> None:
        """Write a group through to the disk.

        Raises:
            StateError: the disk is full; the run cannot promise to lose nothing and must stop.
        """
        body = dump_groups([group]) if fate == "accepted" else b""
        header = json.dumps(
            {"id": group.id, "key": group.key, "fate": fate, **_told(group.own_outcome)}
        ).encode()
        frame = MAGIC + _U32.pack(len(header)) + header + _U32.pack(len(body)) + body
        frame += _U32.pack(zlib.crc32(header + body))
        try:
            left = memoryview(frame)
            while left:
                left = left[self._file.write(left) :]
            os.fsync(self._file.fileno())
        except OSError as error:
            raise StateError(
                f"cannot write the journal {self.path}: {error.strerror}; free some space and resume from the last checkpoint"
            ) from error

    def close(self) -> None:
        self._file.close()


def merge_journals(paths: Sequence[Path], into: Path) -> None:
    """One journal of the whole frames of several, each group once, in their order; the others are removed.

    A kill on the way leaves frames in two files, and the next merge drops the second ones.

    Raises:
        StateError: the disk is full; every journal is as it was.
    """
    frames: dict[int, bytes] = {}
    for path in paths:
        payload, at = path.read_bytes(), 0
        while (frame := _frame(payload, at)) is not None:
            frames.setdefault(frame[0]["id"], payload[at : frame[2]])
            at = frame[2]
    try:
        into.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(into, b"".join(frames.values()))
    except OSError as error:
        raise StateError(
            f"cannot write the journal {into}: {error.strerror}; free some space and resume"
        ) from error
    for path in paths:
        if path != into:
            path.unlink()


def read_journal(path: Path, index_of: Mapping[str, int]) -> Iterator[Entry]:
    """Whole frames, in the order in which the groups finished; tasks that are gone are left out."""
    payload = path.read_bytes() if path.exists() else b""
    at = 0
    while (frame := _frame(payload, at)) is not None:
        header, body, at = frame
        if header["key"] not in index_of:
            continue
        groups = parse_groups(body, index_of) if body else []
        yield Entry(
            id=header["id"],
            fate=header["fate"],
            outcome=_outcome(header, index_of[header["key"]]),
            group=groups[0] if groups else None,
        )


def _frame(payload: bytes, at: int) -> tuple[dict[str, Any], bytes, int] | None:
    """The frame at an offset and the offset after it; None where it is cut off, damaged or not there."""
    if payload[at : at + 4] != MAGIC:
        return None
    parts: list[bytes] = []
    at += 4
    for _ in range(2):
        if at + 4 > len(payload):
            return None
        (length,) = _U32.unpack_from(payload, at)
        if length > _LIMIT or at + 4 + length > len(payload):
            return None
        parts.append(payload[at + 4 : at + 4 + length])
        at += 4 + length
    if at + 4 > len(payload) or _U32.unpack_from(payload, at)[0] != zlib.crc32(parts[0] + parts[1]):
        return None
    return json.loads(parts[0]), parts[1], at + 4


def _told(outcome: GroupOutcome) -> dict[str, Any]:
    assert outcome.valid_G is not None  # filled in when it was made
    return {
        "rewards": outcome.rewards_G.tolist(),
        "valid": outcome.valid_G.tolist(),
        "version": outcome.version,
        "last_version": outcome.last_version,
        "duration_s": outcome.duration_s,
        "tokens": outcome.tokens,
    }


def _outcome(header: Mapping[str, Any], task: int) -> GroupOutcome:
    return GroupOutcome(
        task=task,
        rewards_G=np.array(header["rewards"], np.float64),
        valid_G=np.array(header["valid"], np.bool_),
        version=header["version"],
        last_version=header["last_version"],
        duration_s=header["duration_s"],
        tokens=header["tokens"],
    )
