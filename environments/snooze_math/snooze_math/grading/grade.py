"""One verdict per reply.

reply ─→ final answer ─→ same spelling? ─→ plain arithmetic? ─→ bomb? ─→ grading pool (sympy, math-verify)
             │ none          │ correct          │ decided            │ refused       │ value, hang or crash
             └─ wrong        └─                 └─ microseconds      └─ wrong        └─ hang in the answer: wrong
                                                                                       in the gold: unknown
"""

from __future__ import annotations

from snooze_kit.pool import Grading, GradingPool, default_pool
from snooze_kit.verdict import Verdict

from snooze_math.grading.bombs import refusal, unlike
from snooze_math.grading.clean import clean
from snooze_math.grading.compare import ExactJudge, NeedsSymbols, equal, squeeze
from snooze_math.grading.exact import TooBig, evaluate
from snooze_math.grading.extract import final_answer, stated
from snooze_math.grading.shapes import Shape, read, shape, unmark

SYMBOLIC = "snooze_math.grading.symbolic:equal_symbolic"
"""The grader the pool's workers import."""
MAX_ANSWER = 3000
"""Characters an answer may have and still be compared by more than spelling."""
MAX_PROSE = 300
"""Characters an answer may have and still be a sentence that states the answer."""


def grade(gold: str, response: str, *, pool: GradingPool | None = None) -> Verdict:
    """Whether the final answer of `response` equals `gold`. Blocks, bounded in time, safe from any thread."""
    decided = decide(gold, response)
    if isinstance(decided, Verdict):
        return decided
    return _verdict((pool or default_pool()).call(SYMBOLIC, *decided))


async def grade_async(gold: str, response: str, *, pool: GradingPool | None = None) -> Verdict:
    """The same without blocking the event loop."""
    decided = decide(gold, response)
    if isinstance(decided, Verdict):
        return decided
    return _verdict(await (pool or default_pool()).call_async(SYMBOLIC, *decided))


def decide(gold: str, response: str) -> Verdict | tuple[str, str]:
    """The verdict where no symbols are needed, else the (gold, answer) pair for the pool. Microseconds."""
    if not unmark(clean(gold[:MAX_ANSWER])):
        return Verdict(False, "the gold is empty, no answer can match it")
    answer = final_answer(response)
    if answer is None or not answer.strip():
        return Verdict(False, "the reply commits to no answer")
    return _decide(gold, answer, may_be_prose=True)


def _decide(gold: str, answer: str, *, may_be_prose: bool) -> Verdict | tuple[str, str]:
    if squeeze(gold) == squeeze(answer):
        return Verdict(True, "written as the gold")
    if len(answer) > MAX_ANSWER or len(gold) > MAX_ANSWER:
        return Verdict(False, f"refused: an answer of {len(answer)} characters")
    gold_clean, answer_clean = clean(gold), clean(answer)
    if not unmark(answer_clean):
        return Verdict(False, "the answer is empty")
    if squeeze(gold_clean) == squeeze(answer_clean):
        return Verdict(True, "written as the gold")
    prose = may_be_prose and len(answer_clean) <= MAX_PROSE and "answer" in answer_clean.lower()
    if prose and (inner := stated(unmark(answer_clean))) is not None:
        return _decide(gold, inner, may_be_prose=False)  # \boxed{\text{The answer is 460}}
    return _compare(gold_clean, answer_clean) or (gold, answer)


def _compare(gold: str, answer: str) -> Verdict | None:
    try:
        same = equal(shape(gold), shape(answer), ExactJudge())
        return Verdict(same, "equal by exact arithmetic" if same else "not equal by exact arithmetic")
    except NeedsSymbols:
        pass
    except TooBig as error:
        return _too_big(gold, answer, str(error))
    except RecursionError:
        return Verdict(False, "refused: nested too deep")
    if (why := unlike(gold, answer) or refusal(answer)) is not None:
        return Verdict(False, f"refused: {why}")
    return _too_big(gold, answer, why) if (why := refusal(gold)) is not None else None


def _too_big(gold: str, answer: str, why: str) -> Verdict:
    try:
        evaluate(answer)
    except TooBig:
        return Verdict(False, f"refused: {why}")
    # The gold is the giant. A small plain number is not it; anything else nobody can tell.
    try:
        small = evaluate(answer) is not None
    except TooBig:
        small = False
    return Verdict(
        False if small else None,
        f"the gold cannot be evaluated ({why}) and the answer is written differently",
    )


def _verdict(grading: Grading) -> Verdict:
    if grading.status == "value":
        return Verdict(
            bool(grading.value), f"{'equal' if grading.value else 'not equal'} by sympy and math-verify"
        )
    if grading.stage == "answer" and grading.status != "starved":
        return Verdict(
            False,
            f"the answer made the grader {grading.status}: {grading.detail}",
            hang=grading.status == "hang",
        )
    return Verdict(None, f"the grader failed on the gold or on its own: {grading.status}, {grading.detail}")


__all__ = ["SYMBOLIC", "Shape", "decide", "grade", "grade_async", "read"]
