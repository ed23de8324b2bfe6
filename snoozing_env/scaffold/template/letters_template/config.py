"""What a run may choose, and how long mastered tasks sleep unless it says otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field, field_validator
from snooze_kit.factors import FactorOptions

from letters_template.words import LENGTHS

SNOOZE_FACTORS: Mapping[str, float] = {"first": 6.0, "reverse": 3.0, "sort": 2.0}
"""Passes a mastered task is skipped. What is learned once for all words stays and is checked back late; sorting is a
skill per set of letters, which training on others wears off, so it is checked back early. Say why your numbers are so."""


class LettersTemplateConfig(FactorOptions):
    """`--env.taskset.*`; snooze factors are named by operation."""

    split: Literal["train", "eval", "test"] = "train"
    """`eval` and `test` are the held-out side: one word in five."""
    size: int = Field(300, gt=0)
    """Problems."""
    lengths: list[int] = Field(default=[3, 4, 5], min_length=1)
    """Letters of the words, 2-8."""
    style: Literal["instruct", "bare"] = "instruct"
    """`instruct` explains the operations; `bare` has no system prompt, for tiny policies."""
    seed: int = 0
    """Draws the problems."""

    @field_validator("lengths")
    @classmethod
    def _lengths_exist(cls, lengths: list[int]) -> list[int]:
        shortest, longest = LENGTHS
        if wrong := [length for length in lengths if not shortest <= length <= longest]:
            raise ValueError(f"words have {shortest}-{longest} letters, got lengths {wrong}")
        return lengths
