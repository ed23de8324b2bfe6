"""From a source's file, hub name or generator to clean rows: split, self-checked, balanced, and counted."""

from __future__ import annotations

import hashlib
import json
import logging
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from snooze_groundedqa.generator import LEVELS, Item, items
from snooze_groundedqa.grading.canonical import canonical
from snooze_groundedqa.grading.grade import grade
from snooze_groundedqa.sources import SOURCES, Row, Source, Split, squad_rows

logger = logging.getLogger(__name__)

FACTS_SIZE: Mapping[str, int] = {"train": 600, "eval": 300}
EVAL_SHARE = 5
"""One article in this many of an undivided file is held out."""


class SourceError(ValueError):
    """A data set cannot be read; the message names the option that helps."""


def facts_rows(
    *, split: Split, size: int | None, levels: Sequence[int], seed: int, share: float | None, bare: bool
) -> list[Row]:
    """Items of the embedded generator; "test" is its held-out side too."""
    side = "train" if split == "train" else "eval"
    made = items(
        side=side,
        size=size or FACTS_SIZE[side],
        levels=list(levels) or sorted(LEVELS),
        unanswerable_share=0.5 if share is None else share,
        bare=bare,
        seed=seed,
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


def source_rows(
    name: str,
    *,
    split: Split,
    path: Path | None,
    revision: str | None,
    size: int | None,
    seed: int,
    share: float | None,
) -> list[Row]:
    """Rows of a published set for one split, in the publisher's order, or `size` of them drawn by `seed`."""
    source = SOURCES[name]
    if split not in source.parts:
        raise SourceError(
            f"{name} is an evaluation set and has no {split} split; use split='test', or train on another source"
        )
    raw = _read_file(name, path, split) if path else _read_hub(name, source, split, revision)
    rows = _read_rows(name, source, raw)
    if path is not None and "{split}" not in str(path) and name == "squad":
        rows = [row for row in rows if held_out(row.cluster or "") != (split == "train")]
    rows = usable(name, rows)
    rows = rows if share is None else balanced(name, rows, share, seed)
    if not rows:
        raise SourceError(f"{name}, split {split!r}: no question is left; check path and unanswerable_share")
    if size is not None and size > len(rows):
        raise SourceError(
            f"{name} has {len(rows)} questions in split {split!r}, {size} were asked for; lower `size`"
        )
    return rows if size is None else random.Random(f"{seed}/{name}/{split}").sample(rows, size)


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
    for why, count in dropped.items():
        if count:
            logger.info("%s: left out %d questions %s", name, count, why)
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
    if left_out := len(rows) - len(kept):
        logger.info("%s: left out %d questions so that %.0f %% have no answer", name, left_out, 100 * share)
    return [row for row in rows if id(row) in kept]


def _rank(row: Row, seed: int) -> str:
    return hashlib.sha256(f"{seed}/{row.id or row.passage + row.question}".encode()).hexdigest()


def _read_rows(name: str, source: Source, raw: Iterable[Mapping[str, Any]]) -> list[Row]:
    rows = []
    for place, row in enumerate(raw):
        try:
            rows.append(source.read(row))
        except (KeyError, TypeError, AttributeError) as error:
            raise SourceError(
                f"row {place} of {name} has the fields {sorted(row)}, which this source cannot read "
                f"({type(error).__name__}: {error}); give a file in the format of {source.hub}"
            ) from error
    return rows


def _read_file(name: str, path: Path, split: Split) -> list[Mapping[str, Any]]:
    """JSON lines with the hub's columns, or a SQuAD file. coconot's two parts come from `{split}` = original, contrast."""
    found: list[Mapping[str, Any]] = []
    for part, hub_split in SOURCES[name].parts[split]:
        file = Path(str(path).replace("{split}", part or hub_split)).expanduser()
        if not file.is_file():
            raise SourceError(
                f"{name}: there is no file {file}; give `path` a file (it may contain {{split}})"
            )
        rows = _parse(file)
        found += rows if part is None else [{**row, "part": row.get("part", part)} for row in rows]
    return found


def _parse(file: Path) -> list[Mapping[str, Any]]:
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".json":
        try:
            return list(squad_rows(json.loads(text)))
        except (json.JSONDecodeError, KeyError, TypeError) as error:
            raise SourceError(
                f"{file} is not a SQuAD file ({type(error).__name__}: {error}); `path` must be SQuAD's .json or .jsonl"
            ) from error
    rows = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            rows.append(json.loads(line))
        except json.JSONDecodeError as error:
            raise SourceError(
                f"{file}, line {number} is not JSON: {error.msg}; `path` must be JSON lines"
            ) from error
    return rows


def _read_hub(name: str, source: Source, split: Split, revision: str | None) -> list[Mapping[str, Any]]:
    advice = f"give a local file: path=/data/{name}.jsonl"
    try:
        import datasets
    except ModuleNotFoundError as error:
        raise SourceError(
            f"{name} comes from the Hugging Face hub ({source.hub}), which needs the `datasets` package: "
            f"pip install 'snooze-groundedqa[hub]', or {advice}"
        ) from error
    found: list[Mapping[str, Any]] = []
    for part, hub_split in source.parts[split]:
        try:
            rows = datasets.load_dataset(
                source.hub, part, split=hub_split, revision=revision or source.revision
            )
        # datasets raises many types for an unreachable, renamed or gated set; each needs the same advice.
        except (OSError, ValueError, RuntimeError) as error:
            raise SourceError(
                f"{name}: the Hugging Face hub did not give {source.hub} ({type(error).__name__}: {error}); "
                f"check the network and, for gated sets, HF_TOKEN, or {advice}"
            ) from error
        found += [{**row, "part": part} for row in rows]
    return found
