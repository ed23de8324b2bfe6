"""The part of grading that needs sympy and math-verify; runs in a worker of the grading pool only."""

from __future__ import annotations

import functools
import logging
import re
import zlib
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import sympy
from latex2sympy2_extended import NormalizationConfig
from math_verify import LatexExtractionConfig, parse, verify

from snooze_math.grading.compare import close_enough, equal, rounds, squeeze
from snooze_math.grading.exact import evaluate
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
_SAME = sympy.Float(10) ** -30
_POINTS = (
    (Fraction(7, 11), Fraction(13, 9)), (Fraction(3, 5), Fraction(31, 17)), (Fraction(19, 23), Fraction(5, 7)),
    (Fraction(-7, 11), Fraction(13, 9)), (Fraction(-19, 13), Fraction(-3, 7)), (Fraction(2), Fraction(1)),
)  # fmt: skip
"""Offset and step per point: a symbol's value is offset + step·(its name's hash in [0, 1))."""


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
            return _same_value(_parsed(gold), _parsed(_one_imaginary_unit(gold, answer)), answer)
        except Unreadable:
            return False

    def same_relation(self, gold: Relation, answer: Relation) -> bool:
        try:
            gold_gap, answer_gap = (
                _parsed(f"({side.terms[0]})-({side.terms[1]})") for side in (gold, answer)
            )
        except Unreadable:
            return False
        ratio = _constant_ratio(gold_gap, answer_gap)
        if gold.signs == answer.signs == ("=",):
            return ratio is not None
        flipped = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}.get(answer.signs[0])
        return ratio is not None and gold.signs[0] == (answer.signs[0] if ratio > 0 else flipped)


class _Readable:
    """A judge that only finds out whether the gold itself can be read and evaluated."""

    many = 400

    def same(self, gold: str, answer: str) -> bool:
        if evaluate(gold) is None:
            _at_points(_parsed(gold), range(1))
        return True

    def same_relation(self, gold: Relation, answer: Relation) -> bool:
        return self.same(f"({gold.terms[0]})-({gold.terms[1]})", "")


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
    return found[0]


def _same_value(gold: Any, answer: Any, written: str) -> bool:
    if gold == answer:
        return True
    if not (isinstance(gold, sympy.Expr) and isinstance(answer, sympy.Expr)):
        return bool(verify(gold, answer, strict=True, timeout_seconds=None))
    if (
        gold.has(sympy.oo, sympy.zoo, sympy.nan)
        or answer.has(sympy.zoo, sympy.nan)
        or answer in (sympy.oo, -sympy.oo)
    ):
        return False
    if not gold.free_symbols and not answer.free_symbols:
        return _same_constant(_number(gold), _number(answer), written)
    pairs = list(
        zip(_at_points(gold, range(len(_POINTS))), _at_points(answer, range(len(_POINTS))), strict=True)
    )
    judged = [(one, other) for one, other in pairs if one is not None and other is not None]
    if len(judged) >= 3:
        return all(_near(one, other) for one, other in judged)
    return bool(verify(gold, answer, strict=True, timeout_seconds=None))


def _same_constant(gold: Any, answer: Any, written: str) -> bool:
    if gold is None or answer is None:
        return False
    if _near(gold, answer):
        return True
    if not gold.is_real or evaluate(written) is None:
        return False
    return rounds(Fraction(str(gold)), evaluate(written) or Fraction(0), written)


def _near(one: Any, other: Any) -> bool:
    return bool(abs(one - other) <= _SAME * max(1, abs(one)))


def _number(expression: Any) -> Any:
    # N() leaves a limit alone and sums numerically; both have exact values. Integrals stay: quadrature is faster.
    value = sympy.N(
        expression.doit(integrals=False)
        if expression.has(sympy.Limit, sympy.Sum, sympy.Product)
        else expression,
        _DIGITS,
    )
    return (
        value
        if value.is_number and value.is_finite and not value.has(sympy.Integral, sympy.Sum, sympy.Limit)
        else None
    )


def _at_points(expression: Any, points: range) -> list[Any]:
    symbols = sorted(expression.free_symbols, key=lambda symbol: symbol.name)
    values = []
    for at in points:
        offset, step = _POINTS[at]
        # Values hang on the name alone: n²+n and k²+k must differ.
        names = {
            symbol: offset + step * Fraction(zlib.crc32(symbol.name.encode()) % 997, 997)
            for symbol in symbols
        }
        exact = {
            symbol: sympy.Rational(value.numerator, value.denominator) for symbol, value in names.items()
        }
        values.append(_number(expression.subs(exact)) if exact else _number(expression))
    return values


def _constant_ratio(gold: Any, answer: Any) -> Any:
    ratios = []
    for one, other in zip(
        _at_points(gold, range(len(_POINTS))), _at_points(answer, range(len(_POINTS))), strict=True
    ):
        if one is None or other is None or abs(one) < _SAME or abs(other) < _SAME:
            continue
        ratios.append(one / other)
    return ratios[0] if len(ratios) >= 3 and all(_near(ratio, ratios[0]) for ratio in ratios) else None
