"""Lab policies of a test session live in a folder of its own."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Lab policies of this test session, in a folder of its own."""
    folder = tmp_path_factory.mktemp("cache")
    patch = pytest.MonkeyPatch()
    patch.setenv("SNOOZE_CACHE", str(folder))
    return folder


@pytest.fixture(scope="session")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Directory of a lab policy with random weights, the smallest one."""
    from snoozing_env.train.lab import LabConfig, build_lab_policy

    config = LabConfig(hidden_size=32, layers=1, heads=1, kv_heads=1, warmup={"steps": 0})
    return build_lab_policy(config, cache_dir=tmp_path_factory.mktemp("lab"))
