"""A tiny language that a policy of half a million parameters can learn to write: one expression in x.

    f(2)=7 f(5)=10;   →   x+5        any expression with the right values counts, e.g. 5+x

The policy sees two points; the graded program is run on points it has not seen. A prompt is used only if every
expression of the language that fits its two points agrees on the hidden ones.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from itertools import combinations
from types import MappingProxyType

from snooze_code.suite import Call, Suite

POINTS = range(1, 10)
HIDDEN = (0, 3, 6, 11, 14, 20)
"""The inputs that are graded, without those a prompt shows."""
ENTRY = "f"

Points = tuple[tuple[int, int], tuple[int, int]]
"""Two (x, f(x)), the smaller x first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """Expressions of one difficulty."""

    description: str
    prior: float
    """Expected pass rate before training."""
    forms: tuple[str, ...]
    """Expressions; `a` and `b` stand for the digits 1 to 9, as a factor from 2."""


LEVELS: Mapping[int, Level] = MappingProxyType(
    {
        1: Level(description="x plus or minus a digit", prior=0.6, forms=("x+a", "x-a")),
        2: Level(description="x times a digit, a digit minus x", prior=0.4, forms=("a*x", "a-x", "x*x")),
        3: Level(description="two operations", prior=0.2, forms=("a*x+b", "a*x-b", "x*x+a")),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expression:
    """One prompt with its answer."""

    prompt: str
    answer: str
    level: int
    form: str
    suite: Suite


@cache
def expressions(level: int) -> tuple[Expression, ...]:
    """Every usable prompt of a level, in a fixed order."""
    return tuple(
        made for form in LEVELS[level].forms for text in _filled(form) for made in _prompts(level, form, text)
    )


def drawn(*, split: str, size: int, levels: Sequence[int], seed: int) -> list[Expression]:
    """`size` different prompts of a split, levels taking turns; the same seed gives the same list.

    Raises:
        ValueError: a level that does not exist, or more prompts than a level has.
    """
    if unknown := sorted(set(levels) - set(LEVELS)):
        raise ValueError(f"levels {unknown} do not exist; choose some of {sorted(LEVELS)}")
    pools = []
    for place, level in enumerate(levels):
        here = [e for e in expressions(level) if side(e.prompt) == split]
        wanted = len(range(place, size, len(levels)))
        if wanted > len(here):
            raise ValueError(
                f"level {level} ({LEVELS[level].description}) has {len(here)} {split} prompts, {wanted} were asked for"
            )
        pools.append(iter(random.Random(f"{seed}/{split}/{level}").sample(here, wanted)))
    return [next(pools[i % len(levels)]) for i in range(size)]


def side(prompt: str) -> str:
    """Held out or not, by content: one prompt in five."""
    return "eval" if int(sha256(prompt.encode()).hexdigest()[:8], 16) % 5 == 0 else "train"


def _filled(form: str) -> Iterator[str]:
    for a in range(2 if "a*" in form else 1, 10):  # 1*x is x: the same prompt on two levels
        for b in range(1, 10) if "b" in form else (0,):
            yield form.replace("a", str(a)).replace("b", str(b)) if "a" in form else form
        if "a" not in form:
            return


def _prompts(level: int, form: str, text: str) -> Iterator[Expression]:
    values = _values(text)
    for first, second in combinations(POINTS, 2):
        points = ((first, values[first]), (second, values[second]))
        hidden = tuple(x for x in HIDDEN if x not in (first, second))
        if any(other[x] != values[x] for other in _fitting()[points] for x in hidden):
            continue
        yield Expression(
            prompt=" ".join(f"f({x})={y}" for x, y in points) + ";",
            answer=text,
            level=level,
            form=form,
            suite=Suite(protocol="calls", calls=tuple(Call(args=(x,), expected=values[x]) for x in hidden)),
        )


@cache
def _fitting() -> Mapping[Points, Sequence[Mapping[int, int]]]:
    """Two points → the values of every expression of the language that goes through both."""
    found: dict[Points, list[Mapping[int, int]]] = {}
    for text in (text for level in LEVELS.values() for form in level.forms for text in _filled(form)):
        values = _values(text)
        for first, second in combinations(POINTS, 2):
            found.setdefault(((first, values[first]), (second, values[second])), []).append(values)
    return found


@cache
def _values(text: str) -> Mapping[int, int]:
    """What an expression gives at every input that is shown or graded."""
    function = eval(f"lambda x: {text}", {"__builtins__": {}})  # our own text, never a reply's
    return {x: function(x) for x in (*POINTS, *HIDDEN)}
