"""What a run may choose: sources, split, size, levels, prompt style, snooze factors."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator
from snooze_kit.factors import FactorOptions

from snooze_math.sources import Split

SourceName = Literal[
    "arithmetic", "gsm8k", "gsm8k_platinum", "math500", "svamp", "mawps", "dapo_math", "deepscaler"
]


class MathConfig(FactorOptions):
    """`--env.taskset.*` of snooze-math."""

    source: SourceName = "arithmetic"
    """The data set; `arithmetic` is embedded, the others need `path` or the hub."""
    sources: list[SourceName] = Field(default_factory=list)
    """Several sets at once, in this order; overrides `source`."""
    path: Path | None = None
    """JSON-lines file of `source`, `{split}` in it is replaced; None = the Hugging Face hub."""
    paths: dict[SourceName, Path] = Field(default_factory=dict)
    """The same per source, for `sources`."""
    revision: str | None = None
    """Hub commit of `source`; None = the one pinned in snooze_math.sources, else the main branch."""
    split: Split = "train"
    """`eval` and `test` are the held-out side: the publisher's test split, or one template in five where there is none."""
    size: int | None = Field(None, gt=0)
    """Problems per source, drawn by `seed`; None = all (arithmetic: 400 to train on, 100 held out)."""
    levels: list[int] = Field(default_factory=list)
    """Only these levels (arithmetic 1-10, MATH 1-5); [] = all of MATH, arithmetic 1-8."""
    style: Literal["instruct", "few_shot", "bare"] = "instruct"
    """`instruct` asks for brief reasoning and a box; `few_shot` shows two worked word problems first, for models too
    small to follow instructions; `bare` is "23+45=" answered by the bare number, for tiny policies."""
    seed: int = 0
    """Draws the sample; a larger size of the same seed is not promised to contain a smaller one."""
    snooze_factor: float | None = None
    """Passes to skip after a too-easy group, for every task; None = the scheduler's own."""
    snooze_factors: dict[str, float] = Field(default_factory=dict)
    """The same per domain (operation, type, subject); wins over `snooze_factor`."""

    @model_validator(mode="after")
    def _path_has_an_owner(self) -> MathConfig:
        if self.path is not None and (self.sources or self.source == "arithmetic"):
            wanted = (
                "paths = {name = file} beside `sources`"
                if self.sources
                else "a `source` other than arithmetic"
            )
            raise ValueError(
                f"`path` is {self.path}, but it belongs to a single `source` with a file; give {wanted}"
            )
        return self
