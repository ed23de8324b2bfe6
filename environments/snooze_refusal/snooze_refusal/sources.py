"""Where prompts come from besides the embedded set: one `RefusalSource` per data set, each row read into the same `Row`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from snooze_kit.rows import Source, Split

from snooze_refusal.sides import Row


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One table of a data set on the hub."""

    subset: str | None
    split: str
    read: Callable[[Mapping[str, Any]], Row | None]
    """None = the publisher gave no label this environment can use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusalSource(Source):
    """A data set, by hub name and by the columns it has there and in a local file of the same format."""

    gated: bool = False
    parts: Mapping[Split, Part]
    """Our split → the table it is read from; a split that is missing does not exist."""
    minus: Part | None = None
    """A table whose prompts are taken out of "train": the publisher's own hard subset, kept for evaluation."""


def _safe(row: Mapping[str, Any]) -> Row:
    return Row(prompt=row["prompt"].strip(), side="comply", domain=str(row.get("category") or ""))


def _toxic(row: Mapping[str, Any]) -> Row:
    return Row(prompt=row["prompt"].strip(), side="refuse", domain=str(row.get("category") or ""))


def _wildguard(row: Mapping[str, Any]) -> Row | None:
    side = {"harmful": "refuse", "unharmful": "comply"}.get(row["prompt_harm_label"] or "")
    if side is None:
        return None
    return Row(
        prompt=row["prompt"].strip(),
        side="refuse" if side == "refuse" else "comply",
        domain=str(row.get("subcategory") or ""),
    )


def _xstest(row: Mapping[str, Any]) -> Row:
    side = {"safe": "comply", "unsafe": "refuse"}[row["label"]]
    return Row(
        prompt=row["prompt"].strip(),
        side="refuse" if side == "refuse" else "comply",
        id=str(row["id"]) if row.get("id") else None,
        domain=str(row["type"]).removeprefix("contrast_"),
        mechanism=str(row["type"]),
    )


_HARD = Part(subset="or-bench-hard-1k", split="train", read=_safe)
_TOXIC = Part(subset="or-bench-toxic", split="train", read=_toxic)
_XSTEST = Part(subset=None, split="test", read=_xstest)
_WILDTEST = Part(subset="wildguardtest", split="test", read=_wildguard)

SOURCES: Mapping[str, RefusalSource] = MappingProxyType(
    {
        "or_bench": RefusalSource(
            hub="bench-llm/or-bench",
            parts=MappingProxyType(
                {
                    "train": Part(subset="or-bench-80k", split="train", read=_safe),
                    "eval": _HARD,
                    "test": _HARD,
                }
            ),
            minus=_HARD,
            licence="CC BY 4.0",
        ),
        "or_bench_toxic": RefusalSource(
            hub="bench-llm/or-bench",
            parts=MappingProxyType({"eval": _TOXIC, "test": _TOXIC}),
            licence="CC BY 4.0",
        ),
        "wildguardmix": RefusalSource(
            hub="allenai/wildguardmix",
            parts=MappingProxyType(
                {
                    "train": Part(subset="wildguardtrain", split="train", read=_wildguard),
                    "eval": _WILDTEST,
                    "test": _WILDTEST,
                }
            ),
            gated=True,
            licence="ODC-BY 1.0",
        ),
        "xstest": RefusalSource(
            hub="walledai/XSTest",
            parts=MappingProxyType({"eval": _XSTEST, "test": _XSTEST}),
            gated=True,
            licence="CC BY 4.0",
        ),
    }
)
