"""Equality of encoded values on the host, without building a single object from what a box said.

Python's own `==` between plain data: 1 == 1.0 == True, [1] != (1,), sets and dicts without order. Keys and set members
are matched by a canonical text, whose hash is randomised: numbers that collide in a hash table cost nothing here.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

__all__ = ["Equality"]

_MAX_DEPTH = 220


@dataclass(frozen=True, slots=True, kw_only=True)
class Equality:
    abs_tol: float = 0.0
    rel_tol: float = 0.0
    tuples_as_lists: bool = False

    def same(self, expected: Any, got: Any, depth: int = 0) -> bool:
        """Whether the untrusted `got` is the value `expected`; both as `wire.encode` writes them."""
        if depth > _MAX_DEPTH:
            return False
        if isinstance(expected, list) and isinstance(got, list) and len(expected) > 1 and len(got) > 1:
            return self._same_tagged(expected, got, depth)
        one, other = _number(expected), _number(got)
        if one is not None and other is not None:
            return self._same_number(one, other)
        return type(expected) is type(got) and not isinstance(got, list | dict) and expected == got

    def _same_tagged(self, expected: list[Any], got: list[Any], depth: int) -> bool:
        tag, other = self._kind(expected[0]), self._kind(got[0])
        if tag != other or tag == "o":
            return False
        if tag not in ("l", "t", "S", "d"):
            return expected[1:] == got[1:] and all(isinstance(x, str | int | float) for x in got[1:])
        if not isinstance(got[1], list) or len(got[1]) != len(expected[1]):
            return False
        if tag in ("l", "t"):
            return all(self.same(a, b, depth + 1) for a, b in zip(expected[1], got[1], strict=True))
        if tag == "S":
            return {_canonical(x) for x in expected[1]} == {_canonical(x) for x in got[1]}
        return self._same_pairs(expected[1], got[1], depth)

    def _same_pairs(self, expected: list[Any], got: list[Any], depth: int) -> bool:
        if not all(isinstance(pair, list) and len(pair) == 2 for pair in got):
            return False
        found = {_canonical(key): value for key, value in got}
        wanted = {_canonical(key): value for key, value in expected}
        return found.keys() == wanted.keys() and all(
            self.same(value, found[key], depth + 1) for key, value in wanted.items()
        )

    def _kind(self, tag: Any) -> str:
        if tag == "F":
            return "S"
        return "l" if tag == "t" and self.tuples_as_lists else str(tag)

    def _same_number(self, one: float | int, other: float | int) -> bool:
        if one == other:
            return True
        if not (self.abs_tol or self.rel_tol) or (isinstance(one, int) and isinstance(other, int)):
            return False
        try:
            return math.isclose(one, other, rel_tol=self.rel_tol, abs_tol=self.abs_tol)
        except OverflowError:
            return False


def _number(data: Any) -> float | int | None:
    if isinstance(data, bool | int | float):
        return data
    if isinstance(data, list) and len(data) == 2 and data[0] == "i" and isinstance(data[1], str):
        try:
            return int(data[1], 16)
        except ValueError:
            return None
    return None


def _canonical(data: Any, depth: int = 0) -> str:
    """One text for keys that Python holds equal: 1, 1.0 and True are one key."""
    if depth > _MAX_DEPTH:
        return "too deep"
    number = _number(data)
    if number is not None:
        whole = isinstance(number, int) or number.is_integer()
        return hex(int(number)) if whole else repr(number)
    if isinstance(data, list) and len(data) > 1 and isinstance(data[1], list):
        parts = [_canonical(x, depth + 1) for x in data[1]]
        return json.dumps(
            [data[0] if data[0] != "F" else "S", sorted(parts) if data[0] in ("S", "F") else parts]
        )
    return json.dumps(data)
