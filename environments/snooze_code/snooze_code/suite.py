"""Hidden tests as data: exact over JSON, tuples, sets and big integers included."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from snoozing_sandboxes.runner.wire import decode, encode

Protocol = Literal["calls", "stdio", "tests"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of the graded function."""

    args: tuple[Any, ...]
    expected: Any = None
    known: bool = True
    """False: what is expected is what the reference solution returns, asked when the suite is first used."""
    truth: bool = False
    """Whether `assert f(x)` was all that is said: any true (or false) result will do. Not kept in JSON, where the
    suite's `view` says it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """The hidden tests of one problem, in the protocol of snoozing_sandboxes that fits them."""

    protocol: Protocol
    calls: tuple[Call, ...] = ()
    """Under "calls"."""
    cases: tuple[tuple[str, str], ...] = ()
    """Under "stdio": (what the program is fed, what it has to print)."""
    text: str = ""
    """Under "tests": asserts, unittest classes or `check(candidate)`."""
    abs_tol: float = 0.0
    """Numbers may differ by this much."""
    rel_tol: float = 0.0
    tuples_as_lists: bool = False
    """Whether (1, 2) equals [1, 2]."""
    view: Literal["value", "set", "truth"] = "value"
    """What of a result counts: all of it, the set of its elements, or whether it is true."""

    @property
    def size(self) -> int:
        """How many tests there are, as far as that is known without running them."""
        return len(self.calls) + len(self.cases) + bool(self.text)

    @property
    def complete(self) -> bool:
        return all(call.known for call in self.calls)

    def with_expected(self, values: Sequence[Any]) -> Suite:
        """The suite with the reference's answers to the calls that had none, in their order."""
        answers = iter(values)
        calls = tuple(
            call if call.known else replace(call, expected=next(answers), known=True) for call in self.calls
        )
        return replace(self, calls=calls)

    def dumps(self) -> str:
        """JSON text; `loads` gives an equal suite."""
        body: dict[str, Any] = {"protocol": self.protocol}
        if self.calls:
            body["calls"] = [
                [[encode(a) for a in call.args], *([encode(call.expected)] if call.known else [])]
                for call in self.calls
            ]
        if self.cases:
            body["cases"] = [list(case) for case in self.cases]
        body |= {name: value for name in _DEFAULTS if (value := getattr(self, name)) != _DEFAULTS[name]}
        return json.dumps(body)

    @classmethod
    def loads(cls, text: str) -> Suite:
        """Raises ValueError for text that `dumps` did not write."""
        body = json.loads(text)
        calls = tuple(
            Call(
                args=tuple(map(decode, args)),
                expected=decode(rest[0]) if rest else None,
                known=bool(rest),
            )
            for args, *rest in body.pop("calls", [])
        )
        cases = tuple((given, wanted) for given, wanted in body.pop("cases", []))
        return cls(**{**body, "calls": calls, "cases": cases})


_DEFAULTS = {"text": "", "abs_tol": 0.0, "rel_tol": 0.0, "tuples_as_lists": False, "view": "value"}
