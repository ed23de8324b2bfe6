"""The authored projects: their sources as text, and what they promise."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from snooze_repair.checks import Checks, parse_checks

ROOT = Path(__file__).parent / "projects"
HELD_OUT = (
    "bowling",
    "bank_ledger",
    "glob_match",
    "inventory",
    "markdown",
    "ring_stats",
    "semver",
    "spreadsheet",
    "text_wrap",
)
"""Projects of the `eval` split, whole: a bug in a project seen in training is no new problem. Small and large ones."""

Split = Literal["train", "eval"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A working program of a few files."""

    name: str
    files: Mapping[str, str]
    """Path in the episode's folder → text."""
    checks: Checks

    @property
    def split(self) -> Split:
        return "eval" if self.name in HELD_OUT else "train"

    @property
    def lines(self) -> int:
        """Lines that hold code."""
        return sum(bool(line.strip()) for text in self.files.values() for line in text.splitlines())

    def digest(self) -> str:
        """SHA-256 over files and checks; what the bank was verified against."""
        text = "\0".join(
            [*(f"{path}\0{self.files[path]}" for path in sorted(self.files)), self.checks.tests()]
        )
        return hashlib.sha256(text.encode()).hexdigest()


@cache
def projects() -> Mapping[str, Project]:
    """All of them by name, read once."""
    return {project.name: project for project in _read()}


def _read() -> Iterator[Project]:
    for folder in sorted(path for path in ROOT.iterdir() if (path / "checks.txt").is_file()):
        files = {path.name: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.py"))}
        checks = parse_checks((folder / "checks.txt").read_text(encoding="utf-8"))
        yield Project(name=folder.name, files=files, checks=checks)
