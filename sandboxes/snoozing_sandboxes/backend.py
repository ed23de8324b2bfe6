"""What a pool needs of a place where boxes run."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from snoozing_sandboxes.box import Box

__all__ = ["Backend"]


@runtime_checkable
class Backend(Protocol):
    """`open` once, then `start_box` any number of times at once, then `close`."""

    async def open(self) -> None:
        """Get ready, or raise EngineUnavailable with what to do about it."""
        ...

    async def start_box(self) -> Box:
        """A fresh box; BoxLost if this one failed, EngineUnavailable if no other is likely to do better."""
        ...

    async def close(self) -> None:
        """Free what `open` took. Boxes are the pool's to kill."""
        ...
