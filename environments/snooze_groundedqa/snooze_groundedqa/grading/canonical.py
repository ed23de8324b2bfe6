"""An answer as a sequence of canonical tokens.

text ─→ clean (Unicode) ─→ chunks (spaces) ─→ tokens (punctuation) ─→ numbers ─→ units ─→ dates ─→ articles

Only decoration is dropped: quotes, brackets and marks around a word, apostrophes inside one, a leading article. What
tells answers apart stays: 1.5, -5, C++, A-, 12:30, AT&T's parts, accents.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from snooze_groundedqa.grading.clean import clean
from snooze_groundedqa.grading.dates import numeric_date, read_dates
from snooze_groundedqa.grading.numbers import ORDINAL, read_numbers, roman, value
from snooze_groundedqa.grading.words import (
    BEFORE_ROMAN,
    CURRENCY_SIGNS,
    MAGNITUDES,
    MONTHS,
    ROMAN_LOOKALIKES,
    UNITS,
)

MAX_ANSWER = 500
"""Characters an answer may have and still be compared by more than spelling."""

_SIGNS = "|".join(re.escape(sign) for sign in sorted(CURRENCY_SIGNS, key=len, reverse=True))
_AMOUNT = r"[-+]?\d{1,40}(?:,\d{3}){0,9}(?:\.\d{1,40})?"
_MONEY = re.compile(
    rf"(?P<minus>-?)(?P<sign>{_SIGNS})\s?(?P<amount>{_AMOUNT})\s?(?P<scale>(?:thousand|million|billion|trillion|mn|bn|tn|mil|[kmb])\b)?",
    re.I,
)
_MONEY_AFTER = re.compile(rf"(?P<amount>{_AMOUNT})\s?(?P<sign>[€£¥₹₽₩$¢])")
_CODE_BEFORE = re.compile(rf"\b(?P<sign>USD|EUR|GBP|JPY|AUD|CAD|CHF|INR)\s(?P<amount>{_AMOUNT})", re.I)
_SCALES = {"m": "million", "b": "billion", "k": "thousand"}
_GROUPED = re.compile(
    r"(?<![\d.,'])[-+]?\d{1,3}(?:(?:,\d{3})+|(?:'\d{3})+|(?: \d{3})+)(?![\d,]|'\d)(?!\.\d*[,'])"
)
_FEET = re.compile(r"(\d+)'\s?(\d{1,2})(?:\"|'')?(?![\d'])")
_PHRASES = (
    (re.compile(r"\bper cent\b"), "percent"),
    (re.compile(r"\b(?:degrees?|deg|°) (celsius|centigrade|fahrenheit)\b"), r"\1"),
    (re.compile(r"° ?([cf])\b"), r" °\1"),
    (re.compile(r"\b(?:square|sq) (?:kilomet(?:er|re)s?|km)\b"), "km^2"),
    (re.compile(r"\b(?:square|sq) (?:met(?:er|re)s?|m)\b"), "m^2"),
    (re.compile(r"\b(?:square|sq) (?:miles?|mi)\b"), "mi^2"),
    (re.compile(r"\b(?:square|sq) (?:feet|foot|ft)\b"), "ft^2"),
    (re.compile(r"\bcubic met(?:er|re)s?\b"), "m^3"),
    (re.compile(r"\b(?:kilomet(?:er|re)s?|km) (?:per|an) hour\b"), "km/h"),
    (re.compile(r"\bmet(?:er|re)s? per second\b"), "m/s"),
    (re.compile(r"\bmiles (?:per|an) hour\b"), "mph"),
    (re.compile(r"\b(?:us|american) dollars?\b"), "usd"),
    (re.compile(r"\b(australian|canadian|hong kong) dollars?\b"), lambda m: {"a": "aud", "c": "cad", "h": "hkd"}[m[1][0]]),
    (re.compile(r"\bpounds sterling\b"), "gbp"),
    (re.compile(r"(?<=\d)( ?)([kcm]?m|mi|ft)([23])\b"), r"\1\2^\3"),
    (re.compile(r"(?<![^\W_])(?:no\.?|number|#)\s?(?=\d)"), "no "),
)  # fmt: skip
_OPENING, _CLOSING = "\"'([{<*_", "\"')]}>.,;:!?_"
_ARTICLES = frozenset(("the", "a", "an"))
_BEFORE_A = frozenset(
    ("is", "was", "are", "were", "be", "became", "as", "with", "has", "had", "have", "like", "and", "or")
)
_BEFORE_THE = _BEFORE_A | frozenset(
    ("of", "in", "at", "on", "from", "for", "to", "by", "during", "since", "between", "near", "under", "over")
)
_SPLIT = re.compile(r"(?<=[^\W\d_])-+(?=[^\W_])|(?<=\d)-+(?=[^\W\d_])")
_RANGE = re.compile(r"([-+]?[\d.:]+)-([-+]?[\d.:]+)(%|°[cf]?)?")
_NUMBER_UNIT = re.compile(r"([-+]?\d+(?:\.\d+)?(?:/\d+)?)([^\W\d_]+(?:[/^][^\W_]+)?|%|°[cf]?)")
_LETTER_DIGIT = re.compile(r"(?<=[^\W\d_])(?=\d)|(?<=\d)(?=[^\W\d_])")


@lru_cache(maxsize=4096)
def canonical(text: str, *, numerals: bool = True) -> tuple[str, ...]:
    """The tokens of an answer of at most MAX_ANSWER characters; () where nothing but decoration is left.

    `numerals` reads upper-case Roman numerals as numbers; without it "World War II" equals "world war ii".
    """
    text = clean(text[:MAX_ANSWER])
    text = (
        _money(_roman_numerals(text) if numerals else text)
        .casefold()
        .replace("&", " and ")
        .replace("~", " ~ ")
    )
    text = _GROUPED.sub(lambda m: re.sub("[,' ]", "", m[0]), text)
    text = _FEET.sub(r"\1 ft \2 inch", text)
    for pattern, by in _PHRASES:
        text = pattern.sub(by, text)
    tokens = [token for chunk in text.split(" ") for token in _tokens(chunk)]
    tokens = _units(read_numbers(tokens))
    return tuple(_without_articles(_plain_months(read_dates(tokens))))


def _roman_numerals(text: str) -> str:
    """Upper-case numerals as digits: "World War II" → "World War 2"; single letters only after a word that counts."""
    words = text.split(" ")
    for place, word in enumerate(words):
        core = word.strip(".,;:!?\"'()")
        counted = place > 0 and words[place - 1].lower().strip("\"'(") in BEFORE_ROMAN
        if core in ROMAN_LOOKALIKES or not core.isupper() or not (len(core) > 1 or counted):
            continue
        if (number := roman(core)) is not None:
            words[place] = word.replace(core, str(number))
    return " ".join(words)


def _money(text: str) -> str:
    """Currency after the amount, and no dollar sign: an amount without a currency is in dollars as readily."""

    def after(match: re.Match[str]) -> str:
        found = match.groupdict()
        currency = CURRENCY_SIGNS.get(found["sign"].lower(), found["sign"].lower())
        scale = (found.get("scale") or "").lower()
        return f" {found.get('minus') or ''}{found['amount']} {_SCALES.get(scale, scale)} {currency} "

    for pattern in (_MONEY, _MONEY_AFTER, _CODE_BEFORE):
        text = pattern.sub(after, text)
    return " ".join(text.split())


def _tokens(chunk: str) -> Iterator[str]:
    """What one space-free chunk says, decoration dropped."""
    if not chunk or chunk == "-":
        yield from chunk
        return
    chunk = _strip(chunk)
    if date := numeric_date(chunk):
        yield date
        return
    for part in _SPLIT.split(chunk):
        if bounds := _RANGE.fullmatch(part):
            yield from (bounds[1], "-", bounds[2], *filter(None, [bounds[3]]))
        else:
            for piece in re.split(r"[,;](?=\S)", part):
                yield from _piece(_strip(piece))


def _strip(chunk: str) -> str:
    chunk = chunk.lstrip(_OPENING)
    if len(chunk) > 1 and not chunk.endswith(("c*", "a*")):
        chunk = chunk.rstrip(_CLOSING + "*")
    else:
        chunk = chunk.rstrip(_CLOSING)
    # "1960's" is the decade; any other apostrophe is a matter of taste, except between digits.
    chunk = re.sub(r"(?<=\d)'(?=s$)", "", chunk)
    return re.sub(r"(?<!\d)'|'(?!\d)", "", chunk)


def _piece(piece: str) -> Iterator[str]:
    """Digits and letters apart: 10km, F16, 50%; ordinals, decades, times and words with signs stay whole."""
    if not piece:
        return
    if re.fullmatch(r"\d+0s|\d+(?:st|nd|rd|th)|[-+]?[\d.,:/]+", piece):
        yield piece
    elif quantity := _NUMBER_UNIT.fullmatch(piece):
        yield from (quantity[1], quantity[2])
    elif re.fullmatch(r"[^\W_]+", piece):
        yield from _LETTER_DIGIT.split(piece)
    else:
        yield piece


def _units(tokens: Sequence[str]) -> list[str]:
    """One spelling for the unit right after a number; the dollar is dropped."""
    out: list[str] = []
    for token in tokens:
        after_number = bool(out) and (value(out[-1]) is not None or out[-1] in MAGNITUDES)
        unit = UNITS.get(token) if after_number else None
        if unit is None:
            out.append(token)
        elif unit != "usd":
            out.append(unit)
    return out


def _plain_months(tokens: Sequence[str]) -> list[str]:
    """Leading "in", "on", "at" before a date, a number or an ordinal says nothing."""
    if len(tokens) > 1 and tokens[0] in ("in", "on", "at"):
        rest = tokens[1:]
        first = rest[1] if rest[0] == "the" and len(rest) > 1 else rest[0]
        if first[0] in "@0123456789" or first in MONTHS or ORDINAL.match(first):
            return list(rest)
    return list(tokens)


def _without_articles(tokens: Sequence[str]) -> list[str]:
    """Without leading articles where words remain, and without articles after a preposition or a form of "be"."""
    leading = len(tokens) > 1 and tokens[0] in _ARTICLES and any(t not in _ARTICLES for t in tokens[1:])
    kept = list(tokens[:1]) if not leading else []
    for before, token, following in zip(tokens, tokens[1:], [*tokens[2:], ""], strict=False):
        after = _BEFORE_THE if token == "the" else _BEFORE_A
        if not (token in _ARTICLES and before in after and following):
            kept.append(token)
    return [token for token in kept if token != "-"]
