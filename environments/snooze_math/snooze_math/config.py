"""What a run may choose: sources, split, size, levels, prompt style, snooze factors."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field
from snooze_kit.options import SourceOptions
from snooze_kit.rows import Split

SourceName = Literal[
    "arithmetic", "gsm8k", "gsm8k_platinum", "math500", "svamp", "mawps", "dapo_math", "deepscaler"
]


class MathConfig(SourceOptions[SourceName]):
    """`--env.taskset.*` of snooze-math."""

    EMBEDDED: ClassVar[tuple[str, ...]] = ("arithmetic",)

    source: SourceName = "arithmetic"
    """The data set; `arithmetic` is embedded, the others need `path` or the hub."""
    split: Split = "train"
    """`eval` and `test` are the held-out side: the publisher's test split, or one template in five where there is none."""
    size: int | None = Field(None, gt=0)
    """Problems per source, drawn by `seed`; None = all (arithmetic: 400 to train on, 100 held out)."""
    levels: list[int] = Field(default_factory=list)
    """Only these levels (arithmetic 1-10, MATH 1-5); [] = all of MATH, arithmetic 1-8."""
    style: Literal["instruct", "few_shot", "bare"] = "instruct"
    """`instruct` asks for brief reasoning and a box; `few_shot` shows two worked word problems first, for models too
    small to follow instructions; `bare` is "23+45=" answered by the bare number, for tiny policies."""
    snooze_factor: float | None = None
    """Passes to skip after a too-easy group, for every task; None = the scheduler's own."""
    snooze_factors: dict[str, float] = Field(default_factory=dict)
    """The same per domain (operation, type, subject); wins over `snooze_factor`."""
