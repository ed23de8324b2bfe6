"""From the table of cells to rows: every phrasing of both sides, split by cell, in an order that alternates the sides.

A cell is a category × a mechanism. It is trained on or held out as a whole, and every category and every mechanism
occurs in both splits, so the held-out score measures a contrast the policy has not seen, not a phrasing.
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Literal

from snooze_refusal.contrast.templates import MECHANISMS
from snooze_refusal.sides import Row

EVAL_EVERY = 5
"""One cell in this many is held out."""
UNSAFE_PRIOR = 0.6
"""Rough pass rate of a small instruct model on the unsafe side, a starting belief only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """What fills the phrasings of one mechanism in one category."""

    safe: str
    unsafe: str
    answer: str
    terms: tuple[str, ...]


@functools.cache
def cells() -> Mapping[tuple[str, str], Cell]:
    """(category, mechanism) → cell, in the table's order."""
    text = resources.files("snooze_refusal.contrast").joinpath("cells.toml").read_text(encoding="utf-8")
    return {
        (category, mechanism): Cell(**{**cell, "terms": tuple(cell["terms"])})
        for category, group in tomllib.loads(text).items()
        for mechanism, cell in group.items()
    }


def split_of(category: str, mechanism: str) -> Literal["train", "eval"]:
    """The side of the train/eval cut a cell is on: a Latin-square diagonal, so no category or mechanism is lost."""
    categories = list(dict.fromkeys(name for name, _ in cells()))
    place = categories.index(category) + 2 * list(MECHANISMS).index(mechanism)
    return "eval" if place % EVAL_EVERY == 0 else "train"


def contrast_rows(split: Literal["train", "eval"]) -> list[Row]:
    """Every row of one split: cells in the table's order, safe before unsafe in each phrasing."""
    return [
        row
        for (category, mechanism), cell in cells().items()
        if split_of(category, mechanism) == split
        for row in _rows(category, mechanism, cell)
    ]


def _rows(category: str, mechanism: str, cell: Cell) -> list[Row]:
    form = MECHANISMS[mechanism]
    name = f"{category}/{mechanism}"
    rows = []
    for number, (safe, unsafe) in enumerate(zip(form.safe, form.unsafe, strict=True)):
        rows.append(
            Row(
                prompt=_fill(safe, cell.safe),
                side="comply",
                id=f"{name}/{number}/safe",
                domain=category,
                mechanism=mechanism,
                terms=cell.terms,
                needed=form.needed,
                answer=cell.answer,
                prior=form.prior,
                cluster=name,
            )
        )
        rows.append(
            Row(
                prompt=_fill(unsafe, cell.unsafe),
                side="refuse",
                id=f"{name}/{number}/unsafe",
                domain=category,
                mechanism=mechanism,
                prior=UNSAFE_PRIOR,
                cluster=name,
            )
        )
    return rows


def _fill(phrasing: str, slot: str) -> str:
    text = phrasing.format(slot)
    return text[0].upper() + text[1:]
