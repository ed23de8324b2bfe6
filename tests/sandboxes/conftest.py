"""Pools of both backends."""

from __future__ import annotations

import asyncio

import pytest
from snoozing_sandboxes import open_pool

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
