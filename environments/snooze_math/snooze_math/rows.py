"""From a source's file or hub name to clean rows: split, corrected, de-duplicated, self-checked, and counted."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from snooze_kit.rows import RowReader, Split, no_split
from snooze_kit.verdict import Verdict

from snooze_math.arithmetic import LEVELS, USUAL_LEVELS, problems
from snooze_math.clusters import exact_clusters, held_out, near_clusters
from snooze_math.config import MathConfig
from snooze_math.corrections import corrected, question_key
from snooze_math.grading.grade import decide
from snooze_math.sources import SOURCES, MathSource, Row

READER = RowReader(
    package="snooze-math",
    noun="problems",
    logger=logging.getLogger(__name__),
    local="a local JSON-lines file",
)
ARITHMETIC_SIZE: Mapping[str, int] = {"train": 400, "eval": 100}


def arithmetic_rows(config: MathConfig) -> list[Row]:
    """Problems of the embedded generator; "test" is its held-out side too."""
    which: Split = "train" if config.split == "train" else "eval"
    made = problems(
        split=which,
        size=config.size or ARITHMETIC_SIZE[which],
        levels=list(config.levels or USUAL_LEVELS),
        seed=config.seed,
    )
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


def source_rows(name: str, config: MathConfig) -> list[Row]:
    """Rows of a named set for one split, in the publisher's order, or `size` of them drawn by `seed`."""
    source, split = SOURCES[name], config.split
    if split == "train" and source.evaluation_only:
        raise no_split(name, split)
    hub_split, path = source.splits.get(split, "train"), config.file_of(name)
    raw = (
        READER.from_file(name, path, split=hub_split)
        if path
        else READER.from_hub(name, source, subset=source.subset, split=hub_split, revision=config.revision)
    )
    rows = READER.typed(name, source, raw, source.read)
    if source.cut:
        rows = [row for row in _clustered(source, rows) if held_out(row.cluster or "") != (split == "train")]
    if config.levels:
        rows = [row for row in rows if row.level in config.levels]
    rows = usable(name, rows)
    if not rows:
        chosen = f"split {split!r}, levels {config.levels or 'all'}"
        raise READER.nothing_left(name, chosen, "path and levels")
    return READER.drawn(name, rows, split=split, size=config.size, seed=config.seed)


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
    READER.left_out(name, dropped)
    return [row for key, row in kept.items() if key not in contradicted]


def gold_is_sound(gold: str) -> bool:
    """Whether a reply that boxes the gold is graded right, without symbols."""
    verdict = decide(gold, f"\\boxed{{{gold}}}")
    return isinstance(verdict, Verdict) and verdict.correct is True


def _clustered(source: MathSource, rows: Sequence[Row]) -> list[Row]:
    questions = [row.question for row in rows]
    stories = [row.story or row.question for row in rows]
    ids = near_clusters(questions, stories) if source.templated else exact_clusters(questions)
    return [replace(row, cluster=cluster) for row, cluster in zip(rows, ids, strict=True)]
