"""The embedded problems: six levels, written for this package, one TOML file each.

name       unique; the problem's identity, so a reworded statement keeps its curriculum state
domain     kind of problem: strings, graphs, dp, stdio, ...
statement  what to do
signature  of the function; absent: a program that reads stdin and prints
examples   shown: `f(1) == 2`, or [stdin, stdout]
hidden     graded, never shown; the same forms, disjoint from the examples
reference  a right solution
bugs       [what to replace, by what]: three plausible mistakes; each makes a solution that the hidden tests reject
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from snooze_code.asserts import call_of
from snooze_code.suite import Call, Suite

PRIORS = {1: 0.85, 2: 0.7, 3: 0.55, 4: 0.4, 5: 0.25, 6: 0.12}
"""Level → expected pass rate of a small instruct model: the authors' guess, falling in even steps, to be corrected by the
first rollouts. The order of the levels is what it is for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Authored:
    """One problem as written."""

    name: str
    level: int
    domain: str
    statement: str
    signature: str
    """`f(x: int) -> int`, or "" for a program."""
    examples: tuple[str, ...] | tuple[tuple[str, str], ...]
    suite: Suite
    reference: str
    bugs: tuple[tuple[str, str], ...]

    @property
    def entry(self) -> str:
        return self.signature.partition("(")[0]

    @property
    def wrong_solutions(self) -> tuple[str, ...]:
        """The reference with one bug each."""
        return tuple(self.reference.replace(old, new) for old, new in self.bugs)


@cache
def authored() -> tuple[Authored, ...]:
    """All of them, by level and then in the order they are written."""
    return tuple(problem for level in PRIORS for problem in _read(level))


def _read(level: int) -> Sequence[Authored]:
    text = files("snooze_code").joinpath("authored", f"level{level}.toml").read_text(encoding="utf-8")
    return [_problem(level, **row) for row in tomllib.loads(text)["problem"]]


def _problem(
    level: int,
    *,
    name: str,
    domain: str,
    statement: str,
    examples: list[Any],
    hidden: list[Any],
    reference: str,
    bugs: list[list[str]],
    signature: str = "",
) -> Authored:
    if signature:
        calls = tuple(_call(name, text) for text in hidden)
        suite = Suite(protocol="calls", calls=calls, rel_tol=1e-9)
    else:
        suite = Suite(protocol="stdio", cases=tuple((given, wanted) for given, wanted in hidden))
    return Authored(
        name=name,
        level=level,
        domain=domain,
        statement=statement.strip(),
        signature=signature,
        examples=tuple(examples) if signature else tuple((given, wanted) for given, wanted in examples),
        suite=suite,
        reference=reference.strip("\n"),
        bugs=tuple((old, new) for old, new in bugs),
    )


def _call(name: str, text: str) -> Call:
    call = call_of(f"assert {text}", name)
    if call is None:
        raise ValueError(f"problem {name}: {text!r} is not a call of {name} compared with a plain value")
    return call
