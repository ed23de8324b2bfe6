"""From a source's file or hub name to clean rows: split, without faulty and repeated problems, and counted."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any

from snooze_kit.rows import RowReader, no_split

from snooze_code.config import CodeConfig
from snooze_code.expressions import ENTRY, LEVELS, drawn
from snooze_code.faults import FAULTS
from snooze_code.problems import PRIORS, Authored, authored
from snooze_code.rows import Row, example_text, function_prompt, program_prompt
from snooze_code.sources import SOURCES, CodeSource

READER = RowReader(
    package="snooze-code",
    noun="problems",
    logger=logging.getLogger(__name__),
    local="a local JSON-lines file",
)

EXPRESSIONS_SIZE: Mapping[str, int] = {"train": 240, "eval": 120}


def rows_of(name: str, config: CodeConfig) -> list[Row]:
    """Rows of a source in the split, levels, kinds and size that the config asks for."""
    if name == "expressions":
        return _expressions(config)
    rows = [row_of(p) for p in authored()] if name == "authored" else _named(name, config)
    if name == "authored":
        rows = [row for row in rows if held_out(row.id or "") != (config.split == "train")]
    if config.levels:
        rows = [row for row in rows if row.level in config.levels]
    if config.kinds:
        rows = [row for row in rows if ("function" if row.entry else "program") in config.kinds]
    if not rows:
        chosen = f"split {config.split!r}, levels {config.levels or 'all'}, kinds {config.kinds or 'all'}"
        raise READER.nothing_left(name, chosen, "path, levels and kinds")
    return READER.drawn(name, rows, split=config.split, size=config.size, seed=config.seed)


def held_out(text: str) -> bool:
    """One problem in five, by content."""
    return int(sha256(text.encode()).hexdigest()[:8], 16) % 5 == 0


def row_of(problem: Authored) -> Row:
    """An embedded problem as a row."""
    if problem.signature:
        prompt = function_prompt(
            problem.statement, f"def {problem.signature}", "\n".join(map(str, problem.examples))
        )
    else:
        shown = "\n".join(example_text(given, wanted) for given, wanted in problem.examples)
        prompt = program_prompt(problem.statement, shown)
    return Row(
        id=problem.name,
        prompt=prompt,
        suite=problem.suite,
        entry=problem.entry,
        reference=problem.reference,
        domain=problem.domain,
        level=problem.level,
        prior=PRIORS[problem.level],
        cluster=f"level {problem.level} {problem.domain}",
    )


def _expressions(config: CodeConfig) -> list[Row]:
    split = "train" if config.split == "train" else "eval"
    made = drawn(
        split=split,
        size=config.size or EXPRESSIONS_SIZE[split],
        levels=config.levels or sorted(LEVELS),
        seed=config.seed,
    )
    return [
        Row(
            id=None,
            prompt=e.prompt if config.style == "bare" else _in_words(e.prompt),
            suite=e.suite,
            entry=ENTRY,
            reference=e.answer if config.style == "bare" else f"def {ENTRY}(x):\n    return {e.answer}",
            domain=e.form,
            level=e.level,
            prior=LEVELS[e.level].prior,
            cluster=f"level {e.level} {e.form}",
            bare=config.style == "bare",
        )
        for e in made
    ]


def _in_words(points: str) -> str:
    statement = (
        "Find a function of one integer made of x, digits and at most two of the operations +, - and *, with these "
        "values. It is tested on other inputs."
    )
    return function_prompt(
        statement, "def f(x: int) -> int", points.rstrip(";").replace(" ", "\n").replace("=", " == ")
    )


def _named(name: str, config: CodeConfig) -> list[Row]:
    source = SOURCES[name]
    if config.split == "train" and source.evaluation_only:
        raise no_split(name, config.split)
    read = READER.typed(name, source, _raw(name, source, config), source.read)
    with_tests = [row for row in read if row is not None]
    rows = _unique(with_tests)
    READER.left_out(
        name,
        {
            "without a test that the prompt does not show": len(read) - len(with_tests),
            "repeated": len(with_tests) - len(rows),
        },
    )
    if source.cut:
        rows = [row for row in rows if held_out(row.prompt) != (config.split == "train")]
    listed = {} if config.faulty else FAULTS.get(name, {})
    sound = [row for row in rows if row.id not in listed]
    READER.left_out(name, {"listed as faulty": len(rows) - len(sound)})
    return sound


def _raw(name: str, source: CodeSource, config: CodeConfig) -> Iterable[Mapping[str, Any]]:
    split, path = source.splits.get(config.split, "train"), config.file_of(name)
    if path is None:
        return READER.from_hub(name, source, subset=source.subset, split=split, revision=config.revision)
    raw = READER.from_file(name, path, split=split)
    if source.split_of is None:
        return raw
    splits = READER.typed(name, source, raw, source.split_of)
    return [row for row, of_row in zip(raw, splits, strict=True) if of_row == split]


def _unique(rows: Sequence[Row]) -> list[Row]:
    kept: dict[str, Row] = {}
    for row in rows:
        kept.setdefault(row.id or row.prompt, row)
    return list(kept.values())
