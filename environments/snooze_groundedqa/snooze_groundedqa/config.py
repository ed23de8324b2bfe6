"""What a run may choose: sources, split, size, levels, prompt style, scores, snooze factors."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Literal

import verifiers.v1 as vf
from pydantic import Field, model_validator
from snooze_kit.options import SourceOptions

SourceName = Literal["facts", "squad", "coconot"]
Style = Literal["instruct", "few_shot", "bare"]

SNOOZE_FACTORS = {"answer": 2.0, "abstain": 1.0}
"""Passes to skip after a too-easy group, by side. Answering and abstaining pull the same weights in opposite
directions: while one side sleeps, training on the other undoes it, so both are looked at again soon, and the side
with fewer and more easily forgotten tasks after a single pass (Z9: a conflicting pair settles at 1-2)."""


class ScoresConfig(vf.TaskConfig):
    """`--env.taskset.task.*`: what each outcome earns. A right answer and a right abstention earn 1."""

    over_abstain: float = Field(0.05, ge=0, lt=1)
    """For abstaining although the passage answers. Above `wrong`, because saying nothing is more honest than saying
    something false; far below 1 and times the answerable share, so that always abstaining stays under one half."""
    wrong: float = Field(0.0, ge=0, lt=1)
    """For a wrong answer and for an answer where there is none."""
    nothing: float = Field(0.0, ge=0, lt=1)
    """For no answer at all, and for an answer and an abstention at once."""
    false_quote: float = Field(0.5, ge=0, le=1)
    """Factor on a right answer whose quoted evidence is not in the passage; 1 = quotes are only measured."""

    @model_validator(mode="after")
    def _honesty_pays(self) -> ScoresConfig:
        if self.over_abstain < self.wrong:
            raise ValueError(
                f"over_abstain is {self.over_abstain} and wrong is {self.wrong}: a guess would pay more than honesty; "
                "make over_abstain at least as much as wrong"
            )
        return self


class GroundedQAConfig(SourceOptions[SourceName]):
    """`--env.taskset.*` of snooze-groundedqa."""

    EMBEDDED: ClassVar[tuple[str, ...]] = ("facts",)

    task: ScoresConfig = ScoresConfig()
    """What each outcome earns."""
    source: SourceName = "facts"
    """The data set; `facts` is the embedded generator, the others need `path` or the hub."""
    path: Path | None = None
    """File of `source` (SQuAD's .json, or the hub's columns as JSON lines, .csv or .parquet), `{split}` in it is
    replaced; a SQuAD file without `{split}` is cut by article, one in five held out. None = the Hugging Face hub."""
    size: int | None = Field(None, gt=0)
    """Questions per source, drawn by `seed`; None = all (facts: 600 to train on, 300 held out)."""
    levels: list[int] = Field(default_factory=list)
    """Only these levels of `facts` (1-6); [] = all."""
    unanswerable_share: float | None = Field(0.45, ge=0, le=1)
    """Share of the questions without an answer; of a published set, questions of the other kind are left out until it
    holds. At the default always abstaining earns less than half. None = as published (facts: one half)."""
    style: Style = "instruct"
    """`instruct` explains the answer field; `few_shot` shows two worked questions first, for models too small to follow
    instructions; `bare` is "x1,y7;y:" answered by "7" or "?", for tiny policies (`facts` only)."""
    snooze_factor: float | None = None
    """Passes to skip after a too-easy group, for every task; None = 2 on the answer side, 1 on the abstain side."""
    snooze_factors: dict[str, float] = Field(default_factory=dict)
    """The same per side ("answer", "abstain") or per domain; a domain wins over a side, both over `snooze_factor`."""

    @model_validator(mode="after")
    def _bare_is_embedded(self) -> GroundedQAConfig:
        foreign = [name for name in self.chosen if name != "facts"]
        if self.style == "bare" and foreign:
            raise ValueError(
                f"style is 'bare', which only `facts` has, not {foreign}; use 'instruct' or 'few_shot'"
            )
        return self

    def factor(self, side: str, domain: str) -> float:
        """Passes a task of this side and domain is skipped after a too-easy group."""
        default = SNOOZE_FACTORS[side] if self.snooze_factor is None else self.snooze_factor
        return self.snooze_factors.get(domain, self.snooze_factors.get(side, default))
