"""One spelling of what Unicode lets people write in many; inner punctuation stays, case stays.

NFKC folds full-width forms, ligatures and Roman-numeral letters, but it also turns 10² into 102, 3½ into 31/2 and
drops nothing invisible; those are taken first.
"""

from __future__ import annotations

import re
import unicodedata
from types import MappingProxyType

_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
_SUPERSCRIPT_RUN = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+")
_SAME = MappingProxyType(
    {
        "‐": "-", "‑": "-", "‒": "-", "–": "-", "—": "-", "―": "-", "−": "-", "﹘": "-", "⁃": "-",
        "’": "'", "‘": "'", "‛": "'", "ʼ": "'", "`": "'", "´": "'", "′": "'", "ʻ": "'",
        "“": '"', "”": '"', "„": '"', "‟": '"', "«": '"', "»": '"', "″": '"', "「": '"', "」": '"', "『": '"', "』": '"',
        "⁄": "/", "∕": "/", "。": ".", "、": ",", "，": ",", "；": ";", "×": "x", "º": "°",
    }
)  # fmt: skip
_DROPPED = frozenset("™®©℠")
_ACRONYMS = (
    re.compile(r"(?<![^\W_])(?:[^\W\d_]\.){2,}(?![^\W\d_])"),  # U.S., p.m., D.C.
    re.compile(r"(?<![^\W_])[A-Z](?:\.[A-Z])+\b\.?"),  # U.S
    re.compile(r"(?<![^\W_])[A-Za-z]\.(?: [A-Za-z]\.)+"),  # J. K.
    re.compile(r"\b(?:Ph\. ?D|M\.? ?Sc|B\.? ?Sc|Ed\. ?D)\b\.?", re.I),
)
_SPACES = re.compile(r"\s+")


def clean(text: str) -> str:
    """`text` with one kind of dash, quote, digit and space, and acronyms without dots. Linear, never raises."""
    if not text.isascii():
        text = _SUPERSCRIPT_RUN.sub(lambda m: "^" + m[0].translate(_SUPERSCRIPTS), text)
        text = unicodedata.normalize("NFKC", "".join(_one(char) for char in text))
        text = "".join(_after(char) for char in text)
    text = _SPACES.sub(" ", text.replace("`", "'")).strip()
    for acronym in _ACRONYMS:
        text = acronym.sub(lambda m: m[0].replace(".", "").replace(" ", ""), text)
    return text


def _one(char: str) -> str:
    """What NFKC would get wrong, before it."""
    if char in _SAME:
        return _SAME[char]
    if char in _DROPPED:
        return ""
    if unicodedata.decomposition(char).startswith("<fraction>"):
        return " " + unicodedata.normalize("NFKC", char).replace("⁄", "/")
    return char


def _after(char: str) -> str:
    """One character of the NFKC form: unified signs, ASCII digits, nothing invisible."""
    if char.isascii():
        return char if char.isprintable() or char.isspace() else " "
    if char in _SAME:
        return _SAME[char]
    category = unicodedata.category(char)
    if category == "Nd":
        return str(unicodedata.digit(char))
    return "" if category in ("Cf", "Cc", "Co") else char
