"""Whether an answer says what the gold says: the normaliser alone, without fields, tokens or passages."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from snooze_groundedqa.grading.canonical import MAX_ANSWER, canonical
from snooze_groundedqa.grading.clean import clean
from snooze_groundedqa.grading.words import AMBIGUOUS

ABSTENTIONS = frozenset(
    (
        "unanswerable", "no answer", "not answerable", "unanswered", "no answer found", "no answer given", "no answer possible",
        "there is no answer", "cannot be answered", "can not be answered", "cant be answered", "cannot answer", "can not answer",
        "cant answer", "not enough information", "insufficient information", "not stated", "not mentioned", "not given",
        "not specified", "not provided", "not in the passage", "not in the text", "not in passage", "unknown", "n/a",
        "i dont know", "i do not know", "dont know", "does not say", "the passage does not say", "the text does not say",
        "the question is unanswerable", "the question cannot be answered", "it cannot be answered", "this question is unanswerable",
    )
)  # fmt: skip
"""Whole answers that say there is no answer; a lone article, a full stop and nothing at all do not."""
_LIST = re.compile(r"\s*(?:;|,(?!\d)(?:\s+(?:and|&)\s)?|\s(?:and|&)\s)\s*", re.I)
_CHOICE = re.compile(r"\s*(?:,(?!\d)(?:\s+or\s)?|\sor\s)\s*", re.I)


def match(gold: str, answer: str) -> bool:
    """Whether `answer` is `gold` up to spelling; gold "" means unanswerable, which only an abstention matches.

    Order of a list does not count, order of words does. Linear in both, never raises, any thread.
    """
    if not gold.strip():
        return abstains(answer)
    if gold == answer:
        return bool(answer.strip())
    if len(gold) > MAX_ANSWER or len(answer) > MAX_ANSWER:
        return False
    wanted, given = canonical(gold), canonical(answer)
    if not wanted or not given:
        return not wanted and not given and clean(gold) == clean(answer)
    if _same(wanted, given) or _same_items(gold, answer):
        return True
    return _same(canonical(gold, numerals=False), canonical(answer, numerals=False))


def abstains(answer: str) -> bool:
    """Whether the whole answer says, in words of its own, that there is none."""
    if len(answer) > 200:
        return False
    words = clean(answer).casefold().replace("'", "").strip(' .,;:!"()[]{}<>*_-')
    return " ".join(words.split()) in ABSTENTIONS


def f1(gold: str, answer: str) -> float:
    """Token overlap as in SQuAD (Rajpurkar et al. 2016), over canonical tokens; 0 where either has none."""
    if len(gold) > MAX_ANSWER or len(answer) > MAX_ANSWER:
        return 0.0
    wanted, given = Counter(canonical(gold)), Counter(canonical(answer))
    shared = (wanted & given).total()
    return 2 * shared / (wanted.total() + given.total()) if shared else 0.0


def _same(one: Sequence[str], other: Sequence[str]) -> bool:
    return len(one) == len(other) and all(
        a == b or frozenset((a, b)) in AMBIGUOUS for a, b in zip(one, other, strict=True)
    )


def _same_items(gold: str, answer: str) -> bool:
    """Equal lists in any order: "France, Germany" and "Germany and France". An ordered pair in brackets is no list."""
    if re.search(r"[()\[\]{}]", gold) or re.search(r"[()\[\]{}]", answer):
        return False
    for separator in (_LIST, _CHOICE):
        wanted, given = _items(gold, separator), _items(answer, separator)
        if len(wanted) == len(given) > 1 and sorted(wanted) == sorted(given):
            return True
    return False


def _items(text: str, separator: re.Pattern[str]) -> list[tuple[str, ...]]:
    return [tokens for item in separator.split(clean(text)) if (tokens := canonical(item))]
