"""Finding the checkpoint to go on from."""

from __future__ import annotations

from pathlib import Path

STATE_DIR = "snooze"
"""Folder of the run's own state inside a transformers checkpoint."""
MARK = "loop.json"
"""Written last; a checkpoint without it was cut short by a kill."""


def last_whole_checkpoint(directory: Path) -> tuple[Path, int] | None:
    """The newest checkpoint whose state was written to the end, and its step."""
    found = [
        (int(mark.parent.parent.name.split("-")[1]), mark.parent.parent)
        for mark in directory.glob(f"checkpoint-*/{STATE_DIR}/{MARK}")
    ]
    if not found:
        return None
    step, path = max(found)
    return path, step
