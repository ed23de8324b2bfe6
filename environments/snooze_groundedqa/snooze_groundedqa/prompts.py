"""How a question is asked in each style."""

from __future__ import annotations

from snooze_groundedqa.grading.grade import ABSTAIN

READ = (
    "Answer the question from the passage alone. Give the answer in as few words as possible, taken from the passage, as "
    f"<answer>...</answer>. If the passage does not answer the question, give <answer>{ABSTAIN}</answer> and no answer "
    "of your own. You may first quote the words that decide it as <evidence>...</evidence>."
)
STAND_ALONE = (
    "Answer the question as <answer>...</answer>. If it cannot be answered, because it rests on something false, leaves "
    f"out what one would need to know or asks for what nobody knows, give <answer>{ABSTAIN}</answer> and no answer."
)
EXAMPLES = (
    (
        "The Old Mill stands in Redford. It was built by Ann Lee in 1790.",
        "Who built the Old Mill?",
        "Ann Lee",
    ),
    (
        "The Old Mill stands in Redford. The Long Barn was sold in 1820.",
        "In what year was the Old Mill sold?",
        ABSTAIN,
    ),
)
"""Worked questions of the `few_shot` style; written for it, in no data set."""


def prompt(passage: str, question: str, style: str) -> str:
    """The user message."""
    if style == "bare":
        return f"{passage};{question}:"
    asked = f"Passage: {passage}\n\nQuestion: {question}" if passage else f"Question: {question}"
    if style == "few_shot":
        shown = "".join(f"Passage: {p}\n\nQuestion: {q}\nAnswer: {a}\n\n" for p, q, a in EXAMPLES)
        return f"{shown}{asked}\nAnswer:"
    return asked


def system_prompt(passage: str, style: str) -> str | None:
    """The rules, told in the `instruct` style only."""
    return None if style != "instruct" else READ if passage else STAND_ALONE
