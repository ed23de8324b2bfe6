"""Scheduler state on disk: one parquet table keyed by task, one JSON file that commits it.

    state-<digest>.parquet   written first, under the digest of its content
    scheduler.json           replaced atomically, last: it names the table it belongs to

A kill at any point leaves the old pair or the new pair, never a mixture.
"""

from __future__ import annotations

import errno
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from snoozing_env.errors import StateError
from snoozing_env.files import write_atomically
from snoozing_env.schedulers import parquet
from snoozing_env.schedulers.base import LoadReport
from snoozing_env.schedulers.difficulty import Columns
from snoozing_env.types import Ints

SCHEMA_VERSION = 1
HEAD = "scheduler.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Everything a scheduler needs to go on as if never stopped."""

    kind: str
    keys: Sequence[str]
    columns: Columns
    """[N] arrays by name; `order` is a permutation of [0, N)."""
    meta: Mapping[str, Any]
    """JSON-able rest: cursors, generator states, counts."""
    schema: int = SCHEMA_VERSION

    def column(self, name: str) -> np.ndarray[Any, Any]:
        if name not in self.columns:
            raise StateError(
                f"the state has no column {name!r}; it was written by another version of this scheduler"
            )
        return self.columns[name]

    def require_kind(self, kind: str) -> None:
        if self.schema != SCHEMA_VERSION:
            raise StateError(
                f"state schema {self.schema}, this version reads {SCHEMA_VERSION}; resume with the version that wrote it"
            )
        if self.kind != kind:
            raise StateError(
                f"the state is of a {self.kind!r} scheduler, this run configures {kind!r}; set scheduler.kind = {self.kind!r} to resume it"
            )

    def to_json(self) -> dict[str, Any]:
        return {
            "schema": self.schema,
            "kind": self.kind,
            "keys": list(self.keys),
            "columns": {name: column.tolist() for name, column in self.columns.items()},
            "dtypes": {name: str(column.dtype) for name, column in self.columns.items()},
            "meta": dict(self.meta),
        }

    @classmethod
    def from_json(cls, state: Mapping[str, Any]) -> Snapshot:
        missing = {"schema", "kind", "keys", "columns", "dtypes", "meta"} - state.keys()
        if missing:
            raise StateError(
                f"not a scheduler state: {sorted(missing)} missing; pass what state_dict() returned"
            )
        columns = {
            name: np.asarray(values, state["dtypes"][name]) for name, values in state["columns"].items()
        }
        return cls(
            schema=state["schema"],
            kind=state["kind"],
            keys=state["keys"],
            columns=columns,
            meta=state["meta"],
        )


def save_snapshot(snapshot: Snapshot, directory: Path) -> None:
    """Write a snapshot so that a kill leaves the old or the new one whole.

    Raises:
        StateError: the directory cannot be written; a full disk is named as such and the old state still stands.
    """
    payload = parquet.dump(snapshot.keys, snapshot.columns)
    table = f"state-{_digest(payload)}.parquet"
    head = {"schema": snapshot.schema, "kind": snapshot.kind, "table": table, "meta": dict(snapshot.meta)}
    try:
        directory.mkdir(parents=True, exist_ok=True)
        write_atomically(directory / table, payload)
        write_atomically(directory / HEAD, json.dumps(head).encode())
    except OSError as error:
        raise StateError(
            f"cannot save the scheduler state to {directory}: {_reason(error)}; the previous state there is intact"
        ) from error
    for stale in directory.glob("state-*.parquet"):
        if stale.name != table:
            stale.unlink(missing_ok=True)


def load_snapshot(directory: Path) -> Snapshot:
    """Read what `save_snapshot` wrote.

    Raises:
        StateError: there is no complete state in the directory, or it was tampered with.
    """
    try:
        head = json.loads((directory / HEAD).read_bytes())
        payload = (directory / head["table"]).read_bytes()
    except FileNotFoundError as error:
        raise StateError(
            f"no complete scheduler state in {directory} ({Path(str(error.filename)).name} is missing); resume from another checkpoint"
        ) from error
    except json.JSONDecodeError as error:
        raise StateError(
            f"{directory / HEAD} is not JSON ({error}); resume from another checkpoint"
        ) from error
    if head["table"] != f"state-{_digest(payload)}.parquet":
        raise StateError(
            f"{directory / head['table']} does not match its digest; resume from another checkpoint"
        )
    keys, columns = parquet.parse(payload)
    return Snapshot(schema=head["schema"], kind=head["kind"], keys=keys, columns=columns, meta=head["meta"])


def match_keys(old: Sequence[str], new: Sequence[str], *, merge: bool) -> tuple[Ints, LoadReport]:
    """[N_new] index of each task in the old list, -1 where it is new, and the counts (D6).

    Reordered, dropped and added tasks are fine. A state that shares less than half of either task set is taken
    for a mistake unless `merge` says otherwise.

    Raises:
        StateError: the task sets differ too much.
    """
    if list(old) == list(new):
        return np.arange(len(new)), LoadReport(kept=len(new), fresh=0, dropped=0)
    position = {key: i for i, key in enumerate(old)}
    moved = np.fromiter((position.get(key, -1) for key in new), np.int64, len(new))
    kept = int((moved >= 0).sum())
    report = LoadReport(kept=kept, fresh=len(new) - kept, dropped=len(old) - kept)
    if not merge and 2 * kept < max(len(old), len(new)):
        raise StateError(
            f"the checkpoint has {len(old)} tasks, this run has {len(new)}, and they share {kept}; resume with the same "
            "environment, or pass --merge-state to keep what matches"
        )
    return moved, report


def _digest(payload: bytes) -> str:
    return hashlib.blake2b(payload, digest_size=8).hexdigest()


def _reason(error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "no space left on the device; free some or point the run elsewhere"
    return error.strerror or str(error)
