"""The task set of `plain_echo.py`, importable under the name verifiers looks it up by."""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from snoozing_env.rollout.catalogue import Catalogue, EnvironmentConfig, load_catalogue

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def echo() -> Callable[..., Catalogue]:
    def load(**taskset: object) -> Catalogue:
        return load_catalogue(EnvironmentConfig(id="plain-echo", taskset=taskset))

    return load


@pytest.fixture
def evaluated(tmp_path: Path) -> Callable[..., Any]:
    """`run_evaluation` into this test's folder."""
    from eval_runs import run_evaluation

    return partial(run_evaluation, tmp_path)
