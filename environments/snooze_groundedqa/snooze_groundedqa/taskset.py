"""The task set verifiers loads as `snooze-groundedqa`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

import verifiers.v1 as vf
from pydantic import ConfigDict
from snooze_kit.data import SnoozeTask, SnoozeTaskData

from snooze_groundedqa.config import GroundedQAConfig, ScoresConfig
from snooze_groundedqa.grading.evidence import quoted
from snooze_groundedqa.grading.grade import ABSTAIN, BARE_ABSTAIN, Judgement, judge
from snooze_groundedqa.prompts import prompt, system_prompt
from snooze_groundedqa.rows import facts_rows, source_rows
from snooze_groundedqa.sources import Row

ANY_ANSWER = "Here is what is known about it."
"""An answer where any will do."""


class GroundedQAData(SnoozeTaskData):
    """A question, its passage and its golds."""

    model_config = ConfigDict(frozen=True)

    passage: str = ""
    question: str = ""
    answers: tuple[str, ...] = ()
    """Every gold; () on the abstain side, and where any answer will do."""
    answer: str = ""
    """What a right reply says: the first gold, or what abstains."""
    level: int | None = None
    """Difficulty level of the generator, None = the source has none."""
    style: str = "instruct"
    """How the prompt asks: "instruct", "few_shot" or "bare"."""


class GroundedQATask(SnoozeTask[GroundedQAData, ScoresConfig]):
    """Reward 1 for the gold or a right abstention, else what `ScoresConfig` says."""

    @vf.metric(priority=1)
    async def grading(self, trace: vf.Trace) -> dict[str, float]:
        """Grades once; the reward reads the judgement.

        `answered`, `abstained`: what the reply did; `over_abstained`, `hallucinated`: where that was the wrong thing
        to do; `exact`, `f1`: against the best gold; `field`: it used the answer field; `quoted`, `quote_found`: it
        gave evidence, and the passage holds it.
        """
        judgement = self.judgement(trace.last_reply)
        trace.info["grading"] = {
            "right": judgement.right,
            "kind": judgement.kind,
            "reason": judgement.reason,
            "points": self.points(judgement),
        }
        answerable = self.data.side == "answer"
        return {
            "answered": float(judgement.kind == "answered"),
            "abstained": float(judgement.kind == "abstained"),
            "over_abstained": float(judgement.kind == "abstained" and answerable),
            "hallucinated": float(judgement.kind == "answered" and not answerable),
            "exact": float(judgement.right),
            "f1": judgement.f1,
            "field": float(judgement.has_field),
            "quoted": float(bool(judgement.evidence)),
            "quote_found": float(self.quotes_found(judgement)),
        }

    @vf.reward
    async def grounded(self, trace: vf.Trace) -> float:
        """1 for the gold or a right abstention."""
        return trace.info["grading"]["points"]

    async def validate(self, runtime: vf.Runtime) -> bool | None:
        """The gold earns full marks."""
        return self.judgement(self.gold_reply()).right

    def judgement(self, reply: str) -> Judgement:
        """The grader's word on one reply."""
        anything = self.data.side == "answer" and not self.data.answers
        return judge(self.data.answers, reply, abstain=self.token, anything=anything)

    def points(self, judgement: Judgement) -> float:
        """What a judged reply earns."""
        scores = self.config
        if judgement.right:
            return scores.false_quote if judgement.evidence and not self.quotes_found(judgement) else 1.0
        if judgement.kind == "abstained":
            return scores.over_abstain
        return scores.wrong if judgement.kind == "answered" else scores.nothing

    def quotes_found(self, judgement: Judgement) -> bool:
        """Whether the reply quotes, and the passage holds every quote."""
        passage = self.data.passage
        return bool(judgement.evidence) and all(quoted(quote, passage) for quote in judgement.evidence)

    @property
    def token(self) -> str:
        """What abstains in this task's style."""
        return _token(self.data.style)

    def gold_reply(self) -> str:
        answer = self.data.answer
        return f"<answer>{answer}</answer>" if self.data.style == "instruct" else answer


class GroundedQATaskset(vf.Taskset[GroundedQATask, GroundedQAConfig]):
    """Questions of one or several sources."""

    TWO_SIDED: ClassVar[Mapping[str, tuple[str, str]]] = {
        "over_abstention": ("answer", "over_abstained"),
        "hallucination": ("abstain", "hallucinated"),
    }
    """Rates that an evaluation reports together, each on its side: name → (side, metric)."""

    def load(self) -> Iterator[GroundedQATask]:
        config = self.config
        for source in config.chosen:
            rows = facts_rows(config) if source == "facts" else source_rows(source, config)
            for row in rows:
                yield GroundedQATask(self._data(source, row), config.task)

    def _data(self, source: str, row: Row) -> GroundedQAData:
        config, side = self.config, "answer" if row.answerable else "abstain"
        return GroundedQAData(
            id=row.id,
            prompt=prompt(row.passage, row.question, config.style),
            system_prompt=system_prompt(row.passage, config.style),
            passage=row.passage,
            question=row.question,
            answers=row.answers,
            answer=(*row.answers, ANY_ANSWER)[0] if row.answerable else _token(config.style),
            dataset=source,
            domain=row.domain,
            level=row.level,
            style=config.style,
            side=side,
            difficulty_prior=row.prior,
            snooze_factor=config.factor(side, row.domain),
            cluster=row.cluster,
        )


def _token(style: str) -> str:
    return BARE_ABSTAIN if style == "bare" else ABSTAIN
