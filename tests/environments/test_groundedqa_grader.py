"""Laws of the QA grader: what a reply commits to, that answering and abstaining exclude each other, that nothing upsets it."""

from __future__ import annotations

import random
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from snooze_groundedqa import ABSTAIN, Verdict, grade
from snooze_groundedqa.grading.evidence import MAX_QUOTE, quoted
from snooze_groundedqa.grading.extract import HEAD, TAIL, read_reply
from snooze_groundedqa.grading.grade import BARE_ABSTAIN, judge

RIGHT = [
    "<answer>Rollo</answer>", "Rollo", "Rollo.", "Answer: Rollo", "**Answer:** Rollo", "Final answer: **Rollo**", "The answer is Rollo.",
    "The passage names him.\n<answer>Rollo</answer>", "<think>UNANSWERABLE? No.</think><answer>Rollo</answer>", "<ANSWER> rollo </ANSWER>",
    "<evidence>under their leader Rollo</evidence>\n<answer>Rollo</answer>", "Answer: <answer>Rollo</answer>", "<answer>Rollo",
    "It may look unanswerable, but it is not.\n<answer>Rollo</answer>", "<answer>Rollo</answer> <answer>Rollo</answer>", "<answer>“Rollo”</answer>",
]  # fmt: skip
WRONG = [
    "", "  \n ", "<answer></answer>", "<answer> . </answer>", "<answer>the</answer>", "<answer>Paris</answer>", "I think it was Rollo or Paris, hard to say.",
    "<answer>UNANSWERABLE</answer>", "UNANSWERABLE", "<answer>Rollo</answer> UNANSWERABLE", "UNANSWERABLE <answer>Rollo</answer>",
    "<answer>Rollo</answer>\n<answer>UNANSWERABLE</answer>", "<answer>UNANSWERABLE</answer>\nAnswer: Rollo", "<answer>Rollo UNANSWERABLE</answer>",
    "<answer>Rollo</answer><answer>Paris</answer>", "<answer>Rollo or Paris</answer>", "<think><answer>Rollo</answer>", "Rollo UNANSWERABLE",
    "<answer>Rollo</answer>" * 30, "Rollo\nis the one", "I don't know.",
]  # fmt: skip


@pytest.mark.parametrize("reply", RIGHT)
def test_the_gold_in_the_field_or_alone_on_one_line_is_right(reply):
    assert grade("Rollo", reply).correct is True, grade("Rollo", reply)
    assert grade(None, reply).correct is False


@pytest.mark.parametrize("reply", WRONG)
def test_anything_else_is_wrong_where_there_is_an_answer(reply):
    verdict = grade("Rollo", reply)
    assert verdict.correct is False
    assert verdict.reason


@pytest.mark.parametrize("gold", [None, "", "  "])
@pytest.mark.parametrize(
    "reply",
    [
        "<answer>UNANSWERABLE</answer>", "UNANSWERABLE", "unanswerable.", "Answer: Unanswerable", "<answer>**UNANSWERABLE**</answer>",
        "The answer is UNANSWERABLE.\n<answer>UNANSWERABLE</answer>", "The passage does not say.\n<answer>UNANSWERABLE</answer>",
    ],
)  # fmt: skip
def test_the_token_alone_abstains_and_is_right_where_there_is_no_answer(gold, reply):
    assert grade(gold, reply).correct is True, grade(gold, reply)


@pytest.mark.parametrize(
    "reply",
    [
        "", "<answer></answer>", "I don't know.", "The question is UNANSWERABLE", "UNANSWERABLE or Rollo", "The answer is Rollo. <answer>UNANSWERABLE</answer>",
        "<answer>Rollo</answer><answer>UNANSWERABLE</answer>", "<answer>UNANSWERABLE, but perhaps Rollo</answer>", "<think>UNANSWERABLE", "?", "no",
    ],
)  # fmt: skip
def test_a_hedge_a_shrug_and_an_answer_beside_the_token_do_not_abstain(reply):
    assert grade(None, reply).correct is False


def test_the_bare_token_is_a_question_mark_alone():
    graded = {
        reply: grade(None, reply, abstain=BARE_ABSTAIN).correct
        for reply in ("?", " ?\n", "7?", "??", "", "7")
    }
    assert graded == {"?": True, " ?\n": True, "7?": False, "??": False, "": False, "7": False}
    assert [grade("7", reply, abstain=BARE_ABSTAIN).correct for reply in ("7", "7?", "?", "77")] == [
        True,
        False,
        False,
        False,
    ]


def test_any_of_several_golds_is_right_and_the_best_f1_counts():
    golds = ("10th and 11th centuries", "in the 10th and 11th centuries")
    assert judge(golds, "<answer>the 10th and 11th centuries</answer>").right
    partial = judge(golds, "<answer>11th centuries</answer>")
    assert not partial.right
    assert partial.f1 == pytest.approx(2 * 2 / (2 + 4))


def test_where_any_answer_will_do_only_silence_and_abstaining_are_wrong():
    assert judge((), "<answer>" + "Well, " * 200 + "</answer>", anything=True).right
    assert not judge((), f"<answer>{ABSTAIN}</answer>", anything=True).right
    assert not judge((), "", anything=True).right


def test_a_field_at_either_end_of_a_huge_reply_is_read_and_a_contradiction_at_the_other_is_seen():
    filler = "word " * (HEAD + TAIL)
    assert grade("Rollo", f"{filler}\n<answer>Rollo</answer>").correct is True
    assert grade("Rollo", f"<answer>Rollo</answer>\n{filler}").correct is True
    assert grade("Rollo", f"<answer>Paris</answer>\n{filler}\n<answer>Rollo</answer>").correct is False


def test_nested_fields_give_the_innermost():
    assert read_reply("<answer><answer>Rollo</answer></answer>").answers == ("Rollo",)


PASSAGE = 'They were descended from Norse ("Norman" comes from "Norseman") raiders who, under their leader Rollo, agreed to swear fealty.'


@pytest.mark.parametrize(
    ("quote", "found"),
    [
        ("under their leader Rollo", True), ("Under  their leader Rollo,", True), ("They were … Rollo", True), ('"Norman" comes from “Norseman”', True),
        ("Rollo, their leader", False), ("der their leader", False), ("Rollo ... They were", False), ("", False), ("...", False), (PASSAGE * 6, False),
    ],
)  # fmt: skip
def test_evidence_counts_only_as_a_span_of_whole_words_of_the_passage(quote, found):
    assert quoted(quote, PASSAGE) is found
    assert len(PASSAGE * 6) > MAX_QUOTE


BOMBS = [
    "<answer>" * 100_000, "<answer></answer>" * 60_000, "Answer: x\n" * 100_000, "the answer is " * 80_000, "(" * 10**6, "1," * 500_000,
    "<answer>" + "one hundred and " * 31 + "</answer>", "<answer>" + "½" * 499 + "</answer>", "<answer>" + "1-" * 249 + "</answer>", "\ud800" * 5000,
    "<answer>" + "A. " * 166 + "</answer>", "<answer>2 " + "million " * 60 + "</answer>", "<answer>" + "9" * 240 + "/" + "9" * 240 + "</answer>",
    "<answer>" + "﷽" * 499 + "</answer>", "-" * 10**6, "* " * 500_000, "\x00\x1b[31m" * 1000, "<answer>" + ", and " * 80 + "</answer>",
]  # fmt: skip


@pytest.mark.parametrize("bomb", BOMBS)
@pytest.mark.parametrize("gold", ["Rollo", "1,000", None])
def test_a_reply_made_to_upset_the_grader_is_wrong(gold, bomb):
    assert grade(gold, bomb).correct is False


def test_random_bytes_decoded_in_any_way_never_raise():
    rng = random.Random(0)
    for _ in range(300):
        data = rng.randbytes(rng.randrange(2000))
        for text in (
            data.decode("latin-1"),
            data.decode("utf-8", "replace"),
            data.decode("utf-8", "surrogateescape"),
        ):
            assert grade("Rollo", f"<answer>{text}</answer>").correct in (True, False)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=80))
def test_every_gold_that_says_something_is_graded_right_against_itself(gold):
    from snooze_groundedqa.rows import gold_is_sound

    if gold_is_sound(gold):
        assert grade(gold, f"<answer>{gold}</answer>").correct is True
        assert grade(gold, f"<answer>{gold}</answer> {ABSTAIN}").correct is False


def test_grading_is_the_same_from_many_threads():
    found: list[Verdict] = []
    threads = [
        threading.Thread(
            target=lambda: found.extend(grade("1,000", "<answer>one thousand</answer>") for _ in range(50))
        )
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 400
    assert {verdict.correct for verdict in found} == {True}
