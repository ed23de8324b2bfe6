"""Embedded grounded QA: items by side, level, number and seed; exact shares of unanswerable ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import floor

from snooze_groundedqa.generator.bare import bare_item
from snooze_groundedqa.generator.items import Item, read_item
from snooze_groundedqa.generator.levels import LEVELS
from snooze_groundedqa.generator.names import Side

MAX_REPEATS = 50
"""Draws in a row that may repeat earlier items before a level counts as exhausted."""


def items(
    *,
    side: Side,
    size: int,
    levels: Sequence[int],
    unanswerable_share: float,
    bare: bool = False,
    seed: int = 0,
) -> Iterator[Item]:
    """`size` distinct items, the levels in turn; `unanswerable_share` of each level's items, to within one, have no answer.

    A larger size of the same seed keeps every item of the smaller one. Raises `ValueError` for a level that does not
    exist and where a level (of the bare style) has no further distinct item.
    """
    if not levels or not set(levels) <= set(LEVELS):
        raise ValueError(f"levels {list(levels)} are not all known; choose some of {sorted(LEVELS)}")
    make = bare_item if bare else read_item
    seen: set[tuple[str, str]] = set()
    numbers = dict.fromkeys(levels, 0)
    for place in range(size):
        turn, column = divmod(place, len(levels))
        level = levels[column]
        phase = column / len(levels)  # else a small set would hold answerable items only
        answerable = floor((turn + 1) * unanswerable_share + phase) == floor(
            turn * unanswerable_share + phase
        )
        for _ in range(MAX_REPEATS):
            item = make(numbers[level], level=level, side=side, seed=seed, answerable=answerable)
            numbers[level] += 1
            if (key := (item.passage, item.question)) not in seen:
                break
        else:
            raise ValueError(
                f"level {level} has no further distinct {side} item after {turn}; ask for a smaller size"
            )
        seen.add(key)
        yield item


__all__ = ["LEVELS", "Item", "Side", "items"]
