"""What kind of thing an answer is: words, a value with a unit, a set, a tuple, intervals, a relation, a matrix.

`read` never evaluates. It only takes text apart, so it is the same code in the caller's process and in the worker.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from snooze_math.grading.clean import TEXT_CLOSE, TEXT_OPEN, clean
from snooze_math.grading.units import canonical

Brackets = Literal["()", "[]", "(]", "[)", "{}", ",", "matrix"]


@dataclass(frozen=True, slots=True)
class Words:
    """An answer in words or a choice letter, compared without case and punctuation."""

    text: str


@dataclass(frozen=True, slots=True)
class Value:
    """An expression, perhaps with a unit."""

    text: str
    unit: str = ""
    percent: bool = False


@dataclass(frozen=True, slots=True)
class Group:
    """Several parts; `brackets` "," is a bare list, "matrix" holds one Group(",") per row."""

    brackets: Brackets
    parts: tuple[Shape, ...]


@dataclass(frozen=True, slots=True)
class Union:
    """Sets joined by \\cup."""

    parts: tuple[Shape, ...]


@dataclass(frozen=True, slots=True)
class Relation:
    """terms[0] signs[0] terms[1] …"""

    terms: tuple[str, ...]
    signs: tuple[str, ...]


Shape = Words | Value | Group | Union | Relation

MAX_PARTS = 200

_NOTHING = re.compile(
    r"\\emptyset|\\\{\s*\\\}|(?:there (?:is|are) )?no (?:real |integer |such )?(?:solutions?|values?|roots?)(?: exists?)?|(?:the )?empty set|\\text\{\}",
    re.I,
)
_REALS = re.compile(r"\\reals|(?:the set of )?(?:all )?(?:the )?real numbers?", re.I)
_BUILDER = re.compile(r"\\\{\s*[a-zA-Z]\s*(?:\\in\s*\\reals\s*)?(?:\||:|\\mid(?![a-z]))\s*(.*)\\\}", re.S)
_MATRIX = re.compile(r"\\begin\s*\{([bpvBV]?matrix|array)\}(?:\{[clr|]*\})?(.*)\\end\s*\{\1\}", re.S)
_CHOICE = re.compile(r"\(?\s*([A-Z])\s*\)?\s*(?:[.:)]\s*\S.*)?", re.S)
_TIME = re.compile(r"(\d{1,2})(?::(\d{2}))?\s*([ap])\.?\s*m\.?", re.I)
_IN = re.compile(r"\s*[a-zA-Z]\s*\\in(?![a-zA-Z])\s*")
_SIGN = re.compile(r"\\le(?![a-z])|\\ge(?![a-z])|\\ne(?![a-z])|<=|>=|!=|[<>=]")
_SIGNS = {
    "\\le": "<=",
    "\\ge": ">=",
    "\\ne": "!=",
    "<=": "<=",
    ">=": ">=",
    "!=": "!=",
    "<": "<",
    ">": ">",
    "=": "=",
}
_PERCENT = re.compile(r"\s*(?:%|\bper\s?cent(?:age points?)?\b)\s*$", re.I)
_UNIT_TEXT = re.compile(
    rf"(?P<value>.*[^\s])\s*{TEXT_OPEN}(?P<unit>[^{TEXT_OPEN}{TEXT_CLOSE}]*){TEXT_CLOSE}\s*(?P<power>\^\s*\{{?[23]\}}?)?\s*$",
    re.S,
)
_UNIT_WORD = re.compile(
    r"(?P<value>.*[\d)}])\s*(?P<unit>(?<![\\a-zA-Z{])(?:[a-zA-Z]{2,}\.?|(?<=\s)[a-zA-Z](?=/))(?:[ /][a-zA-Z]+)*)\s*(?P<power>\^\s*\{?[23]\}?)?\s*$",
    re.S,
)
_NOT_UNITS = re.compile(r"\b(?:or|and|not|isn't|except|but|mod|wrong|if|when|for)\b", re.I)
_FUNCTIONS = {
    "sin",
    "cos",
    "tan",
    "cot",
    "sec",
    "csc",
    "log",
    "ln",
    "exp",
    "sqrt",
    "pi",
    "lim",
    "max",
    "min",
    "gcd",
    "lcm",
    "arcsin",
    "arccos",
    "arctan",
}
_CONNECTOR = re.compile(rf"\s*{TEXT_OPEN}?\s*\b(?:or|and)\b\s*{TEXT_CLOSE}?\s*", re.I)
_TWO_LETTERS = re.compile(r"(?<![\\a-zA-Z])[A-Za-z]{2,}")


def read(raw: str) -> Shape:
    """The shape of one answer or gold, raw as extracted."""
    return shape(clean(raw))


def unmark(text: str) -> str:
    """`text` without the marks of `\\text{…}`."""
    return text.replace(TEXT_OPEN, " ").replace(TEXT_CLOSE, " ").strip()


def shape(text: str) -> Shape:
    """The shape of text that is already clean."""
    plain = unmark(text)
    if _NOTHING.fullmatch(plain):
        return Group("{}", ())
    if _REALS.fullmatch(plain):
        return Group("()", (Value("-\\infty"), Value("\\infty")))
    if match := _BUILDER.fullmatch(text):
        return shape(match[1].strip())
    if words := _words(text, plain):
        return words
    if match := _MATRIX.fullmatch(plain):
        return _matrix(match[2])
    if match := _IN.match(text):
        text = text[match.end() :]
    parts = _split(text, "\\cup")
    if len(parts) > 1:
        return Union(tuple(shape(part.strip()) for part in parts))
    return _bracketed(text) or _list(text) or _relation(text) or _value(text)


def _words(text: str, plain: str) -> Words | None:
    if match := _TIME.fullmatch(plain):
        return Words(f"{int(match[1])}:{match[2] or '00'}{match[3]}m".lower())
    if match := _CHOICE.fullmatch(plain):
        return Words(match[1])
    bare = re.sub(r"[\s.,;:!?'\"()-]+", " ", plain).strip()
    letters_only = re.fullmatch(r"[A-Za-z][A-Za-z ]*", bare)
    marked = text.startswith(TEXT_OPEN) and text.rstrip().endswith(TEXT_CLOSE) and text.count(TEXT_OPEN) == 1
    if not marked and re.fullmatch(r"[a-z]{2}", bare) and bare not in ("no", "am", "pm"):
        return None  # a product of two variables
    if (
        letters_only
        and (len(bare) > 1)
        and (marked or _TWO_LETTERS.search(bare))
        and not _only_functions(bare)
    ):
        return Words(bare.casefold())
    return None


def _only_functions(bare: str) -> bool:
    return all(word in _FUNCTIONS or len(word) == 1 for word in bare.split())


def _matrix(body: str) -> Group:
    rows = [row for row in re.split(r"\\\\", body) if row.strip()]
    return Group(
        "matrix", tuple(Group(",", tuple(shape(cell.strip()) for cell in row.split("&"))) for row in rows)
    )


def _bracketed(text: str) -> Shape | None:
    text = text.strip()
    for opening, closings in (("\\{", ("\\}",)), ("{", ("}",)), ("(", (")", "]")), ("[", (")", "]"))):
        for closing in closings:
            if not (text.startswith(opening) and text.endswith(closing)) or not _encloses(text):
                continue
            inside = text[len(opening) : -len(closing)]
            brackets: Brackets = "{}" if closing in ("}", "\\}") else opening + closing  # type: ignore[assignment]
            parts = _split(inside, ",")
            if len(parts) > 1 or opening == "\\{":
                return Group(brackets, tuple(shape(part.strip()) for part in parts[:MAX_PARTS]))
            if brackets in ("()", "[]", "{}"):
                return shape(inside.strip())
    return None


def _list(text: str) -> Group | None:
    pieces = [piece for part in _split(text, ",", ";") for piece in _CONNECTOR.split(part)]
    pieces = [piece.strip() for piece in pieces if piece.strip()]
    if len(pieces) < 2:
        return None
    return Group(",", tuple(shape(piece) for piece in pieces[:MAX_PARTS]))


def _relation(text: str) -> Relation | None:
    depths = _depths(text)
    found = [match for match in _SIGN.finditer(text) if depths[match.start()] == 0]
    if not found:
        return None
    bounds = [0, *(edge for match in found for edge in match.span()), len(text)]
    terms = tuple(unmark(text[start:end]) for start, end in zip(bounds[::2], bounds[1::2], strict=True))
    return Relation(terms, tuple(_SIGNS[match[0]] for match in found))


def _value(text: str) -> Value:
    stripped = _PERCENT.sub("", unmark(text))
    if stripped != unmark(text):
        return Value(stripped.strip(), percent=True)
    for pattern in (_UNIT_TEXT, _UNIT_WORD):
        match = pattern.fullmatch(text.strip())
        if match and not _NOT_UNITS.search(match["unit"]) and match["unit"].strip().lower() not in _FUNCTIONS:
            inner = _value(match["value"].strip())
            unit = canonical(match["unit"] + (match["power"] or ""))
            return Value(inner.text, unit=unit, percent=inner.percent)
    if match := re.fullmatch(r"(.*\d)\s+([mgshl])(\s*\^\s*\{?[23]\}?)?", text.strip()):
        return Value(match[1], unit=canonical(match[2] + (match[3] or "")))
    return Value(unmark(text))


def _encloses(text: str) -> bool:
    """Whether the first bracket is closed by the last character."""
    return all(depth > 0 for depth in _depths(text)[:-1])


def _depths(text: str) -> list[int]:
    """Bracket depth at each character; an opening bracket already counts, a closing one counts last."""
    depths: list[int] = []
    depth, escaped = 0, False
    for at, char in enumerate(text):
        if escaped:
            depth -= char == "}"
            escaped = False
        elif char == "\\":
            escaped = True
            depth += text[at + 1 : at + 2] == "{"
        elif char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
        depths.append(depth)
    return depths


def _split(text: str, *separators: str) -> list[str]:
    """Pieces between separators that stand outside every bracket."""
    if not any(separator in text for separator in separators):
        return [text]
    depths, pieces, start, at = _depths(text), [], 0, 0
    while at < len(text):
        separator = next((s for s in separators if text.startswith(s, at)), None)
        if separator is not None and depths[at] == 0:
            pieces.append(text[start:at])
            at = start = at + len(separator)
        else:
            at += 1
    return [*pieces, text[start:]]
