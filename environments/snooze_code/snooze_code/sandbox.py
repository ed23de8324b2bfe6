"""One pool of boxes per process, whatever event loops its rollouts live in.

    caller's loop ── await run(work) ──▶ the pool's own loop, in a thread ──▶ box ──▶ result back to the caller

A pool belongs to the loop that opened it, and loops come and go (each `asyncio.run`, each test, each trainer step).
So the pool has a loop of its own. It opens with the first program and closes with the process, or with
`close_sandboxes`; containers end by themselves when their process does.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from snoozing_sandboxes import EngineUnavailable, Pool, open_pool

T = TypeVar("T")
Work = Callable[[Pool], Awaitable[T]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where programs run; equal places share one pool."""

    backend: Literal["docker", "local"] = "docker"
    boxes: int = 4
    hosts: tuple[str, ...] = ()
    image: str = "auto"


class SandboxMissing(RuntimeError):
    """No box can be had on this machine; nothing was graded. The message says what to do."""


class Sandbox:
    """A pool and the loop it lives in. Use `sandbox_at`; this class is for tests that want one of their own."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self._pool: Pool | None = None
        self._opening = asyncio.Lock()
        self._loop = asyncio.new_event_loop()
        self._loop.set_default_executor(_LateExecutor(max_workers=2, thread_name_prefix="sandbox"))
        self._thread = threading.Thread(target=self._turn, name="sandbox", daemon=True)
        self._thread.start()

    async def run(self, work: Work[T]) -> T:
        """Await `work(pool)` from any event loop; cancelling the caller cancels the work.

        Raises:
            SandboxMissing: the engine does not answer or leaks.
            BoxLost: boxes were lost under the work, its retry included.
        """
        return await asyncio.wrap_future(self._submit(work))

    def run_blocking(self, work: Work[T]) -> T:
        """The same for threads without an event loop."""
        return self._submit(work).result()

    def close(self) -> None:
        """Close the pool and end its loop. Safe to call twice."""
        if self._loop.is_closed():
            return
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def closed(self) -> bool:
        return self._loop.is_closed()

    def _turn(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def _submit(self, work: Work[T]) -> Future[T]:
        if self._loop.is_closed():
            raise RuntimeError("this sandbox is closed; ask sandbox_at for another")
        return asyncio.run_coroutine_threadsafe(self._run(work), self._loop)

    async def _run(self, work: Work[T]) -> T:
        try:
            return await work(await self._opened())
        except EngineUnavailable as error:
            raise SandboxMissing(self._advice(error)) from error

    async def _opened(self) -> Pool:
        async with (
            self._opening
        ):  # a failed opening is tried again by the next caller: the engine may be back
            if self._pool is None:
                place = self.place
                pool = open_pool(
                    backend=place.backend, boxes=place.boxes, hosts=place.hosts, image=place.image
                )
                self._pool = await pool.__aenter__()
            return self._pool

    async def _close(self) -> None:
        mine = asyncio.current_task()
        others = [task for task in asyncio.all_tasks() if task is not mine]
        if self._pool is not None:
            await self._pool.close()
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await self._loop.shutdown_default_executor()

    def _advice(self, error: Exception) -> str:
        if self.place.backend == "local":
            return f"no local sandbox: {error}"
        return (
            f"programs run in Docker containers, and there are none to be had: {error}; start the engine, see "
            "`snoozing-sandboxes check`, or, only for programs you would run yourself, pass "
            "--env.taskset.task.backend local (UNSAFE: no walls)"
        )


def sandbox_at(place: Place) -> Sandbox:
    """This process's sandbox at a place, started on first use."""
    with _LOCK:
        found = _OPEN.get((os.getpid(), place))
        if found is None or found.closed:
            found = _OPEN[os.getpid(), place] = Sandbox(place)
        return found


def close_sandboxes() -> None:
    """Close every sandbox of this process now; later gradings open new ones."""
    with _LOCK:
        mine = [key for key in _OPEN if key[0] == os.getpid()]
        for key in mine:
            _OPEN.pop(key).close()


class _LateExecutor(ThreadPoolExecutor):
    """Works in place once the interpreter is ending and takes no more threads: closing at exit still tidies up."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        try:
            return super().submit(fn, *args, **kwargs)
        except RuntimeError:
            done: Future[Any] = Future()
            done.set_result(fn(*args, **kwargs))
            return done


_OPEN: dict[tuple[int, Place], Sandbox] = {}
"""By process: a forked child has no thread of its parent's, so it must not use its parent's sandbox."""
_LOCK = threading.Lock()
atexit.register(close_sandboxes)
