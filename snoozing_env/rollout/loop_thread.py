"""An event loop that keeps turning while the trainer computes.

    trainer's thread ── run(coroutine) ──▶ loop's thread ──▶ result, or the exception, back to the caller

`asyncio.Runner` turns its loop only while somebody waits on it; rollouts that overlap with training need one that
never stops. Whatever lives in the loop is touched in the loop only, so nothing here needs a lock.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class LoopThread:
    """`run` and `close` of `asyncio.Runner`, over a loop in a thread of its own."""

    def __init__(self, name: str = "rollouts") -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._turn, name=name, daemon=True)
        self._thread.start()

    def _turn(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def run(
        self,
        program: Coroutine[Any, Any, T],
        *,
        meanwhile: Callable[[], None] | None = None,
        every_s: float = 0.5,
    ) -> T:
        """Run a coroutine in the loop and wait for it; an interrupt cancels it first.

        `meanwhile` is called in the caller's thread every `every_s` seconds of the wait.
        """
        future = asyncio.run_coroutine_threadsafe(program, self._loop)
        try:
            while meanwhile is not None:
                try:
                    return future.result(timeout=every_s)
                except TimeoutError:
                    if future.done():  # the program's own time-out, not ours
                        raise
                    meanwhile()
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        """Cancel what still runs, then end the loop and its thread."""
        if self._loop.is_closed():
            return
        self.run(_cancel_all())
        self.run(self._loop.shutdown_asyncgens())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _cancel_all() -> None:
    me = asyncio.current_task()
    others = [task for task in asyncio.all_tasks() if task is not me]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
