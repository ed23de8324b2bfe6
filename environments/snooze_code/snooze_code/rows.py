"""What every source is read into."""

from __future__ import annotations

from dataclasses import dataclass

from snooze_code.suite import Suite


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One problem of any source."""

    id: str | None
    """The publisher's own; None = the prompt is the identity."""
    prompt: str
    suite: Suite
    entry: str = ""
    """Function the tests call; "" = a program that reads stdin."""
    before: str = ""
    after: str = ""
    reference: str = ""
    """A right solution, "" where the set has none."""
    domain: str = ""
    level: int | None = None
    prior: float | None = None
    cluster: str | None = None
    bare: bool = False
    """The reply is an expression in x, not a program."""


def function_prompt(statement: str, signature: str, examples: str) -> str:
    """A problem that asks for a function."""
    return f"{statement}\n\nWrite this function:\n{signature}\n\nFor example:\n{examples}"


def program_prompt(statement: str, examples: str) -> str:
    """A problem that asks for a program."""
    return f"{statement}\n\nWrite a program that reads standard input and prints the answer.\n\n{examples}"


def example_text(given: str, wanted: str) -> str:
    """One run of a program, shown."""
    return f"Input:\n{given.rstrip(chr(10))}\nOutput:\n{wanted.rstrip(chr(10))}\n"
