"""Everyday algebra as numbers: `2\\sqrt{3}x + \\sin^2 x` at a point, to 50 digits, without sympy's parser.

math-verify's parser takes milliseconds per expression and folds case (R becomes r). Most golds need neither: this
reader compiles sums, products, powers, roots, logarithms and trigonometry to closures over mpmath. Whatever it does
not know for certain it declines (`Unknown`), and math-verify reads that instead.
"""

from __future__ import annotations

import functools
import re
import zlib
from collections.abc import Callable, Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import mpmath

Program = Callable[[int], Any]
"""Point number → value."""

CONTEXT = mpmath.MPContext()
CONTEXT.dps = 50

POINTS = (
    (Fraction(7, 11), Fraction(13, 9)), (Fraction(-7, 11), Fraction(-13, 9)), (Fraction(19, 23), Fraction(5, 7)),
    (Fraction(-9, 13), Fraction(29, 17)), (Fraction(2), Fraction(1)), (Fraction(1, 9), Fraction(1, 7)),
)  # fmt: skip
"""Offset and step per point: a name's value is offset + step·(its hash in [0, 1))."""

_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d+)?|\.\d+)|(?P<name>[A-Za-z](?:_\{?\w+\}?)?)|(?P<command>\\[A-Za-z]+)|(?P<mark>\*\*|[-+*/^!(){}\[\]_]))"
)
_GREEK = frozenset(
    "\\" + name
    for name in [
        "alpha",
        "beta",
        "gamma",
        "delta",
        "epsilon",
        "theta",
        "lambda",
        "mu",
        "nu",
        "rho",
        "sigma",
        "tau",
        "phi",
        "psi",
        "omega",
    ]
)
_FUNCTIONS: Mapping[str, Callable[[Any], Any]] = MappingProxyType(
    {
        "\\sin": CONTEXT.sin, "\\cos": CONTEXT.cos, "\\tan": CONTEXT.tan, "\\cot": CONTEXT.cot, "\\sec": CONTEXT.sec,
        "\\csc": CONTEXT.csc, "\\ln": CONTEXT.log, "\\log": CONTEXT.log, "\\exp": CONTEXT.exp, "\\arcsin": CONTEXT.asin,
        "\\arccos": CONTEXT.acos, "\\arctan": CONTEXT.atan,
    }
)  # fmt: skip
_MULTIPLY = frozenset({"*", "\\times", "\\cdot"})
_OPERATORS = frozenset({"+", "-", "*", "/", "^", "**", "!", ")", "}", "]", "\\times", "\\cdot", "\\div", "_"})


class Unknown(ValueError):
    """Not everyday algebra, or ambiguous: another reader must decide."""


def point(name: str, at: int) -> Fraction:
    """The value of a variable at a point; hangs on its name alone, so n² + n and k² + k differ."""
    offset, step = POINTS[at]
    return offset + step * Fraction(zlib.crc32(name.encode()), 1 << 32)


@functools.lru_cache(maxsize=1024)
def program(text: str) -> tuple[Program, bool] | None:
    """The compiled expression and whether it has variables, None where this reader does not know it."""
    try:
        reader = _Reader(text)
        return reader.whole(), bool(reader.names)
    except Unknown:
        return None


@functools.lru_cache(maxsize=4096)
def value_at(text: str, at: int) -> Any:
    """The value of a known expression, None where it has none at this point."""
    compiled = program(text)
    if compiled is None:
        raise Unknown(text)
    try:
        value = compiled[0](at)
    except (ZeroDivisionError, ValueError, OverflowError):
        return None
    return value if CONTEXT.isfinite(value) else None


class _Reader:
    """Recursive descent: sum → product → signed power → atom. Depth is bounded by bombs.MAX_DEPTH."""

    def __init__(self, text: str) -> None:
        self.names: set[str] = set()
        self._tokens = self._scan(text)
        self._at = 0

    @staticmethod
    def _scan(text: str) -> list[tuple[str, str]]:
        tokens, at, text = [], 0, text.rstrip()
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                raise Unknown(text[at : at + 10])
            tokens.append((match.lastgroup or "", match[match.lastgroup or 0]))
            at = match.end()
        return tokens

    def whole(self) -> Program:
        value = self._sum()
        if self._at < len(self._tokens):
            raise Unknown(self._peek())
        return value

    def _peek(self) -> str:
        return self._tokens[self._at][1] if self._at < len(self._tokens) else ""

    def _kind(self) -> str:
        return self._tokens[self._at][0] if self._at < len(self._tokens) else ""

    def _next(self) -> str:
        token = self._peek()
        self._at += 1
        return token

    def _expect(self, token: str) -> None:
        if self._next() != token:
            raise Unknown(token)

    def _sum(self) -> Program:
        value = self._product()
        while self._peek() in ("+", "-"):
            sign, left = self._next(), value
            right = self._product()
            value = _added(left, right) if sign == "+" else _added(left, _negated(right))
        return value

    def _product(self, *, juxtaposed_only: bool = False) -> Program:
        value, divided = self._signed(), False
        while token := self._peek():
            if token in _MULTIPLY and not juxtaposed_only:
                self._next()
                value = _multiplied(value, self._signed())
            elif token in ("/", "\\div") and not juxtaposed_only:
                self._next()
                value, divided = _divided(value, self._signed()), True
            elif token in _OPERATORS or (juxtaposed_only and (token in _FUNCTIONS or token == "(")):
                break
            elif divided or self._kind() == "number":
                raise Unknown("1/2x and 2 3 mean different things to different people")
            else:
                value = _multiplied(value, self._power())
        return value

    def _signed(self) -> Program:
        if self._peek() in ("-", "+"):
            sign = self._next()
            return _negated(self._signed()) if sign == "-" else self._signed()
        return self._power()

    def _power(self) -> Program:
        base = self._atom()
        while self._peek() == "!":
            self._next()
            base = _factorial(base)
        if self._peek() in ("^", "**"):
            self._next()
            return _raised(base, self._exponent())
        return base

    def _exponent(self) -> Program:
        if self._peek() == "{":
            return self._group("{", "}")
        return self._signed() if self._peek() in ("-", "(") else self._atom()

    def _group(self, opening: str, closing: str) -> Program:
        self._expect(opening)
        value = self._sum()
        self._expect(closing)
        return value

    def _atom(self) -> Program:
        kind, token = self._kind(), self._peek()
        if token in ("(", "{", "["):
            return self._group(token, {"(": ")", "{": "}", "[": "]"}[token])
        self._next()
        if kind == "number":
            return self._number(token)
        if kind == "name" or token in _GREEK:
            return self._name(token)
        if token == "\\pi":
            return lambda at: +CONTEXT.pi
        if token == "\\frac":
            return _divided(self._group("{", "}"), self._group("{", "}"))
        if token == "\\sqrt":
            degree = self._group("[", "]") if self._peek() == "[" else _constant(Fraction(2))
            return _raised(self._group("{", "}"), _divided(_constant(Fraction(1)), degree))
        if token in _FUNCTIONS:
            return self._function(token)
        raise Unknown(token)

    def _number(self, token: str) -> Program:
        if self._peek() != "\\frac" or not token.isdigit():
            return _constant(Fraction(token))
        here = [text for _, text in self._tokens[self._at + 1 : self._at + 7]]
        if len(here) == 6 and here[1].isdigit() and here[4].isdigit():  # 3\frac{1}{2}
            return _added(_constant(Fraction(token)), self._atom())
        return _constant(Fraction(token))

    def _name(self, token: str) -> Program:
        if token in ("f", "g", "h") and self._peek() == "(":
            raise Unknown("a function application")
        if token == "e":
            return lambda at: +CONTEXT.e
        if token == "i":
            return lambda at: CONTEXT.mpc(0, 1)
        name = re.sub(r"[{}]", "", token)
        self.names.add(name)
        return lambda at: _real(point(name, at))

    def _function(self, token: str) -> Program:
        function, base, power = _FUNCTIONS[token], None, None
        if self._peek() == "_" and token == "\\log":
            self._next()
            base = self._group("{", "}") if self._peek() == "{" else self._atom()
        if self._peek() == "^":
            self._next()
            power = self._exponent()
            if token in ("\\sin", "\\cos", "\\tan") and power(0) == -1:
                raise Unknown("an inverse function")
        inside = self._group("(", ")") if self._peek() == "(" else self._product(juxtaposed_only=True)
        if self._peek() in ("^", "!"):
            raise Unknown("sin(x)^2 or sin(x^2)")
        value: Program = lambda at: function(inside(at))  # noqa: E731 - one of a family of closures
        if base is not None:
            value = _divided(value, lambda at: CONTEXT.log(base(at)))
        elif token == "\\log":
            raise Unknown("a logarithm without a base")
        return _raised(value, power) if power is not None else value


def _real(value: Fraction) -> Any:
    return CONTEXT.mpf(value.numerator) / value.denominator


def _constant(value: Fraction) -> Program:
    number = _real(value)
    return lambda at: number


def _negated(value: Program) -> Program:
    return lambda at: -value(at)


def _added(left: Program, right: Program) -> Program:
    return lambda at: left(at) + right(at)


def _multiplied(left: Program, right: Program) -> Program:
    return lambda at: left(at) * right(at)


def _divided(left: Program, right: Program) -> Program:
    return lambda at: left(at) / right(at)


def _raised(base: Program, exponent: Program) -> Program:
    return lambda at: CONTEXT.power(base(at), exponent(at))


def _factorial(value: Program) -> Program:
    return lambda at: CONTEXT.factorial(value(at))
