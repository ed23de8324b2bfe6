"""Whether a quote stands in the passage."""

from __future__ import annotations

from snooze_groundedqa.grading.clean import clean

MAX_QUOTE = 600
"""Characters; a longer quote is a copy of the passage and shows nothing."""


def quoted(quote: str, passage: str) -> bool:
    """Whether a non-empty quote is a span of whole words of the passage, up to Unicode, case and spacing.

    An ellipsis may join spans that come in the passage's order.
    """
    if len(quote) > MAX_QUOTE:
        return False
    text, at = f" {_words(passage)} ", 0
    parts = [words for part in clean(quote).split("...") if (words := _words(part))]
    for words in parts:
        found = text.find(f" {words} ", at)
        if found < 0:
            return False
        at = found + len(words)
    return bool(parts)


def _words(text: str) -> str:
    """Lower-case words and numbers, separated by single spaces; marks inside a word stay."""
    words = (word.strip(".,;:!?\"'()[]") for word in clean(text).casefold().split())
    return " ".join(word for word in words if word)
