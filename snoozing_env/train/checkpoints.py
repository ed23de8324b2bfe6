"""Finding the checkpoint to go on from, and naming what kept one from being written."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from safetensors import SafetensorError

from snoozing_env.errors import StateError

TORCH_SAYS = ("PytorchStreamWriter", "inline_container", "iostream error")
"""What the RuntimeError of a failed `torch.save` speaks of."""
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


@contextmanager
def named_failure(directory: str | Path) -> Iterator[None]:
    """Around libraries that write a checkpoint.

    Raises:
        StateError: the disk is full or the directory cannot be written, in whatever words the library has for it.
    """
    try:
        yield
    except (OSError, RuntimeError, SafetensorError) as error:
        if isinstance(error, RuntimeError) and not any(word in str(error) for word in TORCH_SAYS):
            raise
        free = shutil.disk_usage(directory).free
        raise StateError(
            f"cannot save a checkpoint in {directory}, where {free:,} bytes are free: {error}; earlier checkpoints are intact. "
            "Free some space and resume"
        ) from error
