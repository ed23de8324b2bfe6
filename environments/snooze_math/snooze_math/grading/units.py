"""Units an answer may carry: known ones convert (5 hours = 300 minutes), unknown words are labels."""

from __future__ import annotations

import re
from fractions import Fraction
from types import MappingProxyType

_FAMILIES = MappingProxyType(
    {
        "length": {"mm": "1/1000", "millimeter": "1/1000", "cm": "1/100", "centimeter": "1/100", "m": "1", "meter": "1", "metre": "1",
                   "km": "1000", "kilometer": "1000", "kilometre": "1000", "inch": "127/5000", "inche": "127/5000",
                   "foot": "381/1250", "feet": "381/1250", "ft": "381/1250", "yard": "1143/1250", "mile": "201168/125"},
        "time": {"second": "1", "sec": "1", "s": "1", "minute": "60", "min": "60", "hour": "3600", "hr": "3600", "h": "3600",
                 "day": "86400", "week": "604800"},
        "mass": {"mg": "1/1000", "g": "1", "gram": "1", "kg": "1000", "kilogram": "1000", "ton": "1000000", "tonne": "1000000"},
        "money": {"cent": "1/100", "dollar": "1", "usd": "1", "buck": "1"},
        "volume": {"ml": "1/1000", "milliliter": "1/1000", "l": "1", "liter": "1", "litre": "1"},
        "angle": {"degree": "1", "deg": "1"},
    }
)  # fmt: skip
KNOWN = MappingProxyType(
    {unit: (family, Fraction(size)) for family, units in _FAMILIES.items() for unit, size in units.items()}
)
_POWER = re.compile(r"\^?\{?([23])\}?$")


def canonical(words: str) -> str:
    """ "Centimeters^{2}" → "centimeter^2"; "" where nothing is left."""
    words = words.strip(" .,;").lower()
    power = ""
    if match := _POWER.search(words):
        words, power = words[: match.start()].strip(), f"^{match[1]}"
    for word, exponent in (("square ", "^2"), ("sq ", "^2"), ("sq. ", "^2"), ("cubic ", "^3")):
        if words.startswith(word):
            words, power = words[len(word) :], exponent
    words = words if words in KNOWN else words[:-1] if words.endswith("s") and len(words) > 2 else words
    return words + power if words else ""


def factor(answer: str, gold: str) -> Fraction | None:
    """What turns a number in `answer` units into `gold` units; None where the two cannot be compared."""
    if not answer or not gold or answer == gold:
        return Fraction(1)
    (answer_base, answer_power), (gold_base, gold_power) = _split(answer), _split(gold)
    from_, to = KNOWN.get(answer_base), KNOWN.get(gold_base)
    if from_ is None or to is None:
        # "3 apples" against "3 red apples": labels, comparable where they share a word.
        return Fraction(1) if set(answer.split()) & set(gold.split()) else None
    if from_[0] != to[0] or answer_power != gold_power:
        return None
    return (from_[1] / to[1]) ** answer_power


def _split(unit: str) -> tuple[str, int]:
    base, _, power = unit.partition("^")
    return base, int(power or 1)
