"""The task set of `plain_echo.py`, importable under the name verifiers looks it up by."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from snoozing_env.rollout.catalogue import Catalogue, EnvironmentConfig, load_catalogue

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def echo() -> Callable[..., Catalogue]:
    def load(**taskset: object) -> Catalogue:
        return load_catalogue(EnvironmentConfig(id="plain-echo", taskset=taskset))

    return load
