"""Numbers as exact values: digits, number words, ordinals, fractions, magnitudes, Roman numerals.

Works on lower-case tokens. A value is written back as its shortest decimal ("1.50" → "1.5"), a fraction that does
not end as "p/q", an ordinal as "21st"; identifiers such as 007 keep their zeros.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction

from snooze_groundedqa.grading.words import FRACTIONS, MAGNITUDES, ORDINALS, SMALL, TENS

NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d+)?|\.\d+)")
ORDINAL = re.compile(r"(\d+)(?:st|nd|rd|th)")
RATIO = re.compile(r"([-+]?\d{1,9})/(\d{1,9})")
_ROMAN = re.compile(r"(?=[IVXLCDM])M{0,3}(CM|CD|D?C{0,3})(XC|XL|L?X{0,3})(IX|IV|V?I{0,3})")
_ROMAN_VALUES = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}
MAX_DIGITS = 400
"""Longer digit strings are compared as text."""


def value(token: str) -> Fraction | None:
    """The number a token states, None where it states none."""
    if len(token) > MAX_DIGITS:
        return None
    if NUMBER.fullmatch(token):
        digits = token.lstrip("+-")
        padded = len(digits) > 1 and digits[0] == "0" and digits[1] != "."
        return None if padded else Fraction(token)
    if (ratio := RATIO.fullmatch(token)) and int(ratio[2]):
        return Fraction(int(ratio[1]), int(ratio[2]))
    return None


def written(number: Fraction) -> str:
    """The one spelling of a value."""
    bottom = number.denominator
    twos = fives = 0
    while bottom % 2 == 0:
        bottom, twos = bottom // 2, twos + 1
    while bottom % 5 == 0:
        bottom, fives = bottom // 5, fives + 1
    if bottom != 1:
        return f"{number.numerator}/{number.denominator}"
    places = max(twos, fives)
    scaled = abs(number.numerator) * 10**places // number.denominator
    digits = str(scaled).rjust(places + 1, "0")
    text = f"{digits[:-places]}.{digits[-places:]}" if places else digits
    return f"-{text}" if number < 0 else text


def ordinal(number: int) -> str:
    """21 → "21st"."""
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th") if number % 100 not in (11, 12, 13) else "th"
    return f"{number}{ending}"


def roman(word: str) -> int | None:
    """The value of an upper-case Roman numeral in its usual form."""
    if not _ROMAN.fullmatch(word):
        return None
    digits = [_ROMAN_VALUES[char] for char in word]
    return sum(-one if one < after else one for one, after in zip(digits, [*digits[1:], 0], strict=True))


def read_numbers(tokens: Sequence[str]) -> list[str]:
    """Tokens with every number in its one spelling."""
    tokens = _without_articles(tokens)
    out: list[str] = []
    place = 0
    while place < len(tokens):
        token = tokens[place]
        if token == "one" and out[-1:] in (["no"], ["any"], ["every"], ["some"]):
            out.append(token)
            place += 1
            continue
        text, place = _number_at(tokens, place)
        out.append(text)
    return out


def _number_at(tokens: Sequence[str], place: int) -> tuple[str, int]:
    """The number that starts at `place` in its one spelling and where it ends, or the token itself."""
    token = tokens[place]
    if token in ("minus", "negative") and place + 1 < len(tokens):
        text, end = _number_at(tokens, place + 1)
        return (f"-{text}", end) if text[:1].isdigit() and value(text) is not None else (token, place + 1)
    if found := _words(tokens, place):
        number, end, is_ordinal = found
        if is_ordinal:
            return ordinal(int(number)), end
        return _scaled(number, tokens, end)
    if match := ORDINAL.fullmatch(token):
        return (ordinal(int(match[1])) if len(token) < MAX_DIGITS else token), place + 1
    number = value(token)
    if number is None:
        return token, place + 1
    if place + 1 < len(tokens) and "/" in tokens[place + 1] and "/" not in token:
        part = value(tokens[place + 1])  # 3 1/2
        if part is not None and 0 < part < 1:
            return _scaled(number + part, tokens, place + 2)
    return _scaled(number, tokens, place + 1)


def _scaled(number: Fraction, tokens: Sequence[str], end: int) -> tuple[str, int]:
    """Magnitudes, "and a half", "thirds" after a number."""
    if tokens[end : end + 3] == ["and", "a", "half"]:
        number, end = number + Fraction(1, 2), end + 3
    elif end < len(tokens) and tokens[end] in FRACTIONS and 0 < number < 1000 and number.denominator == 1:
        plural = tokens[end].endswith("s") or tokens[end] in ("half", "quarter")
        if plural or number == 1:
            number, end = number / FRACTIONS[tokens[end]], end + 1
    while end < len(tokens) and tokens[end] in MAGNITUDES:
        number, end = number * MAGNITUDES[tokens[end]], end + 1
    return written(number), end


def _words(tokens: Sequence[str], place: int) -> tuple[Fraction, int, bool] | None:
    """(value, end, whether it is an ordinal) of number words such as "one hundred and five" or "twenty-first"."""
    if tokens[place] == "half":
        return Fraction(1, 2), place + 1, False
    run, end = _Run(), place
    while end < len(tokens) and run.take(tokens[end], tokens[end + 1] if end + 1 < len(tokens) else ""):
        end += 1
        if run.is_ordinal:
            return Fraction(run.total + run.current), end, True
    return _with_point(Fraction(run.total + run.current), tokens, end) if end > place else None


class _Run:
    """Number words read so far, each smaller than the one before: "two million" · "five hundred" · "and" · "ten"."""

    def __init__(self) -> None:
        self.total = self.current = 0
        self.last = 10**15
        """Size of the last word; what follows must be smaller."""
        self.is_ordinal = False

    def take(self, token: str, following: str) -> bool:
        """Adds one word; False where the number ended before it."""
        if token == "and":
            goes_on = following in SMALL or following in TENS or following in ORDINALS
            return 100 <= self.last < 10**15 and goes_on
        if token in ORDINALS:
            return self._ordinal(ORDINALS[token])
        number = SMALL.get(token, TENS.get(token))
        if number is not None:
            return self._small(number, size=10 if token in TENS else 1)
        scale = MAGNITUDES.get(token, 0) if len(token) > 3 and token != "dozen" else 0
        if not scale or not self.current:
            return False
        if scale == 100:
            self.current, self.last = self.current * 100, 100
        else:
            self.total, self.current, self.last = self.total + self.current * scale, 0, scale
        return True

    def _ordinal(self, number: int) -> bool:
        if number >= self.last:
            return False
        self.current, self.is_ordinal = self.current + number, True
        return True

    def _small(self, number: int, *, size: int) -> bool:
        if 10 <= self.current < 100 and number >= 10 and self.last < 100:
            self.current = self.current * 100 + number  # nineteen eighty-four
        elif self.last >= 100 or (self.last == 10 and number < 10):
            self.current += number
        else:
            return False
        self.last = size
        return True


def _with_point(number: Fraction, tokens: Sequence[str], place: int) -> tuple[Fraction, int, bool]:
    """The decimals of "one point two five"."""
    digits = ""
    end = place + 1
    if tokens[place : place + 1] == ["point"]:
        while end < len(tokens) and SMALL.get(tokens[end], 10) < 10:
            digits, end = digits + str(SMALL[tokens[end]]), end + 1
    return (
        (number + Fraction(int(digits), 10 ** len(digits)), end, False) if digits else (number, place, False)
    )


def _without_articles(tokens: Sequence[str]) -> list[str]:
    """ "a hundred" → one hundred, "half a million" → 0.5 million, "a half" and a final "a quarter" → one half."""
    out: list[str] = []
    for place, token in enumerate(tokens):
        following = tokens[place + 1] if place + 1 < len(tokens) else ""
        counts = following in MAGNITUDES and len(following) > 3
        part = following in ("half", "third", "quarter") and place + 2 == len(tokens)
        if token in ("a", "an") and counts and out[-1:] == ["half"]:
            out[-1] = "0.5"
        elif token in ("a", "an") and (counts or (part and out[-1:] != ["and"])):
            out.append("one")
        else:
            out.append(token)
    return out
