"""From a source's file or hub name to rows: split, held-out prompts taken out, repetitions left out and counted."""

from __future__ import annotations

import logging
import re
import unicodedata
from collections.abc import Iterable, Sequence

from snooze_kit.rows import RowReader, SourceError, Split, no_split, seeded

from snooze_refusal.config import RefusalConfig
from snooze_refusal.contrast.build import cells, contrast_rows
from snooze_refusal.contrast.templates import MECHANISMS
from snooze_refusal.sides import Row
from snooze_refusal.sources import SOURCES, Part, RefusalSource

READER = RowReader(
    package="snooze-refusal",
    noun="prompts",
    logger=logging.getLogger(__name__),
    placeholder="{subset} in it is replaced by the publisher's table, e.g. or-bench-hard-1k",
)


def embedded_rows(config: RefusalConfig) -> list[Row]:
    """Rows of the authored contrast set; "test" is its held-out side too."""
    for option, chosen, known in (
        ("categories", config.categories, {category for category, _ in cells()}),
        ("mechanisms", config.mechanisms, set(MECHANISMS)),
    ):
        if unknown := sorted(set(chosen) - known):
            raise SourceError(f"{option} {unknown} do not exist; choose some of {sorted(known)}")
    rows = [
        row
        for row in contrast_rows("train" if config.split == "train" else "eval")
        if (not config.categories or row.domain in config.categories)
        and (not config.mechanisms or row.mechanism in config.mechanisms)
    ]
    return _sample("contrast", rows, split=config.split, size=config.size, seed=config.seed)


def source_rows(name: str, config: RefusalConfig) -> list[Row]:
    """Rows of a named set for one split, in the publisher's order, or `size` of them drawn by `seed`."""
    source, split = SOURCES[name], config.split
    if split not in source.parts:
        raise no_split(name, split)
    held_out = _read(name, source, source.minus, config) if source.minus and split == "train" else []
    rows = _distinct(name, _read(name, source, source.parts[split], config), held_out)
    return _sample(name, rows, split=split, size=config.size, seed=config.seed)


def same_prompt(prompt: str) -> str:
    """The spelling by which prompts count as repeated: case, punctuation and spaces ignored."""
    return " ".join(re.findall(r"\w+", unicodedata.normalize("NFKC", prompt).lower()))


def _distinct(name: str, rows: Iterable[Row], held_out: Iterable[Row]) -> list[Row]:
    dropped = {"held out": 0, "repeated": 0, "labelled both ways": 0}
    never = {same_prompt(row.prompt) for row in held_out}
    kept: dict[str, Row] = {}
    both: set[str] = set()
    for row in rows:
        key = same_prompt(row.prompt)
        if key in never:
            dropped["held out"] += 1
        elif key in kept:
            same = kept[key].side == row.side
            dropped["repeated" if same else "labelled both ways"] += 1
            both |= set() if same else {key}
        else:
            kept[key] = row
    READER.left_out(name, dropped)
    return [row for key, row in kept.items() if key not in both]


def _sample(name: str, rows: Sequence[Row], *, split: Split, size: int | None, seed: int) -> list[Row]:
    """All rows, or `size` of them with the sides as equal as the set allows."""
    if not rows:
        raise READER.nothing_left(name, f"split {split!r}", "path, categories and mechanisms")
    if size is None:
        return list(rows)
    READER.enough(name, rows, split=split, size=size)
    rng = seeded(name, split, seed)
    sides = [[row for row in rows if row.side == side] for side in ("comply", "refuse")]
    for side in sides:
        rng.shuffle(side)
    few, many = sorted(sides, key=len)
    fewer = min(size // 2, len(few))
    chosen = few[:fewer] + many[: size - fewer]
    rng.shuffle(chosen)
    return chosen


def _read(name: str, source: RefusalSource, part: Part, config: RefusalConfig) -> list[Row]:
    path = config.file_of(name)
    raw = (
        READER.from_file(name, path, subset=part.subset or part.split)
        if path
        else READER.from_hub(name, source, subset=part.subset, split=part.split, revision=config.revision)
    )
    return [row for row in READER.typed(name, source, raw, part.read) if row is not None and row.prompt]
