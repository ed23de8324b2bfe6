"""Where problems come from: one `MathSource` per data set, each row read into the same `Row`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from snooze_kit.rows import SplitSource


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One problem of any source."""

    question: str
    answer: str
    domain: str = ""
    level: int | None = None
    prior: float | None = None
    cluster: str | None = None
    story: str | None = None
    """The text several questions are asked about, None = each has its own."""
    bare: str | None = None
    """The prompt in `bare` style, None = the question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MathSource(SplitSource[Row]):
    """A data set, by hub name and by the columns it has there and in the usual local file."""

    templated: bool = False
    """Few stories told many times: near-duplicates are looked for before the split is cut (see clusters.py)."""


def number(value: Any) -> str:
    """A gold as exact text: 43.0 → "43", 11.5 → "11.5", 0.6666666667 → "2/3"."""
    if isinstance(value, str):
        return (
            value.strip().replace(",", "")
            if re.fullmatch(r"\s*-?[\d,]+(\.\d+)?\s*", value)
            else value.strip()
        )
    exact = Fraction(repr(value))
    if exact.denominator > 10**6:  # a rounded decimal; the ratio meant has a small denominator
        near = Fraction(value).limit_denominator(1000)
        if abs(near - exact) < Fraction(1, 10**9):
            return str(near)
    return str(int(exact)) if exact.denominator == 1 else repr(value)


def _gsm8k(row: Mapping[str, Any]) -> Row:
    return Row(
        question=row["question"].strip(),
        answer=number(row["answer"].rpartition("####")[2]),
        domain="word problem",
    )


def _math(row: Mapping[str, Any]) -> Row:
    question = (row.get("problem") or row["prompt"]).strip()
    question = re.sub(
        r"\s*Please reason step by step, and put your final answer within \\boxed\{\}\.\s*$", "", question
    )
    level = row.get("level")
    return Row(
        question=question,
        answer=str(row["answer"]).strip(),
        domain=str(row.get("subject") or "competition").lower(),
        level=int(level) if level not in (None, "") else None,
    )


def _svamp(row: Mapping[str, Any]) -> Row:
    body, question = row["Body"].strip(), row["Question"].strip()
    body = body if body.endswith((".", ",", "?", "!")) else body + "."
    domain = str(row.get("Type", "")).lower().replace("divison", "division")
    return Row(question=f"{body} {question}", answer=number(row["Answer"]), domain=domain, story=body)


def _mawps(row: Mapping[str, Any]) -> Row:
    question = re.sub(r"\s+([?.,])", r"\1", (row["input"] if "input" in row else row["question"]).strip())
    answer = row["target"] if "target" in row else row.get("result_float", row.get("result"))
    return Row(
        question=question,
        answer=number(answer),
        domain=row.get("type", "word problem"),
    )


def _dapo(row: Mapping[str, Any]) -> Row:
    prompt = row["prompt"]
    question = prompt if isinstance(prompt, str) else prompt[-1]["content"]
    return Row(question=question.strip(), answer=str(row["solution"]).strip(), domain="competition")


SOURCES: Mapping[str, MathSource] = MappingProxyType(
    {
        "gsm8k": MathSource(
            hub="openai/gsm8k",
            subset="main",
            revision="e53f048856ff4f594e959d75785d2c2d37b678ee",
            read=_gsm8k,
            splits=MappingProxyType({"train": "train", "eval": "test", "test": "test"}),
            licence="MIT",
        ),
        "gsm8k_platinum": MathSource(
            hub="madrylab/gsm8k-platinum",
            subset="main",
            read=_gsm8k,
            splits=MappingProxyType({"eval": "test", "test": "test"}),
            licence="CC BY-SA 4.0",
        ),
        "math500": MathSource(
            hub="HuggingFaceH4/MATH-500",
            read=_math,
            splits=MappingProxyType({"eval": "test", "test": "test"}),
            licence="MIT",
        ),
        "svamp": MathSource(
            hub="ChilleD/SVAMP",
            templated=True,
            read=_svamp,
            splits=MappingProxyType({"train": "train"}),
            licence="MIT",
        ),
        "mawps": MathSource(
            hub="MU-NLPC/Calc-mawps",
            templated=True,
            read=_mawps,
            splits=MappingProxyType({"train": "train"}),
            licence="MIT",
        ),
        "dapo_math": MathSource(
            hub="open-r1/DAPO-Math-17k-Processed",
            subset="en",
            read=_dapo,
            splits=MappingProxyType({"train": "train"}),
            licence="Apache-2.0",
        ),
        "deepscaler": MathSource(
            hub="agentica-org/DeepScaleR-Preview-Dataset",
            read=_math,
            splits=MappingProxyType({"train": "train"}),
            licence="MIT",
        ),
    }
)
