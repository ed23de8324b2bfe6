"""The difficulty knob: six levels, by bodies, facts, paraphrase, distractors, passage length and hops."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """How an item of this level is drawn."""

    description: str
    prior: float
    """Rough pass rate of a small instruct model, a starting belief only."""
    bodies: int
    facts: int
    """Facts stated of each body."""
    wordings: int
    """How many of a relation's wordings are used; 1 = passage and question in the same words."""
    distractors: int
    go_on: float
    """Share of the facts stated by "It ..." after a sentence that names the body."""
    vague: int
    """Sentences that say of some fact that it is not known, at most."""
    asides: float
    """Share of the questions that restrict their subject: "the Cobalt Archive, based in Nyland,"."""
    hops: float
    """Share of the questions that name their subject by a person: "the body that Mara Sato directs"."""


LEVELS: Mapping[int, Level] = MappingProxyType(
    {
        1: Level(description="two bodies, the question in the passage's words", prior=0.75, bodies=2, facts=2, wordings=1,
                 distractors=0, go_on=0.3, vague=1, asides=0.0, hops=0.0),
        2: Level(description="three bodies with look-alike names", prior=0.65, bodies=3, facts=2, wordings=1,
                 distractors=1, go_on=0.4, vague=1, asides=0.15, hops=0.0),
        3: Level(description="other words in question and passage", prior=0.55, bodies=3, facts=3, wordings=3,
                 distractors=2, go_on=0.5, vague=1, asides=0.2, hops=0.0),
        4: Level(description="four bodies, details that may contradict", prior=0.45, bodies=4, facts=3, wordings=3,
                 distractors=3, go_on=0.5, vague=2, asides=0.4, hops=0.0),
        5: Level(description="subjects named through a person", prior=0.35, bodies=4, facts=4, wordings=3,
                 distractors=4, go_on=0.5, vague=2, asides=0.2, hops=0.5),
        6: Level(description="five bodies in a long passage, hops and details", prior=0.25, bodies=5, facts=5, wordings=3,
                 distractors=6, go_on=0.5, vague=3, asides=0.3, hops=0.5),
    }
)  # fmt: skip
