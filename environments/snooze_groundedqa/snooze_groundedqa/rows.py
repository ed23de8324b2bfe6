"""From a source's file, hub name or generator to clean rows: split, self-checked, balanced, and counted."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from snooze_kit.rows import RowReader, SourceError, no_split

from snooze_groundedqa.config import GroundedQAConfig
from snooze_groundedqa.generator import LEVELS, Item, items
from snooze_groundedqa.grading.canonical import canonical
from snooze_groundedqa.grading.grade import grade
from snooze_groundedqa.sources import SOURCES, QASource, Row, squad_rows

READER = RowReader(package="snooze-groundedqa", noun="questions", logger=logging.getLogger(__name__))

FACTS_SIZE: Mapping[str, int] = {"train": 600, "eval": 300}
EVAL_SHARE = 5
"""One article in this many of an undivided file is held out."""


def facts_rows(config: GroundedQAConfig) -> list[Row]:
    """Items of the embedded generator; "test" is its held-out side too."""
    side = "train" if config.split == "train" else "eval"
    made = items(
        side=side,
        size=config.size or FACTS_SIZE[side],
        levels=list(config.levels) or sorted(LEVELS),
        unanswerable_share=0.5 if config.unanswerable_share is None else config.unanswerable_share,
        bare=config.style == "bare",
        seed=config.seed,
    )
    return [_of_item(item) for item in made]


def _of_item(item: Item) -> Row:
    return Row(
        passage=item.passage,
        question=item.question,
        answers=() if item.answer is None else (item.answer, *item.also),
        answerable=item.answer is not None,
        domain=item.kind,
        level=item.level,
        prior=LEVELS[item.level].prior,
        cluster=f"level {item.level} {item.kind}",
    )


def source_rows(name: str, config: GroundedQAConfig) -> list[Row]:
    """Rows of a published set for one split, in the publisher's order, or `size` of them drawn by `seed`."""
    source, split, share, path = SOURCES[name], config.split, config.unanswerable_share, config.file_of(name)
    if split not in source.parts:
        raise no_split(name, split)
    rows = READER.typed(name, source, _raw(name, source, config, path), source.read)
    if path is not None and "{split}" not in str(path) and name == "squad":
        rows = [row for row in rows if held_out(row.cluster or "") != (split == "train")]
    rows = usable(name, rows)
    rows = rows if share is None else balanced(name, rows, share, config.seed)
    if not rows:
        raise READER.nothing_left(name, f"split {split!r}", "path and unanswerable_share")
    return READER.drawn(name, rows, split=split, size=config.size, seed=config.seed)


def held_out(article: str) -> bool:
    """Whether an article of an undivided file is on the held-out side; a property of its title alone."""
    return int(hashlib.sha256(f"side {article}".encode()).hexdigest(), 16) % EVAL_SHARE == 0


def usable(name: str, rows: Iterable[Row]) -> list[Row]:
    """Rows whose golds are graded as right, each id once; what is left out is counted in the log."""
    kept: dict[str, Row] = {}
    dropped = {"repeated": 0, "with golds that fail their own check": 0}
    for row in rows:
        key = row.id or f"{row.passage}\n{row.question}"
        sound = tuple(gold for gold in row.answers if gold_is_sound(gold))
        if key in kept:
            dropped["repeated"] += 1
        elif row.answers and not sound:
            dropped["with golds that fail their own check"] += 1
        else:
            kept[key] = replace(row, answers=sound)
    READER.left_out(name, dropped)
    return list(kept.values())


def gold_is_sound(gold: str) -> bool:
    """Whether the gold says anything and a reply that puts it into the field is graded right."""
    return bool(canonical(gold)) and grade(gold, f"<answer>{gold}</answer>").correct is True


def balanced(name: str, rows: Sequence[Row], share: float, seed: int) -> list[Row]:
    """The largest selection in which `share` of the questions have no answer, in the same order.

    Who is left out depends on the question's own id and the seed, not on its place.
    """
    sides = {
        answerable: [row for row in rows if row.answerable is answerable] for answerable in (True, False)
    }
    wanted = {True: 1 - share, False: share}
    total = min((len(sides[side]) / wanted[side] for side in (True, False) if wanted[side]), default=0)
    kept: set[int] = set()
    for side, of_side in sides.items():
        ranked = sorted(of_side, key=lambda row: _rank(row, seed))
        kept |= {id(row) for row in ranked[: round(total * wanted[side])]}
    READER.left_out(name, {f"so that {100 * share:.0f} % have no answer": len(rows) - len(kept)})
    return [row for row in rows if id(row) in kept]


def _rank(row: Row, seed: int) -> str:
    return hashlib.sha256(f"{seed}/{row.id or row.passage + row.question}".encode()).hexdigest()


def _raw(name: str, source: QASource, config: GroundedQAConfig, path: Path | None) -> list[Mapping[str, Any]]:
    """All parts of a split, each row with its part. A file is JSON lines with the hub's columns, or SQuAD's own;
    coconot's two parts come from `{split}` = original, contrast."""
    found: list[Mapping[str, Any]] = []
    for part, split in source.parts[config.split]:
        if path is None:
            rows = READER.from_hub(name, source, subset=part, split=split, revision=config.revision)
            found += [{**row, "part": part} for row in rows]
            continue
        file = READER.find(name, path, split=part or split)
        rows = _squad(file) if file.suffix == ".json" else READER.parse(file)
        found += rows if part is None else [{"part": part, **row} for row in rows]
    return found


def _squad(file: Path) -> list[Mapping[str, Any]]:
    try:
        return list(squad_rows(json.loads(file.read_text(encoding="utf-8"))))
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise SourceError(
            f"{file} is not a SQuAD file ({type(error).__name__}: {error}); `path` must be SQuAD's .json or .jsonl"
        ) from error
