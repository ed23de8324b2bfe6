"""A fresh clone and two commands, with and without the shared data beside it (must-show 1 and 2)."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
SHARED = ROOT.parent / "shared"


def figures(quick: bool) -> dict[str, Any]:
    """Wall seconds of `make demo` and `make test` in fresh clones of the committed state."""
    with tempfile.TemporaryDirectory() as folder:
        clone, alone = Path(folder) / "with" / "clone", Path(folder) / "alone" / "clone"
        for target in (clone, alone):
            subprocess.run(["git", "clone", "-q", str(ROOT), str(target)], check=True)
        if SHARED.exists():
            (clone.parent / "shared").symlink_to(SHARED)
        result: dict[str, Any] = {}
        result["demo_s"], _ = _make(alone, "demo", Path(folder))
        result["demo_report"] = (alone / "runs" / "demo" / "report.html").exists()
        result["test_without_shared_s"], output = _make(alone, "test", Path(folder))
        result["test_without_shared"] = _closing_line(output)
        result["test_with_install_s"], output = _make(clone, "test", Path(folder))
        result["test"] = _closing_line(output)
        return result


def _make(clone: Path, target: str, folder: Path) -> tuple[float, str]:
    environment = {**os.environ, "SNOOZE_CACHE": str(folder / "cache" / clone.parent.name)}
    environment.pop("VIRTUAL_ENV", None)
    started = time.monotonic()
    done = subprocess.run(
        ["make", target], cwd=clone, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"make {target} failed: {(done.stdout + done.stderr)[-1500:]}")
    return round(time.monotonic() - started, 1), done.stdout


def _closing_line(output: str) -> str:
    found = re.findall(r"^.*\d+ passed.*$", output, flags=re.M)
    return found[-1].strip() if found else "no closing line"
