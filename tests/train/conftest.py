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
