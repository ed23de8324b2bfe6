"""An event loop whose clock jumps: hours of waiting cost nothing, and the same program takes the same path.

Sleeps, time-outs and deadlines of asyncio run on the loop's own clock. This one moves it straight to the next timer
whenever nothing else is left to do, and says so when there is none: a program that waits for nothing is a deadlock.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class DeadlockError(RuntimeError):
    """Every task waits and no timer is set."""


class _JumpingSelector(selectors.DefaultSelector):
    now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        events = super().select(0)
        if events or timeout == 0:
            return events
        if timeout is None:
            raise DeadlockError(f"at {self.now:g} s every task waits and no timer is set")
        self.now += timeout
        return events


class JumpingLoop(asyncio.SelectorEventLoop):
    """`asyncio.Runner(loop_factory=JumpingLoop)`; for programs without threads and sockets."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        """Seconds since the loop began, on its own clock."""
        return self._jumping.now


def run_jumping(program: Coroutine[Any, Any, T]) -> T:
    """Run a program to its end on a clock that jumps.

    Raises:
        DeadlockError: it would have waited for ever.
    """
    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        return runner.run(program)
