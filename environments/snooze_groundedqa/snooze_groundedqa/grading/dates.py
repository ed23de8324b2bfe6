"""Dates, times and ranges as single tokens: "July 4th, 1776" and "4 July 1776" become one and the same.

Reads what `read_numbers` wrote: lower-case tokens, numbers in one spelling.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from snooze_groundedqa.grading.numbers import NUMBER, ORDINAL
from snooze_groundedqa.grading.words import MONTHS

_ISO = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})")
_NUMERIC = re.compile(r"(\d{1,2})([/.-])(\d{1,2})\2(\d{4})")
_TIME = re.compile(r"(\d{1,2})(?::(\d{2}))?")
_ERAS = {"ad": "ad", "ce": "ad", "bc": "bc", "bce": "bc"}


def numeric_date(chunk: str) -> str | None:
    """The date token of 1776-07-04, 4.7.1776 or 7/13/1776; None where day and month could be swapped."""
    if iso := _ISO.fullmatch(chunk):
        return _date(int(iso[1]), int(iso[2]), int(iso[3]))
    if not (found := _NUMERIC.fullmatch(chunk)):
        return None
    first, second, year = int(found[1]), int(found[3]), int(found[4])
    if found[2] == "." or first > 12 or first == second:
        return _date(year, second, first)
    return _date(year, first, second) if second > 12 else None


def read_dates(tokens: Sequence[str]) -> list[str]:
    """Tokens with dates, clock times, eras and ranges joined."""
    return _pass(_pass(_pass(list(tokens), _date_at), _time_or_era_at), _range_at)


def _pass(tokens: list[str], read: Callable[[list[str], int], tuple[str, int] | None]) -> list[str]:
    out: list[str] = []
    place = 0
    while place < len(tokens):
        text, place = read(tokens, place) or (tokens[place], place + 1)
        out.append(text)
    return out


def _date(year: int | None, month: int | None, day: int | None) -> str | None:
    if (month is not None and not 1 <= month <= 12) or (day is not None and not 1 <= day <= 31):
        return None
    parts = (
        "-" if year is None else str(year),
        "-" if month is None else f"{month:02}",
        "" if day is None else f"{day:02}",
    )
    return "@" + "/".join(parts)


def _day(token: str) -> int | None:
    digits = match[1] if (match := ORDINAL.fullmatch(token)) else token
    return int(digits) if digits.isdigit() and len(digits) <= 2 and 1 <= int(digits) <= 31 else None


def _year(token: str) -> int | None:
    return int(token) if token.isdigit() and 3 <= len(token) <= 4 else None


def _date_at(tokens: list[str], place: int) -> tuple[str, int] | None:
    """July 4 1776 · 4 July 1776 · the 4th of July · July 1776 · July, where the word is no other."""
    start, day = place, None
    if tokens[place : place + 1] == ["the"] and place + 1 < len(tokens):
        place += 1
    if place + 1 < len(tokens) and (day := _day(tokens[place])) is not None:
        place += 1
        if tokens[place] == "of" and place + 1 < len(tokens):
            place += 1
    elif place != start:
        return None
    month = MONTHS.get(tokens[place])
    if month is None:
        return None
    place += 1
    if day is None and place < len(tokens) and (day := _day(tokens[place])) is not None:
        place += 1
    if tokens[place : place + 1] == ["of"] and place + 1 < len(tokens) and _year(tokens[place + 1]):
        place += 1
    year = _year(tokens[place]) if place < len(tokens) else None
    place += year is not None
    if day is None and year is None and tokens[start] in ("may", "march", "mar"):
        return None
    token = _date(year, month, day)
    return None if token is None else (token, place)


def _time_or_era_at(tokens: list[str], place: int) -> tuple[str, int] | None:
    following = tokens[place + 1] if place + 1 < len(tokens) else ""
    token = tokens[place]
    if (time := _TIME.fullmatch(token)) and following in ("am", "pm", "oclock"):
        end = place + (
            3 if following == "oclock" and tokens[place + 2 : place + 3] in (["am"], ["pm"]) else 2
        )
        half = tokens[end - 1] if tokens[end - 1] != "oclock" else ""
        return f"{int(time[1])}:{time[2] or '00'}{half}", end
    if token.isdigit() and following in _ERAS:
        return f"{token}{_ERAS[following]}", place + 2
    if token in _ERAS and following.isdigit():
        return f"{following}{_ERAS[token]}", place + 2
    return None


def _range_at(tokens: list[str], place: int) -> tuple[str, int] | None:
    """3-5 · 3 to 5 · from 3 to 5 · between 3 and 5 · 1990-95."""
    opening = tokens[place]
    at = place + (opening in ("from", "between"))
    if at + 2 >= len(tokens):
        return None
    low, link, high = tokens[at : at + 3]
    links = ("and",) if opening == "between" else ("-", "to", "through", "until", "till")
    if link not in links or not (_bound(low) and _bound(high)):
        return None
    if len(low) == 4 and len(high) == 2 and low.isdigit() and high.isdigit() and low[2:] < high:
        high = low[:2] + high
    return f"{low}..{high}", at + 3


def _bound(token: str) -> bool:
    return (
        bool(NUMBER.fullmatch(token))
        or token.startswith("@")
        or bool(re.fullmatch(r"\d+(?:ad|bc)|\d+:\d\d(?:am|pm)?", token))
    )
