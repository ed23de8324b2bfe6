"""What became of every group, as lines that can be checked afterwards (A8, B4).

    {"event": "finish", "id": 7, "fate": "accepted", "version": 3}     a group with its verdicts
    {"event": "lose", "id": 8}                                         one that ended without
    {"event": "take", "step": 4, "ids": [5, 7]}                        trained at that step
    {"event": "expire", "ids": [2]}                                    accepted, then too old
    {"event": "resume", "step": 4, "ids": [7, 9], "versions": [3, 4],  a new process, the groups it goes on with
     "next_id": 40, "again": 6}                                        and how many in flight it starts again

A resume undoes the steps from `step` on: the weights they made are gone with the process that died.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import Any

from snoozing_env.errors import StateError

FILE_NAME = "ledger.jsonl"


class Ledger:
    """Appends events, a line each; the file is made on the first."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: TextIOWrapper | None = None

    def finish(self, id: int, fate: str, version: int) -> None:
        self._write({"event": "finish", "id": id, "fate": fate, "version": version})

    def lose(self, id: int) -> None:
        self._write({"event": "lose", "id": id})

    def take(self, step: int, ids: Sequence[int]) -> None:
        self._write({"event": "take", "step": step, "ids": list(ids)})

    def expire(self, ids: Sequence[int]) -> None:
        self._write({"event": "expire", "ids": list(ids)})

    def resume(self, step: int, version_of: Mapping[int, int], *, next_id: int, again: int) -> None:
        """`version_of` the groups that wait, by id; `again`: tasks in flight at the checkpoint that start again."""
        ids, versions = list(version_of), list(version_of.values())
        self._write(
            {
                "event": "resume",
                "step": step,
                "ids": ids,
                "versions": versions,
                "next_id": next_id,
                "again": again,
            }
        )

    def _write(self, event: Mapping[str, Any]) -> None:
        try:
            if self._file is None:
                self._file = self._open()
            self._file.write(json.dumps(event) + "\n")
            self._file.flush()
        except OSError as error:
            raise StateError(
                f"cannot write the ledger {self.path}: {error.strerror}; free some space and resume"
            ) from error

    def _open(self) -> TextIOWrapper:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        file = self.path.open("a", encoding="utf-8")
        if _is_torn(self.path):  # a kill cut the last line off; it must not swallow the next
            file.write("\n")
        return file

    def close(self) -> None:
        if self._file is not None:
            with contextlib.suppress(OSError):  # a full disk has been named already, by the write that met it
                self._file.close()


def _is_torn(path: Path) -> bool:
    """Whether the last line has no end."""
    with path.open("rb") as file:
        if not file.seek(0, os.SEEK_END):
            return False
        file.seek(-1, os.SEEK_END)
        return file.read(1) != b"\n"


def read_ledger(path: Path) -> list[dict[str, Any]]:
    """Events in order; lines that a kill cut off are left out."""
    events: list[dict[str, Any]] = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        try:
            events.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return events


def audit(events: Iterable[Mapping[str, Any]], *, bound: int) -> list[str]:
    """What is wrong with a run's history; empty = nothing.

    Checks that no group is trained twice or past the bound, that none is trained without a verdict, and that every
    accepted group was trained, expired, or is still waiting after each resume.
    """
    problems: list[str] = []
    version_of: dict[int, int] = {}
    waiting: set[int] = set()
    trained_at: dict[int, int] = {}
    for event in events:
        match event["event"]:
            case "finish":
                id = int(event["id"])
                if id in version_of:
                    problems.append(f"group {id} finished twice")
                version_of[id] = int(event["version"])
                if event["fate"] == "accepted":
                    waiting.add(id)
            case "take":
                problems += _take(event, version_of, waiting, trained_at, bound)
            case "expire":
                waiting -= {int(id) for id in event["ids"]}
            case "resume":
                problems += _resume(event, waiting, trained_at)
                # A kill between journal and ledger leaves a group that only the resume knows of.
                version_of |= dict(zip(event["ids"], event.get("versions", ()), strict=False))
            case _:
                pass
    return problems


def _take(
    event: Mapping[str, Any],
    version_of: Mapping[int, int],
    waiting: set[int],
    trained_at: dict[int, int],
    bound: int,
) -> list[str]:
    problems: list[str] = []
    step = int(event["step"])
    for id in map(int, event["ids"]):
        if id in trained_at:
            problems.append(f"group {id} trained at step {trained_at[id]} and at step {step}")
        elif id not in waiting:
            problems.append(f"group {id} trained at step {step}, but it was not waiting")
        if step - version_of.get(id, step) > bound:
            problems.append(f"group {id} of version {version_of[id]} trained at step {step}, bound {bound}")
        trained_at[id] = step
        waiting.discard(id)
    return problems


def _resume(event: Mapping[str, Any], waiting: set[int], trained_at: dict[int, int]) -> list[str]:
    """Undo the steps that are gone; what they trained must wait again."""
    step, restored = int(event["step"]), {int(id) for id in event["ids"]}
    undone = {id for id, at in trained_at.items() if at >= step}
    for id in undone:
        del trained_at[id]
    problems = [
        f"group {id} was lost at the resume at step {step}" for id in sorted((waiting | undone) - restored)
    ]
    problems += [
        f"group {id} was trained at step {trained_at[id]} and waits again after the resume at step {step}"
        for id in sorted(restored & set(trained_at))
    ]
    waiting.clear()
    waiting |= restored
    return problems
