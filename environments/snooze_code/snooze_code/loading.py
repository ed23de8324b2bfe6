"""From a source's file or hub name to clean rows: split, without faulty and repeated problems, and counted."""

from __future__ import annotations

import gzip
import json
import logging
import random
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from snooze_code.config import CodeConfig
from snooze_code.expressions import ENTRY, LEVELS, drawn
from snooze_code.faults import FAULTS
from snooze_code.problems import PRIORS, Authored, authored
from snooze_code.rows import Row, example_text, function_prompt, program_prompt
from snooze_code.sources import SOURCES, Source

logger = logging.getLogger(__name__)

EXPRESSIONS_SIZE: Mapping[str, int] = {"train": 240, "eval": 120}


class SourceError(ValueError):
    """A data set cannot be read; the message names the option that helps."""


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
        raise SourceError(f"{name}, {chosen}: no problem is left; check path, levels and kinds")
    if config.size is None:
        return rows
    if config.size > len(rows):
        raise SourceError(
            f"{name} has {len(rows)} problems in split {config.split!r}, {config.size} were asked for; lower `size`"
        )
    return random.Random(f"{config.seed}/{name}/{config.split}").sample(rows, config.size)


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
        raise SourceError(
            f"{name} is an evaluation set and has no train split; use split='test', or train on another source"
        )
    path = config.paths.get(name, config.path)  # type: ignore[call-overload]
    hub_split = source.splits.get(config.split, "train")
    raw = (
        _read_file(name, path, source, hub_split)
        if path
        else _read_hub(name, source, hub_split, config.revision)
    )
    rows = _unique(name, _read_rows(name, source, raw))
    if source.cut:
        rows = [row for row in rows if held_out(row.prompt) != (config.split == "train")]
    listed = {} if config.faulty else FAULTS.get(name, {})
    sound = [row for row in rows if row.id not in listed]
    if len(sound) < len(rows):
        logger.info("%s: left out %d problems listed as faulty", name, len(rows) - len(sound))
    return sound


def _read_rows(name: str, source: Source, raw: Iterable[Mapping[str, Any]]) -> list[Row]:
    rows, without = [], 0
    for place, row in enumerate(raw):
        try:
            read = source.read(row)
        except (KeyError, TypeError, AttributeError, ValueError, SyntaxError) as error:
            raise SourceError(
                f"row {place} of {name} has the fields {sorted(row)}, which this source cannot read "
                f"({type(error).__name__}: {error}); give a file in the format of {source.hub}"
            ) from error
        if read is None:
            without += 1
        else:
            rows.append(read)
    if without:
        logger.info("%s: left out %d problems without a test that the prompt does not show", name, without)
    return rows


def _unique(name: str, rows: Sequence[Row]) -> list[Row]:
    kept: dict[str, Row] = {}
    for row in rows:
        kept.setdefault(row.id or row.prompt, row)
    if len(kept) < len(rows):
        logger.info("%s: left out %d problems repeated", name, len(rows) - len(kept))
    return list(kept.values())


def _read_file(name: str, path: Path, source: Source, hub_split: str) -> list[Mapping[str, Any]]:
    path = Path(str(path).replace("{split}", hub_split))
    if not path.is_file():
        raise SourceError(
            f"{name}: there is no file {path}; give `path` a JSON-lines or JSON file, .gz or not"
        )
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8")
    try:
        if text.lstrip().startswith("["):
            rows = json.loads(text)
        else:
            rows = [json.loads(line) for line in text.splitlines() if line.strip()]
    except ValueError as error:
        raise SourceError(f"{path} is neither JSON lines nor a JSON list: {error}") from error
    return [row for row in rows if source.split_of is None or source.split_of(row) == hub_split]


def _read_hub(name: str, source: Source, hub_split: str, revision: str | None) -> Iterable[Mapping[str, Any]]:
    advice = f"give a local JSON-lines file: path=/data/{name}.jsonl"
    try:
        import datasets
    except ModuleNotFoundError as error:
        raise SourceError(
            f"{name} comes from the Hugging Face hub ({source.hub}), which needs the `datasets` package: "
            f"pip install 'snooze-code[hub]', or {advice}"
        ) from error
    try:
        return datasets.load_dataset(source.hub, source.subset, split=hub_split, revision=revision)
    # datasets raises many types for an unreachable, renamed or gated set; each needs the same advice.
    except (OSError, ValueError, RuntimeError) as error:
        raise SourceError(
            f"{name}: the Hugging Face hub did not give {source.hub} ({type(error).__name__}: {error}); "
            f"check the network and, for gated sets, HF_TOKEN, or {advice}"
        ) from error
