"""From a source's file or hub name to rows: split, held-out prompts taken out, repetitions left out and counted."""

from __future__ import annotations

import csv
import json
import logging
import random
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from snooze_refusal.contrast.build import cells, contrast_rows
from snooze_refusal.contrast.templates import MECHANISMS
from snooze_refusal.sides import Row, Split
from snooze_refusal.sources import SOURCES, Part, Source

logger = logging.getLogger(__name__)


class SourceError(ValueError):
    """A data set cannot be read; the message names the option that helps."""


def embedded_rows(
    *, split: Split, size: int | None, categories: Sequence[str], mechanisms: Sequence[str], seed: int
) -> list[Row]:
    """Rows of the authored contrast set; "test" is its held-out side too."""
    for option, chosen, known in (
        ("categories", categories, {category for category, _ in cells()}),
        ("mechanisms", mechanisms, set(MECHANISMS)),
    ):
        if unknown := sorted(set(chosen) - known):
            raise SourceError(f"{option} {unknown} do not exist; choose some of {sorted(known)}")
    rows = [
        row
        for row in contrast_rows("train" if split == "train" else "eval")
        if (not categories or row.domain in categories) and (not mechanisms or row.mechanism in mechanisms)
    ]
    return _sample("contrast", rows, split=split, size=size, seed=seed)


def source_rows(
    name: str, *, split: Split, path: Path | None, revision: str | None, size: int | None, seed: int
) -> list[Row]:
    """Rows of a named set for one split, in the publisher's order, or `size` of them drawn by `seed`."""
    source = SOURCES[name]
    if split not in source.parts:
        raise SourceError(
            f"{name} is an evaluation set and has no {split} split; use split='test', or train on another source"
        )
    held_out = _read(name, source, source.minus, path, revision) if source.minus and split == "train" else []
    rows = _distinct(name, _read(name, source, source.parts[split], path, revision), held_out)
    return _sample(name, rows, split=split, size=size, seed=seed)


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
    for why, count in dropped.items():
        if count:
            logger.info("%s: left out %d prompts %s", name, count, why)
    return [row for key, row in kept.items() if key not in both]


def _sample(name: str, rows: Sequence[Row], *, split: Split, size: int | None, seed: int) -> list[Row]:
    """All rows, or `size` of them with the sides as equal as the set allows."""
    if not rows:
        raise SourceError(
            f"{name}, split {split!r}: no prompt is left; check path, categories and mechanisms"
        )
    if size is None:
        return list(rows)
    if size > len(rows):
        raise SourceError(
            f"{name} has {len(rows)} prompts in split {split!r}, {size} were asked for; lower `size`"
        )
    rng = random.Random(f"{seed}/{name}/{split}")  # a string seed hashes with sha512: stable across processes
    sides = [[row for row in rows if row.side == side] for side in ("comply", "refuse")]
    for side in sides:
        rng.shuffle(side)
    few, many = sorted(sides, key=len)
    fewer = min(size // 2, len(few))
    chosen = few[:fewer] + many[: size - fewer]
    rng.shuffle(chosen)
    return chosen


def _read(name: str, source: Source, part: Part, path: Path | None, revision: str | None) -> list[Row]:
    raw = _read_file(name, part, path) if path else _read_hub(name, source, part, revision)
    rows = []
    for place, row in enumerate(raw):
        try:
            made = part.read(row)
        except (KeyError, TypeError, AttributeError) as error:
            raise SourceError(
                f"row {place} of {name} has the fields {sorted(str(key) for key in row)}, which this source cannot read "
                f"({type(error).__name__}: {error}); give a file in the format of {source.hub}"
            ) from error
        if made is not None and made.prompt:
            rows.append(made)
    return rows


def _read_file(name: str, part: Part, path: Path) -> list[Mapping[str, Any]]:
    path = Path(str(path).replace("{subset}", part.subset or part.split)).expanduser()
    if not path.is_file():
        raise SourceError(
            f"{name}: there is no file {path}; give `path` a .csv or JSON-lines file "
            "({subset} in it is replaced by the publisher's table, e.g. or-bench-hard-1k)"
        )
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".csv":
        return list(csv.DictReader(text.splitlines(keepends=True)))
    rows = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            rows.append(json.loads(line))
        except json.JSONDecodeError as error:
            raise SourceError(
                f"{path}, line {number} is not JSON: {error.msg}; `path` must be JSON lines or end in .csv"
            ) from error
    return rows


def _read_hub(name: str, source: Source, part: Part, revision: str | None) -> Iterable[Mapping[str, Any]]:
    advice = f"give a local file: path=/data/{name}.jsonl"
    try:
        import datasets
    except ModuleNotFoundError as error:
        raise SourceError(
            f"{name} comes from the Hugging Face hub ({source.hub}), which needs the `datasets` package: "
            f"pip install 'snooze-refusal[hub]', or {advice}"
        ) from error
    gate = (
        f"; {source.hub} is gated: accept its terms at https://huggingface.co/datasets/{source.hub} and set HF_TOKEN"
        if source.gated
        else "; check the network"
    )
    try:
        return datasets.load_dataset(
            source.hub, part.subset, split=part.split, revision=revision or source.revision
        )
    # datasets raises many types for an unreachable, renamed or gated set; each needs the same advice.
    except (OSError, ValueError, RuntimeError) as error:
        raise SourceError(
            f"{name}: the Hugging Face hub did not give {source.hub} ({type(error).__name__}: {error}){gate}, or {advice}"
        ) from error
