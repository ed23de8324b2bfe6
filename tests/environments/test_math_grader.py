"""Laws of the math grader: what an answer is, what equals what, and that nothing hangs, raises or guesses."""

from __future__ import annotations

import random
import threading
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from snooze_kit.pool import Grading, GradingPool
from snooze_kit.verdict import Verdict
from snooze_math import grade
from snooze_math.grading.bombs import refusal
from snooze_math.grading.clean import clean
from snooze_math.grading.exact import TooBig, evaluate
from snooze_math.grading.extract import final_answer
from snooze_math.grading.grade import SYMBOLIC, decide


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        (r"first \boxed{5}, no: \boxed{7}", "7"),
        (r"\boxed{\boxed{7}}", "7"),
        (r"\boxed{\frac{1}{2}}", r"\frac{1}{2}"),
        (r"\boxed{5} The final answer is 7.", "7"),
        (r"\boxed{7} and the answer is correct.", "7"),
        (r"<think>\boxed{9}</think> \boxed{7}", "7"),
        ("#### 7", "7"),
        ("<answer>7</answer>", "7"),
        ("**Answer:** 7", "7"),
        ("The answer is 7, because 3 + 4 = 7.", "7"),
        ("She makes $18.", "18"),
        ("3 + 4 = 7", "3 + 4 = 7"),
        ("So 3 + 4 = 7", "7"),
        ("7", "7"),
    ],
)
def test_the_last_commitment_is_the_answer(reply, answer):
    assert final_answer(reply).strip(" $") == answer


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "   ",
        "I do not know.",
        r"\boxed{5",
        r"<think>\boxed{7}",
        "It is not 7.",
        "Maybe 5 or 7?",
        "Call 7 people at 9.",
    ],
)
def test_what_commits_to_nothing_has_no_answer(reply):
    assert final_answer(reply) is None


SAME = [
    ("7", r"7.0"), ("7", r"\text{7 apples}"), ("-3", "−3"), ("7", "７"), ("1234", "1,234"), ("1234", r"1\,234"),
    ("0.5", r"\frac12"), (r"\frac{7}{2}", "3½"), ("50\\%", "50"), ("0.5", r"50\%"), (r"5\text{ hours}", r"300\text{ minutes}"),
    ("90^\\circ", "90"), (r"\frac{\pi}{4}", r"45^\circ"), ("1,2", "2,1"), (r"\{1,2\}", "1,2"), ("(1,2)", r"\left(1, 2\right)"),
    ("x=5", "5"), ("5", "x=5"), ("5", "5 = x"), ("7", "3+4=7"), (r"x \ge 3", r"[3,\infty)"), ("1<x<2", "(1,2)"), (r"2<x", r"x>2"),
    (r"1 \pm \sqrt{2}", r"1+\sqrt2, 1-\sqrt2"), ("y=2x+1", "2x-y+1=0"), (r"(a+5)(b+2)", r"ab+2a+5b+10"), (r"\text{(B)}", "B. 17"),
    ("52_8", "52_{8}"), (r"\sqrt2", "1.41421356"), (r"(-\infty,2)\cup(3,\infty)", r"x<2 \text{ or } x>3"), ("x+y<3", "3>y+x"),
    (r"\begin{pmatrix}1/2\\3\end{pmatrix}", r"\begin{bmatrix}0.5\\3\end{bmatrix}"), (r"\text{no solution}", r"\varnothing"),
    (r"\mathbb{R}", r"\text{all real numbers}"), (r"(3,\infty)", r"\{x \mid x>3\}"), (r"\frac{1}{3}", r"0.\overline{3}"), ("12000", "1.2 x 10^4"),
    (r"\begin{pmatrix}1&2\\3&4\end{pmatrix}", "[[1,2],[3,4]]"), ("xy", "yx"), ("2i", "(1+i)^2"), (r"\sqrt{8}", "sqrt(8)"), ("3R^2", "3 R^2"),
    (r"\frac12", r"1 \over 2"), (r"\{1,2\}", "{2,1}"), ("(1,2)", r"\langle 1,2 \rangle"), ("18", r"18\text{ cm}^2"), ("2", r"\sqrt[3]{8}"),
]  # fmt: skip
DIFFERENT = [
    ("7", "8"), ("7", "7.0000001"), ("7", r"\{5,7\}"), ("7", "5 or 7"), ("7", "x=7=5"), ("7", "0=7"), ("7", "7x"), ("7", "70\\%"),
    ("50", "5000\\%"), (r"\frac13", "0.333"), (r"\sqrt2", "1.41"), (r"\pi", "3.14159"), ("3.14", r"\pi"), ("(1,2)", "(2,1)"),
    ("(1,2)", "[1,2]"), ("(1,2)", r"\{1,2\}"), ("[1,2)", "(1,2]"), ("3", "x>3"), (r"x\ge3", "x>3"), ("x=5", "y=5"), ("5!", "5"),
    (r"5\text{ hours}", r"5\text{ minutes}"), (r"5\text{ hours}", r"5\text{ meters}"), ("1,2,3", "1,2"), ("n^2", "k^2"),
    ("1000", "10,00"), ("1234", "1.234"), ("52_8", "52_7"), (r"\infty", r"-\infty"), ("A", "B"), (r"\text{east}", "west"),
    ("1+2i", "1-2i"), ("7", r"7\ldots"), ("7", "7 5"), (r"\text{odd}", r"\text{not odd}"), ("x^2=4", "x=2"), ("x<3", "x>3"),
    (r"\begin{pmatrix}1\\2\end{pmatrix}", r"\begin{pmatrix}2\\1\end{pmatrix}"), ("2", "2^2"), ("12", r"1 \cdot 2"),
    ("1,2", "1,2,2"), ("3R^2", "3r^2"), ("7", r"\text{not }7"), ("7", r"7 \text{ is wrong}"), ("7", "7?"), ("x", "x+10^{-25}"), ("7", r"7 \pm 1"),
]  # fmt: skip


@pytest.mark.parametrize(("gold", "answer"), SAME)
def test_the_same_value_is_correct_however_it_is_written(gold, answer):
    verdict = grade(gold, f"So it is $\\boxed{{{answer}}}$.")
    assert verdict.correct is True, verdict


@pytest.mark.parametrize(("gold", "answer"), DIFFERENT)
def test_another_value_is_wrong_however_close(gold, answer):
    verdict = grade(gold, f"So it is $\\boxed{{{answer}}}$.")
    assert verdict.correct is False, verdict


BOMBS = [
    "9^{9^{9}}", "9**9**9", "9^9^9", "10^{10^{10}}", r"(10^{8})!", "99999999!", "((7!)!)!", r"\prod_{n=1}^{10^8} n", r"7^{9!}",
    r"\sum_{n=1}^{1000000000} \frac{1}{n^2}", "9" * 5000, r"\binom{10^9}{10^8}", r"x^{10^{9}}", "(" * 3000 + "7" + ")" * 2999,
    r"\int_0^1 \frac{\sin(x^5+\ln(x+1))}{x^7+\sqrt{x+2}} dx", r"(x+1)^{99999}", r"\sqrt{" * 400 + "7" + "}" * 400, "1e999999999",
    r"\lim_{n\to\infty} \left(1+\frac{1}{n}\right)^{n^{n^n}}", "2^" * 500 + "2", r"\frac{1}{" * 900 + "7" + "}" * 900,
]  # fmt: skip


@pytest.mark.parametrize("bomb", BOMBS)
def test_an_answer_made_to_hang_the_grader_is_wrong(bomb):
    assert grade("7", f"\\boxed{{{bomb}}}").correct is False


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_gold_that_cannot_be_evaluated_still_equals_itself(bomb):
    assert grade(bomb, f"\\boxed{{{bomb}}}").correct is True


def test_a_hang_caused_by_the_answer_is_wrong_and_says_so():
    class Hanging(GradingPool):
        def call(self, grader, *args, deadline_s=None):
            return Grading(status="hang", stage="answer", detail="killed after 2.0 s")

    verdict = grade(r"\sqrt{2}", r"\boxed{\sqrt{x}}", pool=Hanging())
    assert (verdict.correct, verdict.hang) == (False, True)


@pytest.mark.parametrize("status", ["hang", "crash"])
@pytest.mark.parametrize("stage", ["", "started", "gold"])
def test_a_failure_before_the_answer_is_looked_at_is_unknown_never_wrong(status, stage):
    class Failing(GradingPool):
        def call(self, grader, *args, deadline_s=None):
            return Grading(status=status, stage=stage, detail="no memory")

    verdict = grade(r"\sqrt{2}", r"\boxed{\sqrt{x}}", pool=Failing())
    assert verdict.correct is None
    assert "no memory" in verdict.reason


def test_a_machine_too_busy_to_grade_is_unknown_never_wrong():
    class Starved(GradingPool):
        def call(self, grader, *args, deadline_s=None):
            return Grading(status="starved", stage="answer", detail="killed after 2.8 s")

    assert grade(r"\sqrt{2}", r"\boxed{\sqrt{x}}", pool=Starved()).correct is None


def test_a_gold_math_verify_cannot_read_is_unknown():
    assert grade(r"\frac{1}{", r"\boxed{x+1}").correct is None


def test_a_pool_whose_deadline_passes_lays_the_hang_at_the_answers_door():
    with GradingPool(deadline_s=0.4) as pool:
        pool.warm(SYMBOLIC, "x", "y")
        slow = r"\int_0^{\infty} \frac{\sin(x^{11}+\ln(x^3+1))}{x^7+\sqrt{x+2}+e^{\sin x}} dx"
        grading = pool.call(SYMBOLIC, "7", slow)
    assert (grading.status, grading.stage) in {("hang", "answer"), ("starved", "answer")}


def test_grading_is_the_same_from_many_threads():
    verdicts: list[bool | None] = []

    def work(number: int) -> None:
        verdicts.append(grade(rf"{number}\sqrt{{2}}", rf"\boxed{{\sqrt{{{2 * number * number}}}}}").correct)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert verdicts == [True] * 8


numbers = st.fractions(min_value=-(10**6), max_value=10**6, max_denominator=10**4)


@settings(max_examples=200, deadline=None)
@given(numbers, numbers, st.sampled_from("+-*/"))
def test_exact_arithmetic_is_fraction_arithmetic(left, right, sign):
    text = f"\\frac{{{left.numerator}}}{{{left.denominator}}} {sign} ({right.numerator}/{right.denominator})"
    if sign == "/" and right == 0:
        assert evaluate(text) is None
        return
    want = {"+": left + right, "-": left - right, "*": left * right, "/": left / right if right else None}[
        sign
    ]
    assert evaluate(text) == want


@settings(max_examples=200, deadline=None)
@given(st.decimals(min_value=-(10**9), max_value=10**9, places=4, allow_nan=False), st.booleans())
def test_every_spelling_of_a_decimal_is_that_decimal(value, grouped):
    text = f"{value:,}" if grouped else str(value)
    assert grade(text, f"\\boxed{{{Fraction(value)}}}").correct is True
    assert grade(text, f"\\boxed{{{value + Decimal('0.0001')}}}").correct is False


@settings(max_examples=100, deadline=None)
@given(st.integers(-(10**12), 10**12), st.integers(-(10**12), 10**12))
def test_two_integers_are_equal_only_if_they_are(gold, answer):
    assert grade(str(gold), f"The answer is {answer}.").correct is (gold == answer)


PAIRS = [
    "7",
    "0.5",
    r"\frac{1}{2}",
    "1,234",
    "3:4",
    "2^{10}",
    "1024",
    "50\\%",
    "x=7",
    "(1,2)",
    "1,2",
    r"\{2,1\}",
    "0.3333333",
    r"\frac13",
    "5!",
    "120",
]


def test_the_fast_path_and_the_worker_agree_on_every_pair():
    with GradingPool(deadline_s=5.0) as pool:
        for gold in PAIRS:
            for answer in PAIRS:
                fast = decide(gold, f"\\boxed{{{answer}}}")
                assert isinstance(fast, Verdict)
                assert pool.call(SYMBOLIC, gold, answer).value is fast.correct, (gold, answer)


PIECES = [
    "\\boxed{", "}", "{", "\\frac", "^", "_", "7", "-", ",", "(", ")", "[", "]", "\\", "$", "\\text{", "or", " ", "%", "!", "=", "<", "\\sqrt",
    "\\begin{pmatrix}", "\\end{pmatrix}", "&", "\\\\", "\\pm", "x", "\\cup", "\\infty", "answer is", "####", "<answer>", "</answer>", ".", "e9", "\u200b",
    "−", "９", "½", "\n", "\\{", "\\}", "\\le", ":", "<think>", "</think>", "\ue000", "\x00", "\ud800",
]  # fmt: skip


def test_no_reply_makes_the_caller_raise():
    rng = random.Random(20)
    for _ in range(3000):
        reply = "".join(rng.choices(PIECES, k=rng.randint(1, 40)))
        assert isinstance(decide(rng.choice(PAIRS), reply), Verdict | tuple)
        clean(reply)
        refusal(reply)


def test_no_pair_makes_the_worker_crash_on_the_answer_or_outlive_its_deadline():
    rng = random.Random(21)
    with GradingPool(deadline_s=2.0) as pool:
        for _ in range(120):
            answer = "".join(rng.choices(PIECES[2:30], k=rng.randint(2, 12)))
            decided = decide(r"\sqrt{2}", f"\\boxed{{{answer}}}")
            if isinstance(decided, tuple):
                grading = pool.call(SYMBOLIC, *decided)
                assert grading.stage == "answer"
                assert grading.seconds < 6.1


@pytest.mark.parametrize(
    "reply",
    [
        "7 " * 200_000,
        "{" * 300_000,
        "\\boxed{" * 50_000,
        "$1$ and " * 60_000,
        "a" * 2_000_000,
        "<think>" * 90_000,
    ],
)
def test_a_reply_of_any_length_is_read_from_its_end(reply):
    assert decide("8", reply) == decide("8", reply[-200_000:])


@pytest.mark.parametrize("text", ["9^9^9^9", "10^{100000}", "9999!", "1e99999", "9" * 4001])
def test_values_beyond_the_digit_budget_are_refused_not_computed(text):
    with pytest.raises(TooBig, match=r"power|factorial|literal"):
        evaluate(text)


@pytest.mark.shared
def test_hand_judged_cases_are_at_least_95_percent_right_without_one_false_accept(shared_lines):
    cases = shared_lines("cases/math_grading.jsonl")
    wrong = [
        (case, verdict)
        for case in cases
        if (verdict := grade(case["gold"], case["response"])).correct != case["correct"]
    ]
    assert [case["id"] for case, verdict in wrong if verdict.correct] == []
    assert len(wrong) <= 0.05 * len(cases), [case["id"] for case, _ in wrong]


@pytest.mark.shared
def test_verdicts_agree_with_the_published_ones_on_99_5_percent_of_the_gsm8k_model_solutions(shared_lines):
    judged = [
        (
            row["question"],
            entry["is_correct"],
            grade(row["ground_truth"].rpartition(" ")[2], entry["solution"]).correct,
        )
        for row in shared_lines("data/math/gsm8k_example_model_solutions.jsonl")
        for entry in row.values()
        if isinstance(entry, dict)
    ]
    assert len(judged) == 4 * 1319
    disagreements = [question for question, published, ours in judged if published is not ours]
    assert len(disagreements) <= 0.005 * len(judged), disagreements
