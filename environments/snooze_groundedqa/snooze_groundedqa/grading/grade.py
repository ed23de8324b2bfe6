"""One judgement per reply.

reply ─→ fields ─→ none, empty or too many: wrong
                ─→ answer and abstention together, or answers that differ: wrong
                ─→ the abstain token alone: abstained ─→ right where nothing can be answered
                ─→ one answer ─→ any gold matches? ─→ right, else wrong, with its F1

Everything is linear in a reply cut to 40,000 characters, so nothing needs a killable worker.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from snooze_kit.verdict import Verdict

from snooze_groundedqa.grading.canonical import MAX_ANSWER, canonical
from snooze_groundedqa.grading.extract import MAX_FIELDS, Reply, read_reply
from snooze_groundedqa.grading.matching import f1, match

ABSTAIN = "UNANSWERABLE"
"""The one word that abstains, in any case, alone in the answer field."""
BARE_ABSTAIN = "?"
"""The same in the bare style."""
MAX_TEXT = 8000
"""Characters of an answer that is not compared with a gold."""

Kind = Literal["answered", "abstained", "nothing"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What a reply did and whether it was right."""

    kind: Kind
    """`answered`: it commits to an answer; `abstained`: to the token alone; `nothing`: to neither, or to both."""
    right: bool
    reason: str
    f1: float = 0.0
    """Best token overlap with a gold; 1 for a right abstention."""
    has_field: bool = False
    evidence: tuple[str, ...] = ()
    """Quotes the reply gave."""


def grade(gold: str | None, response: str, *, abstain: str = ABSTAIN) -> Verdict:
    """Whether a reply is right: it answers `gold`, or abstains where `gold` is None or "".

    Blocks for microseconds to milliseconds, safe from any thread, never raises and never unknown.
    """
    judgement = judge(() if not gold or not gold.strip() else (gold,), response, abstain=abstain)
    return Verdict(judgement.right, judgement.reason)


def judge(
    golds: Sequence[str], response: str, *, abstain: str = ABSTAIN, anything: bool = False
) -> Judgement:
    """`grade` with every gold of a question, () where it has none; `anything`: any answer is as good as another."""
    reply = read_reply(response)
    if (why := _uncommitted(reply, abstain, MAX_TEXT if anything else MAX_ANSWER)) is not None:
        return _judgement("nothing", False, why, reply)
    answer = reply.answers[-1]
    if _is_token(answer, abstain):
        right = not golds and not anything
        reason = "abstains, rightly" if right else "abstains from a question that has an answer"
        return _judgement("abstained", right, reason, reply, score=float(right))
    if anything:
        return _judgement("answered", True, "answers a question that can be answered", reply)
    if not golds:
        return _judgement("answered", False, "answers a question that has no answer", reply)
    if any(match(gold, answer) for gold in golds):
        return _judgement("answered", True, "the answer is the gold", reply, score=1.0)
    score = max(f1(gold, answer) for gold in golds)
    return _judgement("answered", False, f"another answer than the gold (F1 {score:.2f})", reply, score=score)


def _judgement(kind: Kind, right: bool, reason: str, reply: Reply, *, score: float = 0.0) -> Judgement:
    return Judgement(
        kind=kind, right=right, reason=reason, f1=score, has_field=reply.has_field, evidence=reply.evidence
    )


def _uncommitted(reply: Reply, abstain: str, longest: int) -> str | None:
    """Why the reply commits to nothing, None where it commits to an answer or to the token."""
    answers = reply.answers
    if not answers:
        return "the reply has no answer field"
    if len(answers) > MAX_FIELDS:
        return f"{len(answers)} answer fields"
    if not any(answers):
        return "the answer field is empty"
    if any(len(answer) > longest for answer in answers):
        return f"an answer of {max(map(len, answers))} characters"
    tokens = [_is_token(answer, abstain) for answer in answers]
    if not all(tokens):
        said = any(tokens) or any(_contains(answer, abstain) for answer in answers)
        if said or (reply.has_field and _contains(reply.prose, abstain)):
            return "an answer and the abstain token together"
        if any(not canonical(answer) for answer in answers):
            return "the answer field holds no word"
        if any(not match(answers[-1], answer) for answer in answers[:-1]):
            return f"{len(answers)} answers that differ"
        return None
    if any(not _is_token(_first_sentence(claim), abstain) for claim in reply.claims):
        return "an answer and the abstain token together"
    return None


def _is_token(answer: str, abstain: str) -> bool:
    text = answer.strip().strip("\"'“”[](){}")
    return text == abstain or (abstain.isalpha() and text.rstrip(".! ").upper() == abstain.upper())


def _contains(text: str, abstain: str) -> bool:
    """Whether the token stands in the text as written; prose may well call a question unanswerable."""
    if not abstain.isalpha():
        return abstain in text
    return bool(re.search(rf"\b{re.escape(abstain)}\b", text))


def _first_sentence(claim: str) -> str:
    return re.split(r"[.!?](?:\s|$)|,|</?\w+>", claim, maxsplit=1)[0].strip("*_` ")
