"""Tests that need a container engine say so when there is none."""

from __future__ import annotations

from functools import cache

import pytest


@cache
def engine_missing() -> str:
    """Why no engine can be used; "" if one can."""
    from snoozing_sandboxes import EngineUnavailable
    from snoozing_sandboxes.engine import connect

    try:
        with connect(None) as client:
            client.ping()
    except EngineUnavailable as error:
        return str(error)
    return ""


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("docker") and engine_missing():
        pytest.skip(engine_missing())
