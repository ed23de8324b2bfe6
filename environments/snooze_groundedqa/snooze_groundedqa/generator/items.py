"""One reading item: facts → passage → a question that the passage answers or nearly answers.

The question is drawn before anything depends on whether it can be answered; the passage is then made to answer it or
to miss. So the question alone says nothing about the label, by construction and not by balancing afterwards.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from snooze_groundedqa.generator.draws import Draws
from snooze_groundedqa.generator.levels import LEVELS, Level
from snooze_groundedqa.generator.names import NAMES, Side
from snooze_groundedqa.generator.passage import render
from snooze_groundedqa.generator.relations import ASIDES, HOPS, RELATIONS, Relation

Miss = Literal["entity swap", "missing relation", "unknown entity", "contradicted detail"]

Facts = dict[tuple[str, str], str]
"""(body, relation) → what the passage states."""

_PLAIN: tuple[tuple[Miss, float], ...] = (
    ("entity swap", 0.45),
    ("missing relation", 0.75),
    ("unknown entity", 1.0),
)
_DETAIL: tuple[tuple[Miss, float], ...] = (("entity swap", 0.3), ("contradicted detail", 1.0))
_NAMES = tuple(RELATIONS)
_VAGUE_SHARE = {
    "entity swap": 0.35,
    "missing relation": 0.8,
    "unknown entity": 0.35,
    "contradicted detail": 0.0,
}
"""How often a near miss says outright that the asked fact is not known: all words of the question in one sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A passage and a question."""

    passage: str
    question: str
    answer: str | None
    """A span of the passage, None = the passage does not say."""
    also: tuple[str, ...]
    """Further spellings of the answer that are as right: with its unit."""
    level: int
    kind: str
    """"answerable" or how the passage misses the question."""
    relation: str
    """What is asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked, drawn before the passage."""

    body: str
    relation: str
    detail: str
    """The relation that restricts or names the subject, "" for a plain question."""
    known: str
    """What the question takes for granted about `detail`."""
    text: str


def read_item(number: int, *, level: int, side: Side, seed: int, answerable: bool) -> Item:
    """The item of this number; the same in every process and whatever else was drawn."""
    knobs = LEVELS[level]
    draws = Draws(random.Random(f"{seed}/{side}/{level}/{number}"), NAMES[side])
    bodies = draws.bodies(knobs.bodies + 1)
    question = _question(draws, knobs, bodies[0])
    miss = None if answerable else _miss(draws, question)
    facts, vague = _world(draws, knobs, question, bodies, miss)
    answer = facts.get((question.body, question.relation)) if answerable else None
    unit = RELATIONS[question.relation].unit
    return Item(
        passage=render(draws, knobs, facts, vague),
        question=question.text,
        answer=answer,
        also=(f"{answer} {unit}",) if answer and unit else (),
        level=level,
        kind=miss or "answerable",
        relation=question.relation,
    )


def _question(draws: Draws, knobs: Level, body: str) -> Question:
    relation = draws.pick(_NAMES)
    asked, roll = RELATIONS[relation], draws.random()
    detail = ""
    if roll < knobs.hops:
        detail = draws.pick([name for name in HOPS if name != relation])
    elif roll < knobs.hops + knobs.asides:
        detail = draws.pick([name for name in ASIDES if name != relation])
    known = draws.value(RELATIONS[detail].kind) if detail else ""
    subject = _subject(body, RELATIONS[detail], known) if detail else body
    text = draws.pick(asked.ask[: knobs.wordings]).format(s=subject).replace(",?", "?")
    return Question(body=body, relation=relation, detail=detail, known=known, text=text)


def _subject(body: str, detail: Relation, known: str) -> str:
    return detail.inline.format(o=known) if detail.inline else body + detail.aside.format(o=known)


def _miss(draws: Draws, question: Question) -> Miss:
    roll = draws.random()
    return next(miss for miss, until in (_DETAIL if question.detail else _PLAIN) if roll < until)


def _world(
    draws: Draws, knobs: Level, question: Question, bodies: Sequence[str], miss: Miss | None
) -> tuple[Facts, list[tuple[str, str]]]:
    """The facts of the passage and the (body, relation) pairs it calls unknown."""
    asked = question.relation
    subject, others = bodies[0], list(bodies[1 : knobs.bodies])
    if miss == "unknown entity":
        others.append(bodies[knobs.bodies])
    facts: Facts = {}
    if miss != "unknown entity":
        states = miss in (None, "contradicted detail")
        _state(draws, facts, subject, _subject_relations(draws, knobs, question, states=states), question)
    told = miss != "missing relation"
    for place, body in enumerate(others):
        forced = told and (place == 0 or draws.random() < 0.4)
        _state(draws, facts, body, _relations(draws, knobs, asked, forced=forced, allowed=told), None)
    if miss == "contradicted detail":
        _contradict(draws, facts, question, others[0])
    vague: list[tuple[str, str]] = []
    if miss is not None and draws.random() < _VAGUE_SHARE[miss]:
        vague.append((subject, asked))
    while len(vague) < knobs.vague:
        pair = (draws.pick(others), draws.pick(_NAMES))
        vague.append(pair if pair not in facts else (draws.body(), pair[1]))
    return facts, vague


def _subject_relations(draws: Draws, knobs: Level, question: Question, *, states: bool) -> list[str]:
    """What is stated of the question's subject: as many facts whether or not the asked one is among them."""
    wanted = [question.detail] if question.detail else []
    wanted += [question.relation] if states else []
    rest = [name for name in _NAMES if name not in (*wanted, question.relation)]
    return wanted + draws.sample(rest, max(0, knobs.facts - len(wanted)))


def _relations(draws: Draws, knobs: Level, asked: str, *, forced: bool, allowed: bool) -> list[str]:
    if forced:
        return [asked, *draws.sample([name for name in _NAMES if name != asked], knobs.facts - 1)]
    return draws.sample([name for name in _NAMES if allowed or name != asked], knobs.facts)


def _state(
    draws: Draws, facts: Facts, body: str, relations: Sequence[str], question: Question | None
) -> None:
    for name in relations:
        known = question is not None and name == question.detail
        facts[body, name] = question.known if known and question else draws.value(RELATIONS[name].kind)


def _contradict(draws: Draws, facts: Facts, question: Question, other: str) -> None:
    """Another value where the question takes `known` for granted; `known` itself stands elsewhere in the passage."""
    facts[question.body, question.detail] = draws.value(RELATIONS[question.detail].kind)
    facts[other, "architect" if question.detail in HOPS else question.detail] = question.known
