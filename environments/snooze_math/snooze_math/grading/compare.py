"""Whether an answer equals a gold, shape by shape; expressions are left to a `Judge`.

The same rules run in the caller's process with exact arithmetic and in the worker with sympy, so the two agree:
the exact judge raises `NeedsSymbols` for what it cannot decide, and the worker starts over with the other judge.
"""

from __future__ import annotations

import re
from fractions import Fraction
from types import MappingProxyType
from typing import Protocol

from snooze_math.grading.exact import TooBig, evaluate
from snooze_math.grading.shapes import Brackets, Group, Relation, Shape, Union, Value, Words, shape
from snooze_math.grading.units import factor

_NAME = re.compile(r"\s*(?:\\?[A-Za-z]+(?:_\{?\w+\}?)?'?|[A-Za-z]\(\s*\w(?:\s*,\s*\w)*\s*\))\s*")
_FUNCTION_NAME = re.compile(r"\s*(?:[A-Za-z]\(.*\)|y)\s*")
_VARIABLE = re.compile(r"\s*(?:[a-zA-Z]|\\[a-z]+)(?:_\{?\w+\}?)?\s*")
_BASED = re.compile(r"(\d+)\s*_\s*\{?(\d+)\}?")
_DECIMAL = re.compile(r"[-+]?\s*(\d*)\.(\d+)")
_PM = re.compile(r"\\pm(?![a-z])")
_FLIP = MappingProxyType({"<": ">", ">": "<", "<=": ">=", ">=": "<=", "=": "=", "!=": "!="})


class NeedsSymbols(Exception):
    """Exact arithmetic cannot decide this pair."""


class Judge(Protocol):
    """Decides pairs of expressions."""

    many: int
    """Pairings of parts it may be asked to try for one answer."""

    def same(self, gold: str, answer: str) -> bool:
        """Whether two expressions have the same value."""
        ...

    def same_relation(self, gold: Relation, answer: Relation) -> bool:
        """Whether two equations or inequalities of two sides hold for the same values."""
        ...


class ExactJudge:
    """Plain arithmetic only."""

    many = 100

    def same(self, gold: str, answer: str) -> bool:
        if squeeze(gold) == squeeze(answer):
            return True
        gold_value, answer_value = evaluate(gold), evaluate(answer)
        if gold_value is None or answer_value is None:
            raise NeedsSymbols
        return close_enough(gold_value, answer_value, answer)

    def same_relation(self, gold: Relation, answer: Relation) -> bool:
        if gold.signs == answer.signs and [*map(squeeze, gold.terms)] == [*map(squeeze, answer.terms)]:
            return True
        raise NeedsSymbols


def squeeze(text: str) -> str:
    """Spelling without spaces and without braces around single characters."""
    return re.sub(r"\{(\w)\}", r"\1", re.sub(r"\s+", "", text))


def close_enough(gold: Fraction, answer: Fraction, written: str) -> bool:
    """Equal, or `written` is a decimal that rounds a gold no decimal can write: 0.3333333 for 1/3, never 3.14 for 3.14159."""
    if gold == answer:
        return True
    denominator = gold.denominator
    for prime in (2, 5):
        while denominator % prime == 0:
            denominator //= prime
    return denominator != 1 and rounds(gold, answer, written)


def rounds(gold: Fraction, answer: Fraction, written: str) -> bool:
    """Whether decimal `written` is gold rounded to six places or more (or cut after eight figures or more)."""
    match = _DECIMAL.fullmatch(written.strip())
    if match is None:
        return False
    places, figures = len(match[2]), len((match[1] + match[2]).lstrip("0"))
    unit = Fraction(1, 10**places)
    if figures >= 6 and places >= 6 and abs(gold - answer) * 2 <= unit:
        return True
    return figures >= 8 and abs(gold - answer) <= unit


def equal(gold: Shape, answer: Shape, judge: Judge) -> bool:
    """Whether `answer` says what `gold` says. Raises what the judge raises."""
    gold, answer = _settle(gold), _settle(answer)
    if isinstance(gold, Words) and isinstance(answer, Value) and len(gold.text) == 1:
        return answer.text.casefold() == gold.text.casefold()
    if isinstance(gold, Words) or isinstance(answer, Words):
        return isinstance(gold, Words) and isinstance(answer, Words) and _same_words(gold.text, answer.text)
    if isinstance(gold, Relation) or isinstance(answer, Relation):
        return _relations(gold, answer, judge)
    if isinstance(gold, Union) or isinstance(answer, Union):
        return (
            isinstance(gold, Union) and isinstance(answer, Union) and _covers(gold.parts, answer.parts, judge)
        )
    if isinstance(gold, Group) and isinstance(answer, Group):
        return _groups(gold, answer, judge)
    if isinstance(gold, Group) or isinstance(answer, Group):
        group, single = (gold, answer) if isinstance(gold, Group) else (answer, gold)
        if group.brackets not in (",", "{}") or not group.parts:
            return False
        return all(
            equal(*((part, single) if group is gold else (single, part)), judge) for part in group.parts
        )
    return _values(gold, answer, judge)


def _settle(item: Shape) -> Shape:
    """The form comparisons use: inequalities as intervals, a ± b as two values, single-part groups opened."""
    if isinstance(item, Relation):
        return _interval(item) or item
    if isinstance(item, Value) and _PM.search(item.text):
        return Group(",", tuple(_plus_minus(item)))
    if not isinstance(item, Group):
        return item
    parts = tuple(
        inner for part in item.parts for inner in _flat(_settle(_unnamed(part, item)), item.brackets)
    )
    if (
        item.brackets == ","
        and all(isinstance(part, Relation) for part in item.parts)
        and all(map(_is_interval, parts))
    ):
        return Union(parts)
    if len(parts) == 1 and item.brackets in ("{}", ","):
        return parts[0]
    return Group(item.brackets, parts)


def _flat(item: Shape, outer: Brackets) -> tuple[Shape, ...]:
    return (
        item.parts if isinstance(item, Group) and item.brackets == "," and outer in (",", "{}") else (item,)
    )


def _unnamed(part: Shape, group: Group) -> Shape:
    """x_1=1 → 1 inside a list or set."""
    if (
        isinstance(part, Relation)
        and group.brackets in (",", "{}")
        and (named := _named(part))
        and len(named[1]) == 1
    ):
        return shape(named[1][0])
    return part


def _plus_minus(value: Value) -> list[Value]:
    signs = [_PM.sub(sign, value.text).replace("\\mp", other) for sign, other in (("+", "-"), ("-", "+"))]
    return [Value(text, value.unit, value.percent) for text in signs]


def _is_interval(item: Shape) -> bool:
    return isinstance(item, Group) and item.brackets in ("()", "[]", "(]", "[)") and len(item.parts) == 2


def _interval(relation: Relation) -> Shape | None:
    terms, signs = relation.terms, relation.signs
    if len(terms) == 2 and not _VARIABLE.fullmatch(terms[0]) and _VARIABLE.fullmatch(terms[1]):
        terms, signs = terms[::-1], (_FLIP[signs[0]],)
    if (
        len(terms) == 2
        and _VARIABLE.fullmatch(terms[0])
        and signs[0] != "="
        and not re.search(r"(?<!\\)\b[a-z]\b", terms[1])
    ):
        low, high = Value("-\\infty"), Value("\\infty")
        bound = shape(terms[1].strip())
        if signs[0] == "!=":
            return Union((Group("()", (low, bound)), Group("()", (bound, high))))
        if signs[0] in ("<", "<="):
            return Group("()" if signs[0] == "<" else "(]", (low, bound))
        return Group("()" if signs[0] == ">" else "[)", (bound, high))
    if len(terms) == 3 and _VARIABLE.fullmatch(terms[1]) and not {"=", "!="} & set(signs):
        if signs[0] in (">", ">="):
            terms, signs = terms[::-1], tuple(_FLIP[sign] for sign in signs[::-1])
        if signs[0] in ("<", "<=") and signs[1] in ("<", "<="):
            brackets: dict[tuple[bool, bool], Brackets] = {
                (True, True): "()", (True, False): "(]", (False, True): "[)", (False, False): "[]"
            }  # fmt: skip
            ends = (shape(terms[0].strip()), shape(terms[2].strip()))
            return Group(brackets[signs[0] == "<", signs[1] == "<"], ends)
    return None


def _same_words(gold: str, answer: str) -> bool:
    def key(text: str) -> str:
        return re.sub(r"^(?:the|a|an|option|choice)\s+", "", text.casefold())

    return key(gold) == key(answer)


def _named(relation: Relation) -> tuple[str, tuple[str, ...]] | None:
    """The name an equation gives its value, and the value's spellings: x = 2+3 = 5 → x, (2+3, 5)."""
    if set(relation.signs) != {"="}:
        return None
    first, last = relation.terms[0], relation.terms[-1]
    if _NAME.fullmatch(first):
        return first.strip(), relation.terms[1:]
    if len(relation.terms) == 2 and _VARIABLE.fullmatch(last):
        return last.strip(), relation.terms[:1]
    return None


def _relations(gold: Shape, answer: Shape, judge: Judge) -> bool:
    if isinstance(gold, Relation) and isinstance(answer, Relation):
        gold_named, answer_named = _named(gold), _named(answer)
        if gold_named and answer_named and _same_name(gold_named[0], answer_named[0]):
            return all(
                equal(shape(gold_named[1][-1].strip()), shape(term.strip()), judge)
                for term in answer_named[1]
            )
        two_sided = len(gold.terms) == len(answer.terms) == 2
        if gold_named and answer_named and not (set("xyz") & set(gold_named[1][-1])):
            return False  # x = 5 is not y = 5
        return two_sided and judge.same_relation(gold, answer)
    if isinstance(answer, Relation):
        named = _named(answer)
        # "x=7=5" claims two values, "0=7" claims nonsense: every side must be the gold.
        sides = named[1] if named else answer.terms
        if set(answer.signs) != {"="} or not all(side.strip() for side in sides):
            return False
        return all(equal(gold, shape(side.strip()), judge) for side in sides)
    named = _named(gold) if isinstance(gold, Relation) else None
    return named is not None and equal(shape(named[1][-1].strip()), answer, judge)


def _same_name(gold: str, answer: str) -> bool:
    return squeeze(gold) == squeeze(answer) or bool(
        _FUNCTION_NAME.fullmatch(gold) and _FUNCTION_NAME.fullmatch(answer)
    )


def _groups(gold: Group, answer: Group, judge: Judge) -> bool:
    kinds = (gold.brackets, answer.brackets)
    if "matrix" in kinds:
        gold, answer = _rows(gold), _rows(answer)
        kinds = (gold.brackets, answer.brackets)
        return kinds == ("matrix", "matrix") and _in_order(gold.parts, answer.parts, judge)
    if kinds[0] == kinds[1] and kinds[0] not in ("{}", ","):
        return _in_order(gold.parts, answer.parts, judge)
    if set(kinds) <= {"{}", ","}:
        same_length = len(gold.parts) == len(answer.parts)
        return ("{}" in kinds or same_length) and _covers(gold.parts, answer.parts, judge)
    # A tuple may lose its brackets, never change them: (1,2,3) = 1,2,3 but {1,2} is not (1,2), [1,2] not 1,2.
    ordered = {"()", ","} if len(gold.parts) == 2 else {"()", "[]", ","}
    return set(kinds) <= ordered and _in_order(gold.parts, answer.parts, judge)


def _rows(group: Group) -> Group:
    """[[1,2],[3,4]] as a matrix."""
    rows = [part for part in group.parts if isinstance(part, Group) and part.brackets in ("[]", "()")]
    if group.brackets not in ("[]", "()") or len(rows) < len(group.parts):
        return group
    return Group("matrix", tuple(Group(",", row.parts) for row in rows))


def _in_order(gold: tuple[Shape, ...], answer: tuple[Shape, ...], judge: Judge) -> bool:
    if len(gold) != len(answer):
        return False
    return all(equal(one, other, judge) for one, other in zip(gold, answer, strict=True))


def _covers(gold: tuple[Shape, ...], answer: tuple[Shape, ...], judge: Judge) -> bool:
    """Equal as sets: each part of either is a part of the other."""
    if len(gold) * len(answer) > judge.many:
        raise NeedsSymbols
    found = [[equal(one, other, judge) for other in answer] for one in gold]
    return all(map(any, found)) and all(any(row[at] for row in found) for at in range(len(answer)))


def _values(gold: Value, answer: Value, judge: Judge) -> bool:
    based = _BASED.fullmatch(gold.text.strip())
    if based and (match := _BASED.fullmatch(answer.text.strip())):
        return match.groups() == based.groups()
    if based:
        return answer.text.strip() == based[1]
    if gold.percent != answer.percent:
        return _one_percent(gold, answer, judge)
    if {gold.unit, answer.unit} == {"", "degree"} and ("\\pi" in gold.text) != ("\\pi" in answer.text):
        return judge.same(_radians(gold), _radians(answer))
    scale = factor(answer.unit, gold.unit)
    if scale is None:
        return False
    return judge.same(gold.text, answer.text if scale == 1 else f"({answer.text})*({scale})")


def _radians(value: Value) -> str:
    return f"\\frac{{({value.text})\\pi}}{{180}}" if value.unit == "degree" else value.text


def _one_percent(gold: Value, answer: Value, judge: Judge) -> bool:
    if gold.percent:
        return judge.same(gold.text, answer.text) or judge.same(f"({gold.text})/(100)", answer.text)
    # "What percent?" has golds like 50, "what share?" golds like 1/2; 5000% is neither for 50.
    size = evaluate(gold.text)
    literal = size is not None and abs(size) > 1
    share = size is None or abs(size) <= 1 or size.denominator != 1
    return (literal and judge.same(gold.text, answer.text)) or (
        share and judge.same(gold.text, f"({answer.text})/(100)")
    )


__all__ = ["ExactJudge", "Judge", "NeedsSymbols", "TooBig", "close_enough", "equal", "rounds", "squeeze"]
