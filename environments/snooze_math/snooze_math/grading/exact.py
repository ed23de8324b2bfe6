"""Exact arithmetic over answer text: `\\frac{1}{2}`, `2^{10}`, `1.2e4`, `5!` → Fraction, without sympy.

Most golds and answers end here, in microseconds and in process. Nothing recurses, so sixty nested fractions
are as safe as one, and every step has a digit budget, so 9^9^9 is refused rather than computed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from fractions import Fraction
from types import MappingProxyType

MAX_DIGITS = 4000
"""Decimal digits an intermediate value may have."""
_MAX_BITS = int(MAX_DIGITS * 3.33)
_MAX_LENGTH = 8000

_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+(?![\d.]))?)"
    r"|(?P<command>\\(?:d|t|c)?frac(?![a-zA-Z])|\\sqrt(?![a-zA-Z])|\\binom(?![a-zA-Z]))"
    r"|(?P<op>\\times(?![a-zA-Z])|\\cdot(?![a-zA-Z])|\\div(?![a-zA-Z])|\*\*|[-+*/^!:])"
    r"|(?P<open>[({\[])|(?P<close>[)}\]]))"
)
_SAME = MappingProxyType({"\\times": "*", "\\cdot": "*", "\\div": "/", "**": "^", ":": "/"})
_FUNCTION = MappingProxyType(
    {
        "\\frac": "frac",
        "\\dfrac": "frac",
        "\\tfrac": "frac",
        "\\cfrac": "frac",
        "\\sqrt": "sqrt",
        "\\binom": "binom",
    }
)
_CLOSES = MappingProxyType({"(": ")", "{": "}", "[": "]"})
_PRECEDENCE = MappingProxyType({"+": 1, "-": 1, "*": 2, "/": 2, "neg": 3, "^": 4, "mixed": 6})


class TooBig(ValueError):
    """The value is arithmetic but beyond the digit budget; no honest answer is."""


class _NotArithmetic(ValueError):
    """Names, functions, several numbers in a row: not for this module."""


def evaluate(text: str) -> Fraction | None:
    """The exact value, None where the text is not plain arithmetic. Raises TooBig past the budget."""
    if len(text) > _MAX_LENGTH:
        if re.search(r"[A-Za-z\\]", text):
            return None
        raise TooBig(f"{len(text)} characters")
    try:
        return _Reader(text).value()
    except (_NotArithmetic, ZeroDivisionError, IndexError):
        return None


def _power(base: Fraction, exponent: Fraction) -> Fraction:
    if exponent.denominator != 1:
        root = _root(base, exponent.denominator)
        return _power(root, Fraction(exponent.numerator))
    if base in (1, -1):
        return base if exponent.numerator % 2 else Fraction(1)
    if base == 0:
        return Fraction(0) ** min(1, max(-1, exponent.numerator))
    bits = max(base.numerator.bit_length(), base.denominator.bit_length())
    if abs(exponent) * bits > _MAX_BITS:
        raise TooBig(
            f"a power with exponent {exponent.numerator if exponent.numerator.bit_length() < 60 else 'beyond 2^60'}"
        )
    return base ** int(exponent)


def _root(value: Fraction, degree: int) -> Fraction:
    if value < 0 or degree > 64 or degree < 1:
        raise _NotArithmetic
    parts = [_integer_root(part, degree) for part in (value.numerator, value.denominator)]
    return Fraction(parts[0], parts[1])


def _integer_root(value: int, degree: int) -> int:
    root = math.isqrt(value) if degree == 2 else round(value ** (1 / degree)) if value < 1 << 50 else -1
    if root < 0 or root**degree != value:
        raise _NotArithmetic  # irrational: sympy's business
    return root


def _factorial(value: Fraction) -> Fraction:
    if value.denominator != 1 or value < 0:
        raise _NotArithmetic
    if value > 1200:
        raise TooBig("a factorial beyond 1200!")
    return Fraction(math.factorial(int(value)))


def _binomial(top: Fraction, bottom: Fraction) -> Fraction:
    if top.denominator != 1 or bottom.denominator != 1 or top < 0 or bottom < 0:
        raise _NotArithmetic
    if top > 3000:
        raise TooBig("a binomial beyond 3000")
    return Fraction(math.comb(int(top), int(bottom)))


_APPLY: MappingProxyType[str, Callable[[Fraction, Fraction], Fraction]] = MappingProxyType(
    {
        "+": lambda a, b: a + b,
        "mixed": lambda a, b: a + b,
        "-": lambda a, b: a - b,
        "*": lambda a, b: a * b,
        "/": lambda a, b: a / b,
        "^": _power,
    }
)


class _Reader:
    """Shunting-yard over tokens; `\\frac{a}{b}` is an operator that waits for its second group."""

    def __init__(self, text: str) -> None:
        self._text = text.strip()
        self._values: list[Fraction] = []
        self._operators: list[str] = []
        self._operand = False  # True right after a complete operand
        self._last_integer = False  # that operand was a plain integer literal: a mixed number may follow

    def value(self) -> Fraction:
        if not self._text:
            raise _NotArithmetic
        at = 0
        while at < len(self._text):
            match = _TOKEN.match(self._text, at)
            if match is None:
                raise _NotArithmetic
            self._take(match)
            at = match.end()
        if not self._operand:
            raise _NotArithmetic
        self._reduce_to(None)
        (value,) = self._values
        return value

    def _take(self, match: re.Match[str]) -> None:
        kind, token = match.lastgroup or "", match[match.lastgroup or 0]
        was_integer, self._last_integer = self._last_integer, False
        if kind == "number":
            self._number(token, after_integer=was_integer)
        elif kind == "command":
            self._command(_FUNCTION[token], after_integer=was_integer)
        elif kind == "open":
            self._open(token)
        elif kind == "close":
            self._close(token)
        else:
            self._operator(_SAME.get(token, token))

    def _number(self, token: str, *, after_integer: bool) -> None:
        if self._operand:
            # "1 1 1", "5 6 7" are several numbers, "\frac{1}{2}3" is a slip: neither is a product.
            raise _NotArithmetic
        if len(token) > MAX_DIGITS:
            raise TooBig(f"a literal of {len(token)} characters")
        mantissa, _, exponent = token.lower().partition("e")
        value = Fraction(mantissa if mantissa[-1] != "." else mantissa[:-1])
        if exponent:
            value *= _power(Fraction(10), Fraction(exponent))
        self._values.append(value)
        self._operand, self._last_integer = True, token.isdigit()
        self._group_done()

    def _command(self, name: str, *, after_integer: bool) -> None:
        if self._operand:
            # 3\frac{1}{2} is three and a half, 3\sqrt{4} a product.
            self._push("mixed" if name == "frac" and after_integer else "*")
        self._operators.append(name)
        self._operand = False

    def _open(self, token: str) -> None:
        top = self._operators[-1] if self._operators else ""
        if top in ("frac", "frac2", "binom", "binom2", "sqrt") and not self._operand:
            if token != "{":
                raise _NotArithmetic
        elif self._operand:
            self._push("*")
        self._operators.append(token)
        self._operand = False

    def _close(self, token: str) -> None:
        if not self._operand:
            raise _NotArithmetic
        self._reduce_to(token)
        self._operand = True
        self._group_done()

    def _group_done(self) -> None:
        """A group or number is complete: let a waiting \\frac, \\binom or \\sqrt take it."""
        while self._operators and self._operators[-1] in ("frac", "frac2", "binom", "binom2", "sqrt"):
            waiting = self._operators.pop()
            if waiting in ("frac", "binom"):
                self._operators.append(waiting + "2")
                self._operand = False
                return
            if waiting == "sqrt":
                self._values.append(_root(self._values.pop(), 2))
            else:
                second, first = self._values.pop(), self._values.pop()
                self._values.append(first / second if waiting == "frac2" else _binomial(first, second))

    def _operator(self, token: str) -> None:
        if token == "!":
            if not self._operand:
                raise _NotArithmetic
            self._values.append(_factorial(self._values.pop()))
        elif self._operand:
            self._push(token)
            self._operand = False
        elif token == "-":
            self._operators.append("neg")
        elif token != "+":
            raise _NotArithmetic

    def _push(self, operator: str) -> None:
        rank = _PRECEDENCE[operator]
        while self._operators and (top := _PRECEDENCE.get(self._operators[-1])) is not None:
            if top < rank or (top == rank and operator == "^"):
                break
            self._apply()
        self._operators.append(operator)

    def _reduce_to(self, close: str | None) -> None:
        while self._operators and self._operators[-1] in _PRECEDENCE:
            self._apply()
        if close is None:
            if self._operators:
                raise _NotArithmetic
        elif not self._operators or _CLOSES.get(self._operators.pop()) != close:
            raise _NotArithmetic

    def _apply(self) -> None:
        operator = self._operators.pop()
        if operator == "neg":
            self._values.append(-self._values.pop())
            return
        right, left = self._values.pop(), self._values.pop()
        value = _APPLY[operator](left, right)
        if max(value.numerator.bit_length(), value.denominator.bit_length()) > _MAX_BITS:
            raise TooBig("an intermediate value")
        self._values.append(value)
