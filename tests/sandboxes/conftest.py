"""Tests that need a container engine say so when there is none."""

from __future__ import annotations

import asyncio
from functools import cache

import pytest
from snoozing_sandboxes import EngineUnavailable, open_pool
from snoozing_sandboxes.engine import connect


@cache
def engine_missing() -> str:
    """Why no engine can be used; "" if one can."""
    try:
        with connect(None) as client:
            client.ping()
    except EngineUnavailable as error:
        return str(error)
    return ""


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("docker") and engine_missing():
        pytest.skip(engine_missing())


BACKENDS = ["local", pytest.param("docker", marks=pytest.mark.docker)]


@pytest.fixture(scope="module", params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def loop():
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="module")
def pool(loop: asyncio.Runner, backend: str):
    pool = open_pool(backend=backend, boxes=2, spares=0)
    loop.run(pool.__aenter__())
    yield pool
    loop.run(pool.close())
