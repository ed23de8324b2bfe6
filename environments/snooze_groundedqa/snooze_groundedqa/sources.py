"""Where published questions come from: one `QASource` per data set, each row read into the same `Row`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from snooze_kit.rows import Source, Split


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One question of any source."""

    question: str
    answers: tuple[str, ...]
    """Every gold; () where the question has no answer or any answer will do."""
    answerable: bool
    passage: str = ""
    """"" where the question stands alone."""
    id: str | None = None
    """The publisher's id, None = the prompt identifies the task."""
    domain: str = ""
    level: int | None = None
    prior: float | None = None
    cluster: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QASource(Source):
    """A data set, by hub name and by the columns it has there and in the usual local file."""

    read: Callable[[Mapping[str, Any]], Row]
    parts: Mapping[Split, tuple[tuple[str | None, str], ...]]
    """Our split → the (configuration, split) pairs of the hub that make it up; no entry = the set has none."""


def _squad(row: Mapping[str, Any]) -> Row:
    texts = row["answers"]["text"]
    return Row(
        passage=row["context"].strip(),
        question=row["question"].strip(),
        answers=tuple(dict.fromkeys(text.strip() for text in texts)),
        answerable=bool(texts),
        id=str(row["id"]),
        domain=row["title"].replace("_", " ").lower(),
        cluster=row["title"],
    )


def _coconot(row: Mapping[str, Any]) -> Row:
    # Rows of the contrast set look like the others but ought to be answered; the reader marks them by their part.
    return Row(
        question=row["prompt"].strip(),
        answers=(),
        answerable=row["part"] == "contrast",
        id=f"{row['part']}/{row['id']}",
        domain=str(row["category"]).lower(),
        cluster=str(row.get("subcategory") or row["category"]),
    )


def squad_rows(document: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The rows of a SQuAD file (articles → paragraphs → questions) with the columns the hub has."""
    for article in document["data"]:
        for paragraph in article["paragraphs"]:
            for question in paragraph["qas"]:
                answers = [] if question.get("is_impossible") else question["answers"]
                yield {
                    "id": question["id"],
                    "title": article["title"],
                    "context": paragraph["context"],
                    "question": question["question"],
                    "answers": {"text": [answer["text"] for answer in answers]},
                }


SOURCES: Mapping[str, QASource] = MappingProxyType(
    {
        "squad": QASource(
            hub="rajpurkar/squad_v2",
            read=_squad,
            parts=MappingProxyType(
                {
                    "train": ((None, "train"),),
                    "eval": ((None, "validation"),),
                    "test": ((None, "validation"),),
                }
            ),
            licence="CC BY-SA 4.0",
        ),
        "coconot": QASource(
            hub="allenai/coconot",
            read=_coconot,
            parts=MappingProxyType(
                {
                    "eval": (("original", "test"), ("contrast", "test")),
                    "test": (("original", "test"), ("contrast", "test")),
                }
            ),
            licence="ODC-BY",
        ),
    }
)
