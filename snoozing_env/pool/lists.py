"""The exclusion list and the clusters as files: written by `snooze pool`, read by a recipe.

Every line names its row by `key` (a task's durable key, or the row's own id) and by `hash` (of the text, whatever its
dress), so that a list made from a raw file also fits the environment that loads it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from snoozing_env.errors import PoolError

EXACT, NEAR, NGRAM = "contaminated: exact", "contaminated: near-duplicate", "contaminated: n-grams"
DUPLICATE, NEAR_DUPLICATE, PARENT = "duplicate", "near-duplicate", "parent excluded"
REASONS = (EXACT, NEAR, NGRAM, DUPLICATE, NEAR_DUPLICATE, PARENT)
"""Why a row is excluded, strongest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """What a list says of rows, by key and by hash."""

    by_key: Mapping[str, str]
    by_hash: Mapping[str, str]
    lines: int

    def get(self, key: str, fingerprint: str) -> str | None:
        """The list's word on a row, its key first; None where it is not on the list."""
        found = self.by_key.get(key)
        return self.by_hash.get(fingerprint) if found is None else found


def write_lines(path: Path, lines: Iterable[Mapping[str, Any]]) -> int:
    """JSON lines, written whole or not at all; how many."""
    part, count = path.with_suffix(f"{path.suffix}.part"), 0
    with part.open("w", encoding="utf-8") as file:
        for line in lines:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
            count += 1
    part.replace(path)
    return count


def read_list(path: str | Path, value: str) -> Named:
    """What the lines of a list say under `value` ("reason" of an exclusion list, "cluster" of clusters).

    Raises:
        PoolError: no such file, a line that is not JSON, or one without a key, a hash or `value`.
    """
    path = Path(path).expanduser()
    if not path.is_file():
        raise PoolError(
            f"there is no list {path}; `snooze pool --output DIR` writes exclude.jsonl and clusters.jsonl"
        )
    by_key: dict[str, str] = {}
    by_hash: dict[str, str] = {}
    lines = 0
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            row = _line(path, number, line)
            if value not in row or not ("key" in row or "hash" in row):
                raise PoolError(
                    f"{path}, line {number} has the fields {sorted(row)}; wanted {value!r} and `key` or `hash`, as `snooze pool` writes them"
                )
            lines += 1
            for name, target in (("key", by_key), ("hash", by_hash)):
                if row.get(name):
                    target.setdefault(str(row[name]), str(row[value]))
    return Named(by_key=by_key, by_hash=by_hash, lines=lines)


def _line(path: Path, number: int, line: str) -> Mapping[str, Any]:
    try:
        row = json.loads(line)
    except json.JSONDecodeError as error:
        raise PoolError(f"{path}, line {number} is not JSON: {error.msg}") from error
    if not isinstance(row, dict):
        raise PoolError(f"{path}, line {number} is a JSON {type(row).__name__}, wanted an object")
    return cast("Mapping[str, Any]", row)
