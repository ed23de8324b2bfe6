"""Tests that need a container engine say so when there is none."""

from __future__ import annotations

from functools import cache

import docker
import pytest
import requests


@cache
def engine_missing() -> str:
    """Why no engine can be used; "" if one can."""
    try:
        client = docker.DockerClient.from_env(timeout=10)
        try:
            client.ping()
        finally:
            client.close()
    except (docker.errors.DockerException, requests.RequestException, OSError) as error:
        return f"needs a Docker engine: {error}"
    return ""


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("docker") and engine_missing():
        pytest.skip(engine_missing())
