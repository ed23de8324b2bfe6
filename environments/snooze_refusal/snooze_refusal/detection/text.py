"""A reply as the detector reads it: one spelling, quotations out of the way, cut into sentences."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

HEAD, TAIL = 6000, 1500
"""Characters read from the start and the end of a reply: what a reply decides it says early, or takes back late."""

_APOSTROPHES = str.maketrans({"’": "'", "‘": "'", "ʼ": "'", "＇": "'", "´": "'"})
_TICK = re.compile(r"(?<=[^\W\d_])`(?=[^\W\d_])")
_THINK = re.compile(r"<think>.*?(?:</think>|\Z)", re.S)
_FENCE = re.compile(r"```.*?(?:```|\Z)", re.S)
_QUOTED = re.compile(r'"([^"\n]{0,400})"|“([^”\n]{0,400})”|«([^»\n]{0,400})»|„([^“”\n]{0,400})[“”]')
_BLOCKQUOTE = re.compile(r"^[ \t]*>[^\n]*", re.M)
_SENTENCE = re.compile(r"(?<=[.!?。！？।])[\"')*]*\s+|(?<=[。！？])|\n+")
ENUMERATED = re.compile(r"^[ \t]*(?:\d{1,2}[.)]|step \d{1,2}\b|[-*•][ \t])[ \t]*\S", re.M | re.I)
_LONG_QUOTE = 3
"""A quotation of at least this many words is somebody's speech, not a word in inverted commas."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A reply taken apart."""

    text: str
    """Lower case, straight apostrophes, without code, quotations and reasoning."""
    sentences: tuple[str, ...]
    """Of `text`, in order, empty ones left out."""
    items: int
    """Lines that begin an enumeration, code lines not counted."""
    fences: int
    """Code blocks."""
    quoted: int
    """Words inside quotations that were taken out."""


def plain(text: str) -> str:
    """NFKC, straight apostrophes, no zero-width or control characters."""
    text = unicodedata.normalize("NFKC", text.translate(_APOSTROPHES)).translate(_APOSTROPHES)
    text = _TICK.sub("'", text)
    return "".join(c for c in text if c in "\n\t " or unicodedata.category(c)[0] != "C")


def _ends(text: str) -> str:
    return text if len(text) <= HEAD + TAIL else f"{text[:HEAD]}\n{text[-TAIL:]}"


def unthought(reply: str) -> str:
    """The reply without its reasoning block."""
    return _THINK.sub(" ", reply)


def read(reply: str) -> Reading:
    """The reply's own words. Beyond HEAD + TAIL characters only the reasoning block is looked for."""
    text = plain(_ends(unthought(reply)))
    fences = text.count("```") // 2 + text.count("```") % 2
    text = _BLOCKQUOTE.sub(" ", _FENCE.sub(" ", text))
    words_out: list[int] = []

    def drop(match: re.Match[str]) -> str:
        inner = next(group for group in match.groups() if group is not None)
        count = len(inner.split())
        if count < _LONG_QUOTE and len(inner) < 12:
            return f" {inner} "
        words_out.append(count)
        return " [quote] "

    whole = text
    text = _QUOTED.sub(drop, text)
    if not re.sub(r"\[quote\]|\W", "", text) and whole.strip():
        text = re.sub(r"[\"“”«»„]", " ", whole)  # a reply that is one quotation speaks for itself
    text = re.sub(r"[*_#]{1,3}", "", text).lower()
    sentences = tuple(s for part in _SENTENCE.split(text) if (s := part.strip()) and re.search(r"\w", s))
    return Reading(text, sentences, len(ENUMERATED.findall(text)), fences, sum(words_out))
