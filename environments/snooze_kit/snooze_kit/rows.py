"""Published data sets as rows: from a local file or the Hugging Face hub, and what is said when they cannot be had.

    file or hub ─▶ the publisher's columns ─▶ `read` of the source ─▶ rows of the environment ─▶ all, or `size` drawn by a seed

An environment names its sources, reads one mapping into one of its rows, and says which rows it leaves out; the rest is
the same everywhere and stands here. No verifiers: a grader's tests may import it.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import logging
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

Split = Literal["train", "eval", "test"]
RowT = TypeVar("RowT")

FILES = "a JSON-lines, JSON, .csv or .parquet file, .gz or not"
_UNREADABLE = (LookupError, TypeError, AttributeError, ValueError, SyntaxError)
"""What reading a row of another format raises; anything else is a bug of the reader."""


class SourceError(ValueError):
    """A data set cannot be read; the message names the option that helps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where a data set is published."""

    hub: str
    """Hugging Face name."""
    licence: str
    revision: str | None = None
    """Commit the hub is read at; None = its main branch, pin it with `revision` in the config."""
    gated: bool | None = None
    """Whether only accounts that accepted the publisher's terms get it, None = it is not known."""

    @property
    def way_in(self) -> str:
        """What to try when the hub does not give it."""
        if self.gated is None:
            return "check the network and, for gated sets, HF_TOKEN"
        if not self.gated:
            return "check the network"
        return f"{self.hub} is gated: accept its terms at https://huggingface.co/datasets/{self.hub} and set HF_TOKEN"


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitSource(Source, Generic[RowT]):
    """A set that is one table on the hub; what the publisher did not split is cut by content."""

    read: Callable[[Mapping[str, Any]], RowT]
    """One mapping of the hub's table, or of the usual local file, as a row."""
    subset: str | None = None
    splits: Mapping[Split, str] = field(default_factory=dict)
    """Our split → the hub's. A missing "test" is cut from "train"."""

    @property
    def cut(self) -> bool:
        """Whether train and held-out rows are told apart by content, not by the publisher."""
        return "test" not in self.splits

    @property
    def evaluation_only(self) -> bool:
        return "train" not in self.splits


@dataclass(frozen=True, slots=True, kw_only=True)
class RowReader:
    """Reads the published sets of one environment; the fields are its words in messages."""

    package: str
    """Name under which the environment is installed; its `hub` extra brings the `datasets` package."""
    noun: str
    """What a row is, in the plural: "problems"."""
    logger: logging.Logger
    """Told, at INFO, how many rows are left out and why."""
    placeholder: str = "it may contain {split}"
    """What a local path may hold in place of a name."""
    local: str = "a local file"
    """What is advised where the hub is out of reach."""

    def find(self, name: str, path: Path, **fill: str) -> Path:
        """The file of a set, `{key}` in its path replaced by the value of `fill`; raises `SourceError` where there is none."""
        text = str(path)
        for key, value in fill.items():
            text = text.replace(f"{{{key}}}", value)
        file = Path(text).expanduser()
        if not file.is_file():
            raise SourceError(f"{name}: there is no file {file}; give `path` {FILES} ({self.placeholder})")
        return file

    def from_file(self, name: str, path: Path, **fill: str) -> list[Mapping[str, Any]]:
        """All rows of a local file with the publisher's columns."""
        return self.parse(self.find(name, path, **fill))

    def parse(self, file: Path) -> list[Mapping[str, Any]]:
        """The rows of a file by its ending: .csv, .parquet, else JSON lines or a JSON list; each may be gzipped."""
        data, ending = file.read_bytes(), file.suffix
        try:
            if ending == ".gz":
                data, ending = gzip.decompress(data), file.with_suffix("").suffix
            if ending == ".parquet":
                return self._parquet(file, data)
            # Spreadsheets write a byte order mark before the name of the first column.
            text = data.decode("utf-8-sig")
        except (gzip.BadGzipFile, EOFError, UnicodeDecodeError) as error:
            raise SourceError(
                f"{file} cannot be read ({type(error).__name__}: {error}); give `path` {FILES}"
            ) from error
        if ending == ".csv":
            return list(csv.DictReader(io.StringIO(text, newline="")))
        return _json_rows(file, text)

    def from_hub(
        self, name: str, source: Source, *, subset: str | None, split: str, revision: str | None
    ) -> Iterable[Mapping[str, Any]]:
        """A table of the hub, at `revision` or else at the one pinned in `source`."""
        advice = f"give {self.local}: path=/data/{name}.jsonl"
        try:
            import datasets
        except ModuleNotFoundError as error:
            raise SourceError(
                f"{name} comes from the Hugging Face hub ({source.hub}), which needs the `datasets` package: "
                f"pip install '{self.package}[hub]', or {advice}"
            ) from error
        try:
            return datasets.load_dataset(
                source.hub, subset, split=split, revision=revision or source.revision
            )
        # datasets raises many types for an unreachable, renamed or gated set; each needs the same advice.
        except (OSError, ValueError, RuntimeError) as error:
            raise SourceError(
                f"{name}: the Hugging Face hub did not give {source.hub} ({type(error).__name__}: {error}); "
                f"{source.way_in}, or {advice}"
            ) from error

    def typed(
        self, name: str, source: Source, raw: Iterable[Any], read: Callable[[Mapping[str, Any]], RowT]
    ) -> list[RowT]:
        """Every row through `read`, in order; one of another format is refused with its place and its fields."""
        rows = []
        for place, row in enumerate(raw):
            try:
                rows.append(read(row))
            except _UNREADABLE as error:
                what = (
                    f"has the fields {sorted(map(str, row))}"
                    if isinstance(row, Mapping)
                    else f"is a {type(row).__name__}"
                )
                raise SourceError(
                    f"row {place} of {name} {what}, which this source cannot read "
                    f"({type(error).__name__}: {error}); give a file in the format of {source.hub}"
                ) from error
        return rows

    def left_out(self, name: str, counts: Mapping[str, int]) -> None:
        """Logs how many rows of a set were left out, by reason."""
        for why, count in counts.items():
            if count:
                self.logger.info("%s: left out %d %s %s", name, count, self.noun, why)

    def drawn(
        self, name: str, rows: Sequence[RowT], *, split: Split, size: int | None, seed: int
    ) -> list[RowT]:
        """All rows in their order, or `size` of them by `seed`; raises `SourceError` where there are fewer."""
        if size is None:
            return list(rows)
        self.enough(name, rows, split=split, size=size)
        return seeded(name, split, seed).sample(rows, size)

    def enough(self, name: str, rows: Sequence[Any], *, split: Split, size: int) -> None:
        """Raises `SourceError` where there are fewer rows than were asked for."""
        if size > len(rows):
            raise SourceError(
                f"{name} has {len(rows)} {self.noun} in split {split!r}, {size} were asked for; lower `size`"
            )

    def nothing_left(self, name: str, chosen: str, options: str) -> SourceError:
        """What to raise where a choice leaves no row: the choice, and the options that made it."""
        return SourceError(f"{name}, {chosen}: no {self.noun.removesuffix('s')} is left; check {options}")

    def _parquet(self, file: Path, data: bytes) -> list[Mapping[str, Any]]:
        try:
            import pyarrow
            from pyarrow import parquet
        except ModuleNotFoundError as error:
            raise SourceError(
                f"{file} is read with pyarrow: pip install '{self.package}[hub]', or give `path` a JSON-lines file"
            ) from error
        try:
            return parquet.read_table(io.BytesIO(data)).to_pylist()
        except pyarrow.ArrowException as error:
            raise SourceError(f"{file} is not a parquet file ({error}); give `path` {FILES}") from error


def no_split(name: str, split: Split) -> SourceError:
    """What to raise for a split that the publisher does not have."""
    return SourceError(
        f"{name} is an evaluation set and has no {split} split; use split='test', or train on another source"
    )


def seeded(name: str, split: Split, seed: int) -> random.Random:
    """The generator that draws from a set. A seed of text hashes with sha512: it is stable across processes."""
    return random.Random(f"{seed}/{name}/{split}")


def _json_rows(file: Path, text: str) -> list[Mapping[str, Any]]:
    whole = text.lstrip().startswith("[")
    values = []
    # Not splitlines(): it also splits at characters that JSON allows inside a string, such as U+2028.
    for offset, part in enumerate([text] if whole else text.split("\n")):
        if not part.strip():
            continue
        try:
            values.append(json.loads(part))
        except json.JSONDecodeError as error:
            raise SourceError(
                f"{file} is neither JSON lines nor a JSON list: line {offset + error.lineno} is not JSON ({error.msg}); "
                f"give `path` {FILES}"
            ) from error
    return values[0] if whole else values
