"""What a project promises, in words and in code: hidden tests and the examples of prompts come from the same text.

A `checks.txt` starts with a sentence about the project and its imports; then come blocks:

    # Once full, the cache forgets what was used least recently
    c = Cache(2)
    c.put("a", 1)
    >>> c.get("a")
    1
    >>> c.get(None)
    raises TypeError

A line is a statement to run. One after `>>>` is an expression, and the next line says what it gives: a literal, or the
name of the exception that it raises. The tests run outside the project's interpreter, so only plain data is compared.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_SEEN = re.compile(r"^(\d+)\|(.*)$", re.DOTALL)

# Underscored: a project may well export a `value`.
_HELPERS = """
class _Wrong(Exception):
    pass


def _value(got, wanted):
    if type(got) is not type(wanted) or got != wanted:
        raise _Wrong(f"gives {got!r}")


def _refusal(call, wanted):
    try:
        got = call()
    except Exception as error:
        if type(error).__name__ != wanted:
            raise _Wrong(f"raises {type(error).__name__}: {error}")
    else:
        raise _Wrong(f"gives {got!r}")


def _seen(step, error):
    what = str(error) if type(error) is _Wrong else f"raises {type(error).__name__}: {error}"
    return AssertionError(f"{step}|{what}")
"""


class CheckError(ValueError):
    """A checks.txt that cannot be read; names the line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One line of a block."""

    source: str
    """A statement, or an expression where something is wanted of it."""
    value: str | None = None
    """The literal that it gives; None for statements and exceptions."""
    raises: str | None = None
    """Name of the exception that it raises."""

    @property
    def wanted(self) -> str:
        """In the words of a prompt; "" for a statement."""
        if self.raises is not None:
            return f"raises {self.raises}"
        return f"gives {self.value}" if self.value is not None else ""

    def test(self) -> str:
        if self.raises is not None:
            return f"_refusal(lambda: {self.source}, {self.raises!r})"
        return f"_value({self.source}, {self.value})" if self.value is not None else self.source


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One promise."""

    words: str
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Checks:
    """All that a project promises."""

    about: str
    imports: str
    blocks: tuple[Block, ...]

    def tests(self) -> str:
        """Text for the protocol "tests" of a pool: `test_<n>` is block n. A failure's message is "<step>|<what was seen>"."""
        tests = [_test(number, block) for number, block in enumerate(self.blocks)]
        return "\n".join([self.imports, _HELPERS, *tests])


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """How a block failed."""

    block: int
    step: int
    what: str
    """ "gives 3" or "raises KeyError: 'a'"."""


def read_failure(name: str, why: str) -> Seen | None:
    """A pool's (test, why) as the block that failed; None where the tests themselves did not get that far."""
    match = _SEEN.match(why.removeprefix("AssertionError: "))
    if not name.startswith("test_") or match is None:
        return None
    return Seen(block=int(name.removeprefix("test_")), step=int(match[1]), what=_ADDRESS.sub("", match[2]))


def _test(number: int, block: Block) -> str:
    lines = [f"def test_{number}():", "    step = 0", "    try:"]
    for place, step in enumerate(block.steps):
        lines += [f"        step = {place}", f"        {step.test()}"]
    return "\n".join([*lines, "    except Exception as error:", "        raise _seen(step, error)", ""])


def parse_checks(text: str) -> Checks:
    """Raises CheckError where a line is not code, or an expression has nothing to be compared with."""
    head, *parts = re.split(r"^# ", text, flags=re.MULTILINE)
    about, _, imports = head.strip().partition("\n\n")
    blocks = tuple(_block(part) for part in parts)
    if not blocks or not imports:
        raise CheckError(
            "checks need a sentence, an empty line, imports, and blocks that start with '# words'"
        )
    return Checks(about=about.strip(), imports=imports.strip(), blocks=blocks)


def _block(part: str) -> Block:
    words, *lines = [line for line in part.splitlines() if line.strip()]
    steps, rest = [], iter(lines)
    for line in rest:
        if not line.startswith(">>> "):
            steps.append(Step(source=_code(line, "exec")))
            continue
        source, wanted = _code(line[4:], "eval"), next(rest, "")
        if wanted.startswith("raises "):
            steps.append(Step(source=source, raises=wanted.removeprefix("raises ").strip()))
        else:
            steps.append(Step(source=source, value=_literal(source, wanted)))
    return Block(words=words.strip(), steps=tuple(steps))


def _code(line: str, mode: str) -> str:
    try:
        ast.parse(line.strip(), mode=mode)
    except SyntaxError as error:
        raise CheckError(f"{line!r} is no line of Python: {error}") from None
    return line.strip()


def _literal(source: str, wanted: str) -> str:
    try:
        ast.literal_eval(wanted)
    except (ValueError, SyntaxError):
        raise CheckError(
            f"{source!r} is to give {wanted!r}, which is neither a literal nor 'raises Name'"
        ) from None
    return wanted.strip()
