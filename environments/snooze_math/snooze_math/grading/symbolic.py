"""The part of grading that needs sympy and math-verify; runs in a worker of the grading pool only."""

from __future__ import annotations

import functools
import logging
import re
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import sympy
from latex2sympy2_extended import NormalizationConfig
from math_verify import LatexExtractionConfig, parse, verify

from snooze_math.grading import numeric
from snooze_math.grading.compare import close_enough, equal, rounds, squeeze
from snooze_math.grading.exact import evaluate
from snooze_math.grading.numeric import POINTS, point
from snooze_math.grading.shapes import Relation, read

logging.disable(logging.CRITICAL)  # this process has no reader for math-verify's warnings

_EXTRACTION = LatexExtractionConfig(
    boxed_match_priority=0,
    normalization_config=NormalizationConfig(
        basic_latex=True, units=False, malformed_operators=True, nits=False, boxed="all", equations=False
    ),
)
_DECIMAL = re.compile(r"(?<![\w.])(\d*)\.(\d{1,60})(?![\d.])")
_UNFINISHED = re.compile(r"\\ldots|\.\.\.|\?")
_DIGITS = 40
_SAME = numeric.CONTEXT.mpf(10) ** -30
_ENOUGH = 4
"""Points where both sides are defined and agree, after which they are the same function."""


class Unreadable(ValueError):
    """math-verify cannot parse this expression."""


def equal_symbolic(gold: str, answer: str) -> Iterator[str]:
    """Generator grader: yields the stage, returns whether `answer` equals `gold`."""
    yield "gold"
    gold_shape = read(gold)
    equal(gold_shape, gold_shape, _Readable())
    yield "answer"
    return equal(gold_shape, read(answer), SymbolicJudge())


class SymbolicJudge:
    """Exact arithmetic first, then sympy objects compared at random points, then math-verify's own rules."""

    many = 400

    def same(self, gold: str, answer: str) -> bool:
        if squeeze(gold) == squeeze(answer):
            return True
        gold_value, answer_value = evaluate(gold), evaluate(answer)
        if gold_value is not None and answer_value is not None:
            return close_enough(gold_value, answer_value, answer)
        if _UNFINISHED.search(answer) and not _UNFINISHED.search(gold):
            return False  # math-verify reads 7… as 7
        try:
            return _same_value(gold, _one_imaginary_unit(gold, answer))
        except Unreadable:
            return False

    def same_relation(self, gold: Relation, answer: Relation) -> bool:
        try:
            ratio = _constant_ratio(_gap(gold), _gap(answer))
        except Unreadable:
            return False
        if gold.signs == answer.signs == ("=",):
            return ratio is not None
        flipped = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}.get(answer.signs[0])
        return ratio is not None and gold.signs[0] == (answer.signs[0] if ratio.real > 0 else flipped)


class _Readable:
    """A judge that only finds out whether the gold itself can be read and evaluated."""

    many = 400

    def same(self, gold: str, answer: str) -> bool:
        if evaluate(gold) is None and numeric.program(gold) is None:
            _value_at(gold, 0)
        return True

    def same_relation(self, gold: Relation, answer: Relation) -> bool:
        return self.same(_gap(gold), "")


def _gap(relation: Relation) -> str:
    return f"({relation.terms[0]})-({relation.terms[1]})"


def _one_imaginary_unit(gold: str, answer: str) -> str:
    standalone = r"(?<![A-Za-z\\])%s(?![A-Za-z])"
    if re.search(standalone % "i", gold) and not re.search(standalone % "i", answer):
        return re.sub(standalone % "j", "i", answer)
    return answer


@functools.lru_cache(maxsize=512)
def _parsed(text: str) -> Any:
    # Binary floats are not what was written: 0.1 becomes 1/10 before sympy sees it.
    text = _DECIMAL.sub(lambda match: f"\\frac{{{match[1]}{match[2]}}}{{{10 ** len(match[2])}}}", text)
    found = parse(f"\\boxed{{{text}}}", [_EXTRACTION], fallback_mode="no_fallback", parsing_timeout=None)
    if not found or isinstance(found[0], str):
        raise Unreadable(f"math-verify cannot parse {text[:80]!r}")
    # math-verify takes a lone i for a variable; bound ones (an index of a sum) are not free.
    units = {symbol: sympy.I for symbol in getattr(found[0], "free_symbols", ()) if symbol.name == "i"}
    return found[0].subs(units) if units else found[0]


def _same_value(gold_text: str, answer_text: str) -> bool:
    known = numeric.program(gold_text), numeric.program(answer_text)
    if known[0] is not None and known[1] is not None:
        if not (known[0][1] or known[1][1]):
            return _same_constant(
                numeric.value_at(gold_text, 0), numeric.value_at(answer_text, 0), answer_text
            )
        if (same := _same_function(numeric.value_at, gold_text, answer_text)) is not None:
            return same
    return _same_by_sympy(gold_text, answer_text)


def _same_by_sympy(gold_text: str, answer_text: str) -> bool:
    gold, answer = _parsed(gold_text), _parsed(answer_text)
    if gold == answer:
        return True
    if isinstance(gold, sympy.Expr) and isinstance(answer, sympy.Expr):
        if _infinite(gold) or _infinite(answer):
            return False
        if not gold.free_symbols and not answer.free_symbols:
            return _same_constant(_value_at(gold_text, 0), _value_at(answer_text, 0), answer_text)
        if (same := _same_function(_value_at, gold_text, answer_text)) is not None:
            return same
    return bool(verify(gold, answer, strict=True, timeout_seconds=None))


def _infinite(side: Any) -> bool:
    return side.has(sympy.oo, sympy.zoo, sympy.nan) and not side.has(sympy.Limit, sympy.Sum, sympy.Integral)


def _same_function(value_at: Callable[[str, int], Any], gold: str, answer: str) -> bool | None:
    """False at the first point that tells them apart, True after enough that do not, None where too few are defined."""
    agreed = 0
    for at in range(len(POINTS)):
        one, other = value_at(gold, at), value_at(answer, at)
        if one is None or other is None:
            continue
        if not _near(one, other):
            return False
        agreed += 1
        if agreed == _ENOUGH:
            return True
    return None


def _same_constant(gold: Any, answer: Any, written: str) -> bool:
    if gold is None or answer is None:
        return False
    if _near(gold, answer):
        return True
    value = evaluate(written)
    if value is None or gold.imag != 0:
        return False
    return rounds(Fraction(numeric.CONTEXT.nstr(gold.real, _DIGITS)), value, written)


def _near(one: Any, other: Any) -> bool:
    return bool(abs(one - other) <= _SAME * max(1, abs(one)))


@functools.lru_cache(maxsize=4096)
def _value_at(text: str, at: int) -> Any:
    """The expression's value to 40 digits at one point, None where it has none there."""
    expression = _parsed(text)
    if not isinstance(expression, sympy.Expr):
        return None
    named = {symbol: point(symbol.name, at) for symbol in expression.free_symbols}
    values = {symbol: sympy.Rational(value.numerator, value.denominator) for symbol, value in named.items()}
    return _number(expression.subs(values) if values else expression)


def _number(expression: Any) -> Any:
    # N() leaves a limit alone and sums numerically; both have exact values. Integrals stay: quadrature is faster.
    if expression.has(sympy.Limit, sympy.Sum, sympy.Product):
        expression = expression.doit(integrals=False)
    value = sympy.N(expression, _DIGITS)
    unfinished = value.has(sympy.Integral, sympy.Sum, sympy.Limit)
    if unfinished or not (value.is_number and value.is_finite):
        return None
    real, imaginary = value.as_real_imag()
    return numeric.CONTEXT.mpc(str(real), str(imaginary))


def _constant_ratio(gold: str, answer: str) -> Any:
    """The constant c with gold = c·answer at every point, None where there is none."""
    known = numeric.program(gold) is not None and numeric.program(answer) is not None
    value_at = numeric.value_at if known else _value_at
    ratios = []
    for at in range(len(POINTS)):
        one, other = value_at(gold, at), value_at(answer, at)
        if one is not None and other is not None and min(abs(one), abs(other)) > _SAME:
            ratios.append(one / other)
    return ratios[0] if len(ratios) >= 3 and all(_near(ratio, ratios[0]) for ratio in ratios) else None
