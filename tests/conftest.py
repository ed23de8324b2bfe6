"""Tests that need a container engine say so when there is none; no test reaches for the Hugging Face hub."""

from __future__ import annotations

import os
from functools import cache

import pytest

# The libraries read it when they are imported, so a test that sets it later waits for five retries of the network, or
# downloads a data set where there is one.
os.environ["HF_HUB_OFFLINE"] = "1"


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
