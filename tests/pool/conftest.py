"""Rows made by hand; real data lives beside the repository, never in it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from snoozing_env.pool.config import PoolConfig
from snoozing_env.pool.inspection import Inspection, inspect_pool
from snoozing_env.pool.rows import PoolRow, Side
from snoozing_env.pool.text import text_hash

SHARED = Path(__file__).resolve().parents[3] / "shared"


def rows(texts: Sequence[str], side: Side = "train") -> list[PoolRow]:
    return [
        PoolRow(text=text, source=side, revision="r1", row=place, key=f"{side}-{place}", hash=text_hash(text), side=side)
        for place, text in enumerate(texts)
    ]  # fmt: skip


@pytest.fixture(scope="session")
def made_rows():
    return rows


@pytest.fixture(scope="session")
def inspect():
    """Inspects texts to train on against evaluation texts; options are PoolConfig's."""

    def look(train: Sequence[str], evaluation: Sequence[str] = (), **options: object) -> Inspection:
        config = PoolConfig(train=["made by hand"], **options)
        return inspect_pool([*rows(train), *rows(evaluation, "evaluation")], config)

    return look


@pytest.fixture(scope="session")
def questions():
    """The questions of a GSM8K split, or a skip."""

    def read(name: str) -> list[str]:
        path = SHARED / "data/math" / f"{name}.jsonl"
        if not path.is_file():
            pytest.skip(f"needs {path}, which this checkout does not have beside it")
        return [json.loads(line)["question"] for line in path.read_text(encoding="utf-8").splitlines()]

    return read
