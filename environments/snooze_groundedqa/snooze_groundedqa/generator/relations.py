"""What the generator can say and ask about a body or a person: relations, their sentences and questions.

A statement has a form that names the subject and one for the sentence after it ("It opened in 1874."); the first
statement and the first question are the plain wording, the others paraphrase. `vague` says that the fact is not known:
all the words of an answerable question, and no answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

Kind = Literal["person", "year", "place", "count", "money", "month", "body"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """One thing that can be stated of a subject."""

    kind: Kind
    """What the answer is."""
    say: tuple[str, ...]
    """Statements with {s} for the subject and {o} for the answer."""
    go_on: tuple[str, ...]
    """The same about the body the sentence before was about."""
    ask: tuple[str, ...]
    vague: str
    unit: str = ""
    """What may follow the answer in a reply."""
    inline: str = ""
    """How a question mentions the fact as known: "the body {o} directs"; "" where it never does."""
    aside: str = ""
    """How a question restricts its subject by the fact: ", based in {o},"; "" where it never does."""


RELATIONS: Mapping[str, Relation] = MappingProxyType(
    {
        "founder": Relation(
            kind="person",
            say=("{s} was founded by {o}.", "{o} established {s}.", "{s} owes its beginnings to {o}."),
            go_on=("It was founded by {o}.", "{o} established it."),
            ask=("Who founded {s}?", "Who established {s}?", "By whom was {s} set up?"),
            vague="Nobody wrote down who founded {s}.",
            inline="the body that {o} founded",
        ),
        "director": Relation(
            kind="person",
            say=("{s} is directed by {o}.", "{o} runs {s}.", "At the head of {s} stands {o}."),
            go_on=("It is directed by {o}.", "{o} runs it."),
            ask=("Who directs {s}?", "Who runs {s}?", "Who is the head of {s}?"),
            vague="It is not public who directs {s}.",
            inline="the body that {o} directs",
        ),
        "architect": Relation(
            kind="person",
            say=("The building of {s} was designed by {o}.", "{o} drew the plans for {s}.", "{s} was built to plans by {o}."),
            go_on=("Its building was designed by {o}.", "{o} drew the plans for it."),
            ask=("Who designed the building of {s}?", "Whose plans was {s} built to?", "Who drew the plans for {s}?"),
            vague="No papers say who designed the building of {s}.",
        ),
        "year": Relation(
            kind="year",
            say=("{s} opened in {o}.", "The doors of {s} first opened in {o}.", "{s} received its first visitors in {o}."),
            go_on=("It opened in {o}.", "Its doors first opened in {o}."),
            ask=("In what year did {s} open?", "When did {s} first open?", "In which year were the first visitors let into {s}?"),
            vague="Sources disagree about the year in which {s} did open.",
            aside=", opened in {o},",
        ),
        "place": Relation(
            kind="place",
            say=("{s} is based in {o}.", "{s} has its home in {o}.", "Anyone looking for {s} must go to {o}."),
            go_on=("It is based in {o}.", "Its home is {o}."),
            ask=("In which town is {s} based?", "Where is {s} based?", "Which town is home to {s}?"),
            vague="A map that shows in which town {s} is based was lost.",
            aside=", based in {o},",
        ),
        "staff": Relation(
            kind="count",
            say=("{s} employs {o} people.", "Some {o} people work at {s}.", "The staff of {s} numbers {o}."),
            go_on=("It employs {o} people.", "Its staff numbers {o}."),
            ask=("How many people does {s} employ?", "How many people work at {s}?", "How large is the staff of {s}?"),
            vague="How many people {s} does employ is not disclosed.",
            unit="people",
        ),
        "budget": Relation(
            kind="money",
            say=("The yearly budget of {s} is {o} crowns.", "{s} spends {o} crowns a year.", "Each year {o} crowns pass through the books of {s}."),
            go_on=("Its yearly budget is {o} crowns.", "It spends {o} crowns a year."),
            ask=("What is the yearly budget of {s} in crowns?", "How many crowns does {s} spend a year?", "How many crowns a year go through the books of {s}?"),
            vague="What the yearly budget of {s} in crowns is remains a secret.",
            unit="crowns",
        ),
        "closed": Relation(
            kind="month",
            say=("{s} closed for repairs in {o}.", "Repairs kept {s} shut in {o}.", "In {o} the roof of {s} had to be mended and nobody was let in."),
            go_on=("It closed for repairs in {o}.", "Repairs kept it shut in {o}."),
            ask=("In which month did {s} close for repairs?", "In which month did repairs keep {s} shut?", "In which month was the roof of {s} mended?"),
            vague="No notice says in which month {s} did close for repairs.",
            aside=", closed for repairs in {o},",
        ),
        "rival": Relation(
            kind="body",
            say=("{s} competes with {o}.", "The chief rival of {s} is {o}.", "No one gives {s} more trouble than {o}."),
            go_on=("It competes with {o}.", "Its chief rival is {o}."),
            ask=("Which body does {s} compete with?", "Which body is the chief rival of {s}?", "Which body gives {s} the most trouble?"),
            vague="Which body {s} does compete with is a matter of opinion.",
            inline="the chief rival of {s}",
        ),
    }
)  # fmt: skip
ASIDES = tuple(name for name, relation in RELATIONS.items() if relation.aside)
HOPS = ("founder", "director")
"""Relations through which a question may name its subject by a person: "the body that Mara Sato directs"."""

DISTRACTORS = (
    "Visitors to {p} often arrive by the river road.", "The bakers of {p} are known for a dark bread.", "{n} has written about the region for many years.",
    "The winters in {p} are long and dry.", "A market is held in {p} every other week.", "{n} once walked from {p} to the coast.",
    "The train to {p} was late again, as {n} noted.", "A painting by {n} hangs in the town hall of {p}.", "Nobody in {p} remembers a quieter summer.",
    "The bridge at {p} was painted green by {n}.", "{n} keeps bees on a hill near {p}.", "Two roads meet in {p}, and both are narrow.",
)  # fmt: skip
"""Sentences about nothing that is asked; {p} is a place, {n} a person."""
