"""The task set verifiers loads as `snooze-math`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import verifiers.v1 as vf
from pydantic import ConfigDict
from snooze_kit.data import SnoozeTask, SnoozeTaskData
from snooze_kit.verdict import GraderError, Verdict

from snooze_math.config import MathConfig
from snooze_math.grading.grade import grade_async
from snooze_math.rows import arithmetic_rows, source_rows
from snooze_math.sources import Row

SYSTEM_PROMPT = "Solve the problem. Reason briefly, then give the final answer in \\boxed{}."
EXAMPLES = (
    (
        "There are 20 birds on a tree. 8 of them fly away. How many birds are left?",
        "20 - 8 = 12. The answer is 12.",
    ),
    ("A box holds 6 pens. How many pens are in 5 boxes?", "5 * 6 = 30. The answer is 30."),
)
"""Worked problems of the `few_shot` style; written for it, in no data set."""


class MathData(SnoozeTaskData):
    """A problem and its gold."""

    model_config = ConfigDict(frozen=True)

    answer: str = ""
    """The gold, LaTeX or plain, never empty in a loaded set."""
    level: int | None = None
    """Difficulty level in the source's own scale, None = it has none."""
    style: str = "instruct"
    """How the prompt asks: "instruct", "few_shot" or "bare"."""


class MathTask(SnoozeTask[MathData, vf.TaskConfig]):
    """Reward 1 for the gold, 0 for anything else, no reward at all where the grader failed."""

    @vf.metric(priority=1)
    async def grading(self, trace: vf.Trace) -> dict[str, float]:
        """Grades once; the reward reads the verdict. `answered`: a non-empty reply. `grader_hang`: the answer hung the grader."""
        reply = trace.last_reply
        verdict = await grade_async(self.data.answer, reply)
        if verdict.correct is None:
            raise GraderError(f"no verdict for gold {self.data.answer[:80]!r}: {verdict.reason}")
        trace.info["grading"] = {"correct": verdict.correct, "reason": verdict.reason}
        return {"answered": float(bool(reply.strip())), "grader_hang": float(verdict.hang)}

    @vf.reward
    async def correct(self, trace: vf.Trace) -> float:
        """1 where the final answer equals the gold."""
        return float(trace.info["grading"]["correct"])

    async def validate(self, runtime: vf.Runtime) -> bool | None:
        """The gold earns full marks."""
        return (await self.verdict(self.gold_reply())).correct

    async def verdict(self, reply: str) -> Verdict:
        """The grader's word on one reply."""
        return await grade_async(self.data.answer, reply)

    def canonical(self) -> str:
        """Arithmetic: its numbers and signs whatever their order and the wording; others: the prompt."""
        if self.data.dataset != "arithmetic":
            return super().canonical()
        return " ".join(sorted(re.findall(r"\d+|[-+*()]", self.data.prompt_text)))

    def gold_reply(self) -> str:
        wrap = {"instruct": "\\boxed{{{}}}", "few_shot": "The answer is {}.", "bare": "{}"}
        return wrap[self.data.style].format(self.data.answer)


class MathTaskset(vf.Taskset[MathTask, MathConfig]):
    """Problems of one or several sources."""

    @classmethod
    def generator_options(cls, split: str, size: int) -> dict[str, Any]:
        """Options that make `size` problems of the embedded generator, for checks of disjointness and speed."""
        return {"source": "arithmetic", "split": split, "size": size, "levels": [9, 10]}

    def load(self) -> Iterator[MathTask]:
        config = self.config
        for source in config.chosen:
            rows = arithmetic_rows(config) if source == "arithmetic" else source_rows(source, config)
            for row in rows:
                yield MathTask(self._data(source, row), config.task)

    def _data(self, source: str, row: Row) -> MathData:
        style = self.config.style
        return MathData(
            prompt=_prompt(row, style),
            system_prompt=SYSTEM_PROMPT if style == "instruct" else None,
            answer=row.answer,
            dataset=source,
            domain=row.domain,
            level=row.level,
            style=style,
            difficulty_prior=row.prior,
            snooze_factor=self.config.snooze_factors.get(row.domain, self.config.snooze_factor),
            cluster=row.cluster,
        )


def _prompt(row: Row, style: str) -> str:
    if style == "bare":
        return row.bare or row.question
    if style == "few_shot":
        shown = "".join(f"Question: {question}\nAnswer: {answer}\n\n" for question, answer in EXAMPLES)
        return f"{shown}Question: {row.question}\nAnswer:"
    return row.question
