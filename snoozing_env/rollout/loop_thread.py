"""An event loop that keeps turning while the trainer computes.

    trainer's thread ── run(coroutine) ──▶ loop's thread ──▶ result, or the exception, back to the caller
                     ◀── LoopError: the loop ended (a callback raised), or stands still for `stall_s`

`asyncio.Runner` turns its loop only while somebody waits on it; rollouts that overlap with training need one that
never stops. Whatever lives in the loop is touched in the loop only, so nothing here needs a lock.

A wait owns its own end: whoever waits looks every `every_s` seconds whether the thread lives and its loop turns. An
exception in a bare callback ends the loop, for whatever the callback was to do will never be done; in a task it is the
task's result. After the end was reported, what is left to clean up runs in the caller's thread.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
import traceback
from collections.abc import Callable, Coroutine, Mapping
from types import FrameType
from typing import Any, TypeVar

from snoozing_env.errors import LoopError

T = TypeVar("T")


class LoopThread:
    """`run` and `close` of `asyncio.Runner`, over a loop in a thread of its own."""

    def __init__(self, name: str = "rollouts", *, stall_s: float = 300.0) -> None:
        """`stall_s`: seconds without one turn of the loop, e.g. in a grader that neither returns nor awaits, after
        which a wait ends with an error."""
        self._loop = asyncio.new_event_loop()
        self._stall_s = stall_s
        self._cause: BaseException | None = None
        self._turned = threading.Event()
        self._asked_at = time.monotonic()
        self._turned.set()
        self._reported: LoopError | None = None
        self._thread = threading.Thread(target=self._turn, name=name, daemon=True)
        self._thread.start()

    def _turn(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.set_exception_handler(self._failed)
        try:
            self._loop.run_forever()
        except BaseException as error:  # noqa: BLE001 - the thread's boundary: whoever waits raises it
            self._cause = error

    def _failed(self, loop: asyncio.AbstractEventLoop, context: Mapping[str, Any]) -> None:
        """An exception that nobody awaits: of a bare callback, or of a task or a transport that was dropped."""
        if "handle" not in context or "exception" not in context:
            loop.default_exception_handler(dict(context))
            return
        self._cause = self._cause or context["exception"]
        loop.stop()

    def run(
        self,
        program: Coroutine[Any, Any, T],
        *,
        meanwhile: Callable[[], None] | None = None,
        every_s: float = 0.5,
    ) -> T:
        """Run a coroutine in the loop and wait for it; an interrupt cancels it first.

        `meanwhile` is called in the caller's thread every `every_s` seconds of the wait.

        Raises:
            LoopError: the loop ended, or has not turned for `stall_s`.
        """
        if self._reported is not None:
            return self._run_here(program)
        future = asyncio.run_coroutine_threadsafe(program, self._loop)
        try:
            while True:
                try:
                    return future.result(timeout=every_s)
                except TimeoutError:
                    if future.done():  # the program's own time-out, not ours
                        raise
                self._look()
                if meanwhile is not None:
                    meanwhile()
        except BaseException:
            future.cancel()
            raise

    def _run_here(self, program: Coroutine[Any, Any, T]) -> T:
        """What is to be done after the loop's end was reported: in this thread, unless the loop's still stands in it."""
        if self._thread.is_alive():
            program.close()
            assert self._reported is not None
            raise self._reported
        return self._loop.run_until_complete(program)

    def _look(self) -> None:
        """Raise when the loop ended or stands still."""
        if not self._thread.is_alive():
            raise self._report(
                f"ended: {_said(self._cause)}; resume from the last checkpoint"
            ) from self._cause
        if self._turned.is_set():
            self._turned.clear()
            self._asked_at = time.monotonic()
            self._loop.call_soon_threadsafe(self._turned.set)
        elif (stood := time.monotonic() - self._asked_at) > self._stall_s:
            where = _where(sys._current_frames().get(self._thread.ident or 0))
            raise self._report(
                f"has not turned for {stood:.0f} s and stands in {where}; what blocks it must await, or run in a worker of "
                "its own with a deadline"
            )

    def _report(self, what: str) -> LoopError:
        self._reported = LoopError(f"the event loop of thread {self._thread.name!r} {what}")
        return self._reported

    def close(self) -> None:
        """Cancel what still runs, then end the loop and its thread; one that stands still is left to the process's end."""
        if self._loop.is_closed() or (self._reported is not None and self._thread.is_alive()):
            return
        if not self._thread.is_alive() and self._reported is None:
            self._report(f"ended: {_said(self._cause)}")
        self.run(_cancel_all())
        self.run(self._loop.shutdown_asyncgens())
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
        self._loop.close()


def _said(cause: BaseException | None) -> str:
    """Type, message and place of what ended the loop."""
    if cause is None:
        return "somebody stopped it"
    last = traceback.extract_tb(cause.__traceback__)[-1:]
    at = f" ({last[0].filename}:{last[0].lineno}, {last[0].name})" if last else ""
    return f"{type(cause).__name__}: {cause}{at}"


def _where(frame: FrameType | None, *, deep: int = 4) -> str:
    """The innermost frames, innermost first: the grader is rarely the last one."""
    places: list[str] = []
    while frame is not None and len(places) < deep:
        places.append(f"{frame.f_code.co_filename}:{frame.f_lineno} ({frame.f_code.co_qualname})")
        frame = frame.f_back
    return " ← ".join(places) or "code that has no Python frame"


async def _cancel_all() -> None:
    me = asyncio.current_task()
    others = [task for task in asyncio.all_tasks() if task is not me]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
