"""Rows with their provenance, from files and from the hub.

A source is one word of the command line, an address with options as in a URL:

    gsm8k_train.jsonl · data.parquet?text=problem · prompts.csv?id=uid          files, by their ending
    hub:openai/gsm8k?subset=main&split=train&revision=cc7b047b6e5bb11b4f1af84efc572db110a51b3c
    env:snooze-math?source=gsm8k&path=gsm8k_{split}.jsonl                       an installed environment (read by the caller)
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Literal, TextIO, cast
from urllib.parse import parse_qsl

from snoozing_env.errors import PoolError, did_you_mean
from snoozing_env.pool.text import text_hash

TEXT_FIELDS = ("prompt", "question", "problem", "text", "instruction", "input", "query")
"""Looked for in this order where a source names no field."""
KEY_FIELDS = ("key", "id", "task_id", "uid")
_OPTIONS = ("text", "id", "parent", "split", "subset", "revision", "limit")
_ENDINGS = (".jsonl", ".json", ".jsonl.gz", ".parquet", ".csv")

Side = Literal["train", "evaluation"]
Stage = Literal["original", "augmented"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolRow:
    """One text and where it came from."""

    text: str
    source: str
    """The address it was read from, options left out."""
    revision: str
    """Hub commit or tag; `sha256:…` of a file's bytes; "" where the source has none."""
    row: int
    """Place in the source, from 0."""
    key: str
    """The task's durable key, the row's own id, or else the hash."""
    hash: str
    """`text_hash` of the text: the same for the same text in other dress."""
    side: Side
    stage: Stage = "original"
    parent: str = ""
    """Key of the row that augmentation made this one from, "" = unknown or none."""

    @property
    def provenance(self) -> dict[str, Any]:
        """The columns that say which row this is."""
        return {"key": self.key, "source": self.source, "revision": self.revision, "row": self.row, "hash": self.hash}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A source as it was written."""

    kind: Literal["file", "hub", "env"]
    name: str
    """Path, hub name or environment id."""
    options: Mapping[str, str]

    @classmethod
    def parse(cls, spelled: str) -> Address:
        """Raises `PoolError` for an address that names no source or an option nobody reads."""
        name, _, query = spelled.partition("?")
        options = dict(parse_qsl(query, keep_blank_values=True))
        prefix, colon, rest = name.partition(":")
        if colon and prefix in ("file", "hub", "env"):
            kind, name = prefix, rest
        elif name.endswith(_ENDINGS) or Path(name).is_file():
            kind = "file"
        else:
            raise PoolError(
                f"{spelled!r} is no source: there is no such file. Write a file ending in {', '.join(_ENDINGS)}, "
                "hub:OWNER/NAME or env:ENVIRONMENT; options follow a question mark, e.g. hub:openai/gsm8k?subset=main"
            )
        unknown = sorted(set(options) - set(_OPTIONS))
        if kind != "env" and unknown:
            hint = did_you_mean(unknown[0], _OPTIONS) or f" Options: {', '.join(_OPTIONS)}."
            raise PoolError(f"{spelled!r}: unknown option {unknown[0]!r}.{hint}")
        return cls(kind=kind, name=name, options=options)

    @property
    def limit(self) -> int | None:
        limit = self.options.get("limit")
        if limit is not None and not (limit.isdigit() and int(limit) > 0):
            raise PoolError(f"{self.name}: limit is {limit!r}; give a number of rows, at least 1")
        return None if limit is None else int(limit)


Reader = Callable[[Address], Iterable[PoolRow]]
"""Reads an `env:` address; the command line passes the one of the rollout layer."""


def read_rows(spelled: str, *, side: Side, stage: Stage = "original", environment: Reader | None = None) -> list[PoolRow]:  # fmt: skip
    """Every row of one source.

    Raises:
        PoolError: the source is missing, unreadable, empty, or has no text field; the message says what it has.
    """
    address = Address.parse(spelled)
    if address.kind == "env":
        if environment is None:
            raise PoolError(f"{spelled!r} is an environment; `snooze pool` reads those, this caller does not")
        rows = [replace(row, side=side, stage=stage) for row in islice(environment(address), address.limit)]
    else:
        raw, revision = _read_file(address) if address.kind == "file" else _read_hub(address)
        rows = list(_rows(address, islice(raw, address.limit), revision, side, stage))
    if not rows:
        raise PoolError(f"{spelled!r} has no rows; check the path, the split and the limit")
    return rows


def _rows(
    address: Address, raw: Iterable[Mapping[str, Any]], revision: str, side: Side, stage: Stage
) -> Iterator[PoolRow]:
    field = key_field = ""
    for place, row in enumerate(raw):
        if not field:
            field = _text_field(address, row)
            key_field = address.options.get("id") or next((k for k in KEY_FIELDS if k in row), "")
        text = _as_text(row.get(field))
        if text is None:
            raise PoolError(
                f"{address.name}, row {place}: the field {field!r} holds {type(row.get(field)).__name__}, wanted text or a list of messages"
            )
        fingerprint = text_hash(text)
        key = row.get(key_field)
        yield PoolRow(
            text=text, source=address.name, revision=revision, row=place, hash=fingerprint, side=side, stage=stage,
            key=fingerprint if key is None or key == "" else str(key),
            parent=str(row.get(address.options.get("parent", "parent")) or ""),
        )  # fmt: skip


def _text_field(address: Address, row: Mapping[str, Any]) -> str:
    asked = address.options.get("text")
    if asked is not None:
        if asked not in row:
            raise PoolError(
                f"{address.name} has no field {asked!r}.{did_you_mean(asked, row)} Its fields: {', '.join(sorted(row))}."
            )
        return asked
    for name in TEXT_FIELDS:
        if name in row:
            return name
    raise PoolError(
        f"{address.name} has none of the usual text fields ({', '.join(TEXT_FIELDS)}); name one, "
        f"e.g. {address.name}?text=… Its fields: {', '.join(sorted(row))}."
    )


def _as_text(value: object) -> str | None:
    """A text as it stands; a conversation as its user messages, one after the other."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        parts = [
            str(cast("Mapping[str, Any]", message).get("content") or "")
            for message in cast("list[object]", value)
            if isinstance(message, Mapping)
            and cast("Mapping[str, Any]", message).get("role", "user") == "user"
        ]
        return "\n".join(parts)
    return None


def _read_file(address: Address) -> tuple[Iterable[Mapping[str, Any]], str]:
    path = Path(address.name).expanduser()
    if not path.is_file():
        raise PoolError(f"there is no file {path}")
    revision = f"sha256:{_digest(path)[:16]}"
    if path.suffix == ".parquet":
        return _parquet(path), revision
    if path.suffix == ".csv":
        return _csv(path), revision
    return _json_lines(path), revision


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _parquet(path: Path) -> Iterator[Mapping[str, Any]]:
    import pyarrow.parquet  # pyright: ignore[reportMissingTypeStubs]

    parquet: Any = pyarrow.parquet  # it ships no types
    try:
        for batch in parquet.ParquetFile(path).iter_batches():
            yield from batch.to_pylist()
    except ValueError as error:
        raise PoolError(f"{path} is no readable parquet file: {error}") from error


def _csv(path: Path) -> Iterator[Mapping[str, Any]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        yield from csv.DictReader(file)


def _json_lines(path: Path) -> Iterator[Mapping[str, Any]]:
    with _opened(path) as file:
        first = file.read(1)
        file.seek(0)
        if path.suffix == ".json" and first == "[":
            yield from json.load(file)
            return
        for number, line in enumerate(file, start=1):
            if line.strip():
                yield _object(path, number, line)


def _opened(path: Path) -> TextIO:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8")  # the caller closes it
    return path.open(encoding="utf-8")


def _object(path: Path, number: int, line: str) -> Mapping[str, Any]:
    try:
        row = json.loads(line)
    except json.JSONDecodeError as error:
        raise PoolError(f"{path}, line {number} is not JSON: {error.msg}") from error
    if not isinstance(row, dict):
        raise PoolError(
            f"{path}, line {number} is a JSON {type(row).__name__}, wanted an object with a text field"
        )
    return cast("Mapping[str, Any]", row)


def _read_hub(address: Address) -> tuple[Iterable[Mapping[str, Any]], str]:
    options = address.options
    try:
        import datasets  # pyright: ignore[reportMissingTypeStubs, reportMissingImports]
    except ModuleNotFoundError as error:
        raise PoolError(
            f"hub:{address.name} needs the `datasets` package: pip install datasets, or give a local file"
        ) from error
    try:
        rows = datasets.load_dataset(  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
            address.name, options.get("subset"), split=options.get("split", "train"), revision=options.get("revision")
        )  # fmt: skip
    # datasets raises many types for an unreachable, renamed or gated set; each needs the same advice.
    except (OSError, ValueError, RuntimeError) as error:
        raise PoolError(
            f"the Hugging Face hub did not give {address.name} ({type(error).__name__}: {error}); check name, subset, split, "
            "the network and, for gated sets, HF_TOKEN, or give a local file"
        ) from error
    return cast("Iterable[Mapping[str, Any]]", rows), options.get("revision", "")
