"""Arithmetic problems without a download: eight levels, two prompt styles, a held-out side by construction.

The side of a problem is a hash of its numbers and signs *regardless of their order*, so `45+23=` can never
be trained on while `23+45=` is held out. No list is kept and nothing has to be compared.
"""

from __future__ import annotations

import hashlib
import itertools
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

Split = Literal["train", "eval"]
Operation = Literal["add", "subtract", "multiply", "mixed"]

EVAL_EVERY = 5
"""One problem in this many is held out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One problem in both prompt styles."""

    question: str
    """Natural text for an instruct model: "What is 23 + 45?"."""
    bare: str
    """The expression alone, for a tiny policy: "23+45="."""
    answer: str
    """Decimal integer, never negative."""
    level: int
    operation: Operation


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """A shape of expression and the numbers that may fill it."""

    template: str
    """Expression over {a}, {b} and perhaps {c}, without spaces; its rule is in `_RULES`."""
    operation: Operation
    operands: tuple[range, ...]
    carries: bool | None = None
    """Keep only expressions whose last digits carry or borrow (True) or do not (False); None keeps all."""

    def fill(self) -> Iterator[tuple[str, int]]:
        """Every expression of this form with its value, negative values left out."""
        for values in itertools.product(*self.operands):
            value = _RULES[self.template](*values)
            if value >= 0 and self.carries in (None, _carries(self.operation, values)):
                yield self.template.format(**dict(zip("abc", values, strict=False))), value


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """How hard a problem is, in words and as a number."""

    description: str
    prior: float
    """Rough pass rate of a small instruct model, a starting belief only."""
    forms: tuple[Form, ...]


_RULES = MappingProxyType(
    {
        "{a}+{b}": lambda a, b: a + b,
        "{a}-{b}": lambda a, b: a - b,
        "{a}*{b}": lambda a, b: a * b,
        "({a}+{b})*{c}": lambda a, b, c: (a + b) * c,
        "({a}-{b})*{c}": lambda a, b, c: (a - b) * c,
        "{a}+{b}*{c}": lambda a, b, c: a + b * c,
        "{a}*{b}-{c}": lambda a, b, c: a * b - c,
    }
)


def _carries(operation: Operation, values: Sequence[int]) -> bool:
    """Whether the last digits of the first two operands leave the range 0 to 9."""
    a, b = values[0] % 10, values[1] % 10
    return a < b if operation == "subtract" else a + b > 9


def _form(template: str, operation: Operation, *operands: range, carries: bool | None = None) -> Form:
    return Form(template=template, operation=operation, operands=operands, carries=carries)


_DIGIT, _TWO = range(10), range(10, 100)
_SMALL = range(2, 10)

LEVELS: Mapping[int, Level] = MappingProxyType(
    {
        1: Level(
            description="one-digit addition",
            prior=0.97,
            forms=(_form("{a}+{b}", "add", _DIGIT, _DIGIT),),
        ),
        2: Level(
            description="a two-digit number plus or minus one digit, nothing carried",
            prior=0.95,
            forms=(
                _form("{a}+{b}", "add", _TWO, _DIGIT, carries=False),
                _form("{a}-{b}", "subtract", _TWO, _DIGIT, carries=False),
            ),
        ),
        3: Level(
            description="a two-digit number plus or minus one digit, with a carry",
            prior=0.9,
            forms=(
                _form("{a}+{b}", "add", _TWO, _DIGIT, carries=True),
                _form("{a}-{b}", "subtract", _TWO, _DIGIT, carries=True),
            ),
        ),
        4: Level(
            description="two-digit addition",
            prior=0.85,
            forms=(_form("{a}+{b}", "add", _TWO, _TWO),),
        ),
        5: Level(
            description="two-digit subtraction",
            prior=0.75,
            forms=(_form("{a}-{b}", "subtract", _TWO, _TWO),),
        ),
        6: Level(
            description="a two-digit number times one digit",
            prior=0.6,
            forms=(_form("{a}*{b}", "multiply", _TWO, _SMALL),),
        ),
        7: Level(
            description="two steps, with and without parentheses",
            prior=0.45,
            forms=(
                _form("({a}+{b})*{c}", "mixed", range(1, 13), range(1, 13), _SMALL),
                _form("({a}-{b})*{c}", "mixed", range(2, 21), range(1, 13), _SMALL),
                _form("{a}+{b}*{c}", "mixed", range(1, 31), _SMALL, _SMALL),
                _form("{a}*{b}-{c}", "mixed", _SMALL, _SMALL, range(1, 21)),
            ),
        ),
        8: Level(
            description="two-digit multiplication",
            prior=0.15,
            forms=(_form("{a}*{b}", "multiply", range(11, 100), range(11, 100)),),
        ),
        9: Level(
            description="a three-digit number times a two-digit one",
            prior=0.05,
            forms=(_form("{a}*{b}", "multiply", range(100, 1000), range(11, 100)),),
        ),
        10: Level(
            description="a sum of two-digit numbers times a number from 11 to 30",
            prior=0.03,
            forms=(_form("({a}+{b})*{c}", "mixed", _TWO, _TWO, range(11, 31)),),
        ),
    }
)
USUAL_LEVELS = range(1, 9)
"""What a run gets that names no levels; 9 and 10 are for policies that find those easy, and large: 100,000 problems to train on."""

_ANY_QUESTION = (
    "What is {spaced}?",
    "Calculate {spaced}.",
    "Work out {spaced}.",
    "Find the value of {spaced}.",
)
_WORDED: Mapping[Operation, tuple[str, ...]] = MappingProxyType(
    {
        "add": ("What is the sum of {0} and {1}?", "Add {1} to {0}.", "How much is {0} plus {1}?"),
        "subtract": (
            "Subtract {1} from {0}.",
            "How much is {0} minus {1}?",
            "What is left when {1} is taken from {0}?",
        ),
        "multiply": (
            "What is the product of {0} and {1}?",
            "Multiply {0} by {1}.",
            "How much is {0} times {1}?",
        ),
        "mixed": ("Evaluate the expression {spaced}.",),
    }
)


def side(bare: str) -> Split:
    """The split a bare problem belongs to; the same for every order of the same numbers and signs."""
    tokens = sorted(re.findall(r"\d+|\D", bare))
    digest = hashlib.blake2b(" ".join(tokens).encode(), digest_size=8).digest()
    return "eval" if int.from_bytes(digest, "big") % EVAL_EVERY == 0 else "train"


def _question(expression: str, operation: Operation, rng: random.Random) -> str:
    spaced = re.sub(r"([+*-])", r" \1 ", expression)
    template = rng.choice(_ANY_QUESTION + _WORDED[operation])
    return template.format(*re.findall(r"\d+", expression), spaced=spaced)


def _supply(number: int, split: Split) -> list[tuple[str, int, Operation]]:
    """Every problem of one level on one side, in a fixed order."""
    forms = LEVELS[number].forms
    found = ((text, value, form.operation) for form in forms for text, value in form.fill())
    return [(text, value, operation) for text, value, operation in found if side(f"{text}=") == split]


def _level_problems(number: int, *, split: Split, size: int, seed: int) -> list[Problem]:
    supply = _supply(number, split)
    if size > len(supply):
        raise ValueError(
            f"level {number} ({LEVELS[number].description}) has {len(supply)} distinct {split} problems, "
            f"{size} were asked for; ask for a smaller size or leave level {number} out"
        )
    rng = random.Random(
        f"{seed}/{split}/{number}"
    )  # a string seed hashes with sha512: stable across processes
    rng.shuffle(supply)
    return [
        Problem(
            question=_question(text, operation, rng),
            bare=f"{text}=",
            answer=str(value),
            level=number,
            operation=operation,
        )
        for text, value, operation in supply[:size]
    ]


def _check(*, split: str, size: int, levels: Sequence[int]) -> None:
    if split not in ("train", "eval"):
        raise ValueError(f"split is {split!r}; it must be 'train' or 'eval'")
    if size < 1:
        raise ValueError(f"size is {size}; ask for at least one problem")
    if not levels:
        raise ValueError(f"levels is empty; choose some of {sorted(LEVELS)}")
    if unknown := sorted(set(levels) - set(LEVELS)):
        raise ValueError(f"levels {unknown} do not exist; choose some of {sorted(LEVELS)}")
    if len(set(levels)) != len(levels):
        raise ValueError(f"levels {list(levels)} name one twice; shares are equal, each level once")


def problems(*, split: Split, size: int, levels: Sequence[int], seed: int = 0) -> list[Problem]:
    """`size` distinct problems, the levels in turn and in equal shares (largest remainder, earlier levels first).

    Raises `ValueError` when a level has fewer distinct problems on this side than its share, saying how many.
    The same seed gives the same list; a larger size of the same seed keeps every problem of the smaller one.
    """
    _check(split=split, size=size, levels=levels)
    share, extra = divmod(size, len(levels))
    columns = [
        _level_problems(number, split=split, size=share + (place < extra), seed=seed)
        for place, number in enumerate(levels)
    ]
    return [column[row] for row in range(share + 1) for column in columns if row < len(column)]
