"""From a source's file or hub name to clean rows: split, corrected, de-duplicated, self-checked, and counted."""

from __future__ import annotations

import json
import logging
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from snooze_kit.verdict import Verdict

from snooze_math.arithmetic import LEVELS, USUAL_LEVELS, problems
from snooze_math.clusters import exact_clusters, held_out, near_clusters
from snooze_math.corrections import corrected, question_key
from snooze_math.grading.grade import decide
from snooze_math.sources import SOURCES, Row, Source, Split

logger = logging.getLogger(__name__)

ARITHMETIC_SIZE: Mapping[str, int] = {"train": 400, "eval": 100}


class SourceError(ValueError):
    """A data set cannot be read; the message names the option that helps."""


def arithmetic_rows(*, split: Split, size: int | None, levels: Sequence[int], seed: int) -> list[Row]:
    """Problems of the embedded generator; "test" is its held-out side too."""
    which = "train" if split == "train" else "eval"
    chosen = list(levels or USUAL_LEVELS)
    made = problems(split=which, size=size or ARITHMETIC_SIZE[which], levels=chosen, seed=seed)
    return [
        Row(
            question=problem.question,
            bare=problem.bare,
            answer=problem.answer,
            domain=problem.operation,
            level=problem.level,
            prior=LEVELS[problem.level].prior,
            cluster=f"level {problem.level} {problem.operation}",
        )
        for problem in made
    ]


def source_rows(
    name: str,
    *,
    split: Split,
    path: Path | None,
    revision: str | None,
    size: int | None,
    levels: Sequence[int],
    seed: int,
) -> list[Row]:
    """Rows of a named set for one split, in the publisher's order, or `size` of them drawn by `seed`."""
    source = SOURCES[name]
    if split == "train" and source.evaluation_only:
        raise SourceError(
            f"{name} is an evaluation set and has no train split; use split='test', or train on another source"
        )
    raw = (
        _read_file(name, path, source.splits.get(split, "train"))
        if path
        else _read_hub(name, source, split, revision)
    )
    rows = _read_rows(name, source, raw)
    if source.cut:
        rows = [row for row in _clustered(source, rows) if held_out(row.cluster or "") != (split == "train")]
    if levels:
        rows = [row for row in rows if row.level in levels]
    rows = usable(name, rows)
    if not rows:
        raise SourceError(
            f"{name}, split {split!r}, levels {list(levels) or 'all'}: no problem is left; check path and levels"
        )
    if size is not None and size > len(rows):
        raise SourceError(
            f"{name} has {len(rows)} problems in split {split!r}, {size} were asked for; lower `size`"
        )
    return rows if size is None else random.Random(f"{seed}/{name}/{split}").sample(rows, size)


def usable(name: str, rows: Iterable[Row]) -> list[Row]:
    """Rows with corrected golds that grade themselves as right; duplicates and contradictions left out and counted."""
    kept: dict[str, Row] = {}
    dropped = {"repeated": 0, "contradicted by a repetition": 0, "with a gold that fails its own check": 0}
    contradicted: set[str] = set()
    for row in rows:
        gold = corrected(row.question, row.answer)
        row = row if gold == row.answer else replace(row, answer=gold)
        key = question_key(row.question)
        if key in kept:
            same = kept[key].answer == row.answer
            dropped["repeated" if same else "contradicted by a repetition"] += 1
            contradicted |= set() if same else {key}
        elif not gold_is_sound(row.answer):
            dropped["with a gold that fails its own check"] += 1
        else:
            kept[key] = row
    for why, count in dropped.items():
        if count:
            logger.info("%s: left out %d problems %s", name, count, why)
    return [row for key, row in kept.items() if key not in contradicted]


def gold_is_sound(gold: str) -> bool:
    """Whether a reply that boxes the gold is graded right, without symbols."""
    verdict = decide(gold, f"\\boxed{{{gold}}}")
    return isinstance(verdict, Verdict) and verdict.correct is True


def _clustered(source: Source, rows: Sequence[Row]) -> list[Row]:
    questions = [row.question for row in rows]
    stories = [row.story or row.question for row in rows]
    ids = near_clusters(questions, stories) if source.templated else exact_clusters(questions)
    return [replace(row, cluster=cluster) for row, cluster in zip(rows, ids, strict=True)]


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


def _read_file(name: str, path: Path, hub_split: str) -> list[Mapping[str, Any]]:
    path = Path(str(path).replace("{split}", hub_split)).expanduser()
    if not path.is_file():
        raise SourceError(
            f"{name}: there is no file {path}; give `path` a JSON-lines file (it may contain {{split}})"
        )
    rows = []
    for line_number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if not line.strip():
            continue
        try:
            rows.append(json.loads(line))
        except json.JSONDecodeError as error:
            raise SourceError(
                f"{path}, line {line_number} is not JSON: {error.msg}; `path` must be JSON lines"
            ) from error
    return rows


def _read_hub(name: str, source: Source, split: Split, revision: str | None) -> Iterable[Mapping[str, Any]]:
    advice = f"give a local JSON-lines file: path=/data/{name}.jsonl"
    try:
        import datasets
    except ModuleNotFoundError as error:
        raise SourceError(
            f"{name} comes from the Hugging Face hub ({source.hub}), which needs the `datasets` package: "
            f"pip install 'snooze-math[hub]', or {advice}"
        ) from error
    try:
        return datasets.load_dataset(
            source.hub,
            source.subset,
            split=source.splits.get(split, "train"),
            revision=revision or source.revision,
        )
    # datasets raises many types for an unreachable, renamed or gated set; each needs the same advice.
    except (OSError, ValueError, RuntimeError) as error:
        raise SourceError(
            f"{name}: the Hugging Face hub did not give {source.hub} ({type(error).__name__}: {error}); "
            f"check the network and, for gated sets, HF_TOKEN, or {advice}"
        ) from error
