"""Binaries on their way into an image: what they need, and less of them."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

__all__ = ["needed", "stripped"]


def needed(binaries: Sequence[str]) -> set[str]:
    """Paths of the shared libraries that the binaries ask for, here."""
    libraries: set[str] = set()
    for start in range(0, len(binaries), 60):
        command = ["ldd", *binaries[start : start + 60]]
        listed = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        libraries.update(re.findall(r"(?:=> )?(/\S+) \(0x", listed))
    return libraries


def stripped(path: str, content: bytes) -> bytes:
    """Without debugging symbols, where `strip` is to be had."""
    if not shutil.which("strip"):
        return content
    with tempfile.NamedTemporaryFile() as out:
        done = subprocess.run(
            ["strip", "--strip-unneeded", "-o", out.name, path], capture_output=True, check=False
        )
        return Path(out.name).read_bytes() if done.returncode == 0 else content
