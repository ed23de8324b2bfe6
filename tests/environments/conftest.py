"""Real data lives beside the repository, never in it; tests that read it say so when it is absent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

SHARED = Path(__file__).resolve().parents[3] / "shared"


@pytest.fixture(scope="session")
def shared_lines():
    """Reads a JSON-lines file of ../shared, or skips."""

    def read(name: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in shared_path(name).read_text(encoding="utf-8").splitlines()]

    return read


@pytest.fixture(scope="session")
def shared_file():
    """The path of a file of ../shared, or a skip."""
    return shared_path


def shared_path(name: str) -> Path:
    path = SHARED / name
    if not path.is_file():
        pytest.skip(f"needs {path}, which this checkout does not have beside it")
    return path
