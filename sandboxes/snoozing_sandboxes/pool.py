"""Boxes kept warm, lent one job or one episode at a time, replaced at the slightest doubt.

    run / grade ─→ lease ─→ idle box ─→ job ─→ clean: back to idle
    box()       ─→ lease ─→ idle box ─→ episode ─→ reset ─→ idle
                                           └─ lost, cancelled, unclean ─→ killed; a builder starts another

Who waits for whom: a lease waits on `_changed` for an idle box or for the news that there will be none; builders bring
either. `boxes` leases run at once; `spares` more boxes stand by, so that a replacement costs its user nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Self, TypeVar

from snoozing_sandboxes.backend import Backend
from snoozing_sandboxes.box import Box, Job, as_bytes, as_result
from snoozing_sandboxes.errors import BoxLost, EngineUnavailable, PoolClosed, SandboxError
from snoozing_sandboxes.grading import CallSuite, StdioCase, grade
from snoozing_sandboxes.types import GradeResult, Limits, Protocol, Result

__all__ = ["Pool", "PoolStatistics"]

_ATTEMPTS = 2
_BUILD_ATTEMPTS = 4
_BACKOFF_S = 0.25
_T = TypeVar("_T")


@dataclass(slots=True)
class PoolStatistics:
    """Counts since the pool was opened."""

    jobs: int = 0
    episodes: int = 0
    starts: int = 0
    """Boxes started, replacements included."""
    replaced: int = 0
    """Boxes killed because they were lost, cancelled or unclean."""
    retries: int = 0
    """Jobs run again after their box was lost."""


class Pool:
    """`async with open_pool(...) as pool`. Every method is for the event loop that opened it.

    Infrastructure failures are retried once on another box and then raised as BoxLost. They are never a verdict.
    """

    def __init__(self, backend: Backend, *, boxes: int, spares: int = 1) -> None:
        if boxes < 1:
            raise ValueError(f"a pool needs at least one box, got boxes={boxes}")
        if spares < 0:
            raise ValueError(f"spares must be 0 or more, got {spares}")
        self._backend = backend
        self._boxes = boxes
        self._target = boxes + spares
        self._slots = asyncio.Semaphore(boxes)
        self._idle: list[Box] = []
        self._lent: set[Box] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._builders: set[asyncio.Task[None]] = set()
        self._building = 0
        self._changed = asyncio.Condition()
        self._failure: SandboxError | None = None
        self._closed = True
        self.statistics = PoolStatistics()

    async def __aenter__(self) -> Self:
        await self._backend.open()
        self._closed = False
        try:
            # The first box alone: if it cannot be had, one clear error instead of one per box.
            self._idle.append(await self._backend.start_box())
            self.statistics.starts += 1
            self._build(self._target - 1)
            async with self._changed:
                await self._changed.wait_for(
                    lambda: len(self._idle) >= self._boxes or self._failure is not None
                )
            if self._failure is not None:
                raise self._failure
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Kill every box and give the engine back; leases still out find their box lost. Safe to call twice."""
        if self._closed:
            return
        self._closed = True
        await self._notify()
        for builder in self._builders:
            builder.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        boxes, self._idle = [*self._idle, *self._lent], []
        await asyncio.gather(*(box.kill() for box in boxes), return_exceptions=True)
        await self._backend.close()

    async def run(
        self,
        code: str | bytes,
        *,
        stdin: str | bytes = "",
        cpu_s: float = 2.0,
        memory_mb: int = 256,
        wall_s: float | None = None,
        output_bytes: int = 65536,
        files: Mapping[str, str | bytes] | None = None,
        argv: Sequence[str] = (),
    ) -> Result:
        """Run one Python program in a clean box. `files` lie in its working folder; nothing outlives the call."""
        limits = Limits(cpu_s=cpu_s, memory_mb=memory_mb, wall_s=wall_s, output_bytes=output_bytes)
        job = Job("python", limits, code=code, argv=list(argv))
        job.stdin = as_bytes(stdin)
        job.files = {path: as_bytes(content) for path, content in (files or {}).items()}
        return await self.submit(job, as_result)

    async def grade(
        self,
        solution: str | Mapping[str, str],
        tests: str | Sequence[StdioCase] | CallSuite,
        protocol: Protocol = "stdio",
        *,
        entry: str | None = None,
        cpu_s: float = 2.0,
        memory_mb: int = 256,
        wall_s: float | None = None,
    ) -> GradeResult:
        """Grade a solution; the verdict never comes from the interpreter that ran it. See grading.py for the forms of
        `tests`. Limits are per program run: per case under "stdio", for all calls or tests together otherwise."""
        limits = Limits(cpu_s=cpu_s, memory_mb=memory_mb, wall_s=wall_s)
        return await grade(self, solution, tests, protocol, entry=entry, limits=limits)

    async def submit(self, job: Job, read: Callable[[Any], _T]) -> _T:
        """Run one job of any kind in a clean box, again in another if that one is lost, and read its reply."""

        async def attempt(box: Box) -> _T:
            _, reply = await box.exchange(job)
            clean = bool(reply.header["clean"])
            if not clean:
                await box.kill()  # the result stands: the program ran; only the box is not to be used again
            return read(reply)

        self.statistics.jobs += 1
        return await self._retried(attempt)

    @asynccontextmanager
    async def box(self) -> AsyncIterator[Box]:
        """A box for one episode. Grade after leaving it: inside, a grading waits for a box that may be this one."""
        self.statistics.episodes += 1
        async with self._lease() as box:
            yield box
            if not box.lost:
                await box.reset()

    async def _retried(self, attempt: Callable[[Box], Awaitable[_T]]) -> _T:
        for left in reversed(range(_ATTEMPTS)):
            try:
                async with self._lease() as box:
                    return await attempt(box)
            except BoxLost:
                if not left or self._closed:
                    raise
                self.statistics.retries += 1
        raise AssertionError("unreachable")

    @asynccontextmanager
    async def _lease(self) -> AsyncIterator[Box]:
        async with self._slots:
            box = await self._take()
            self._lent.add(box)
            unharmed = False
            try:
                yield box
                unharmed = not box.lost
            finally:
                self._lent.discard(box)
                if unharmed and not self._closed:
                    self._put(box)
                else:
                    self._retire(box)

    async def _take(self) -> Box:
        async with self._changed:
            if not self._idle and not self._building and not self._closed:
                self._failure = None  # the engine may be back; a builder finds out
                self._build(self._missing())
            while True:
                await self._changed.wait_for(lambda: self._idle or self._closed or self._failure is not None)
                if self._closed:
                    raise PoolClosed("the pool is closed; open another")
                if not self._idle and self._failure is not None:
                    raise self._failure
                box = self._idle.pop()
                if not box.lost:
                    return box
                self._retire(box)  # died while it stood by, as all do when a daemon is restarted

    def _put(self, box: Box) -> None:
        """Without an await: a cancellation here would lose the box."""
        self._idle.append(box)
        self._spawn(self._notify())

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    def _retire(self, box: Box) -> None:
        self.statistics.replaced += 1
        self._spawn(box.kill())
        self._build(self._missing())

    def _missing(self) -> int:
        return 0 if self._closed else self._target - len(self._idle) - len(self._lent) - self._building

    def _build(self, count: int) -> None:
        for _ in range(count):
            self._building += 1
            builder = self._spawn(self._builder())
            self._builders.add(builder)
            builder.add_done_callback(self._builders.discard)

    def _spawn(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _builder(self) -> None:
        """Bring one box, or the reason why there is none."""
        box, failure = None, None
        try:
            for turn in range(_BUILD_ATTEMPTS):
                try:
                    box = await self._backend.start_box()
                    break
                except SandboxError as error:
                    failure = error
                    await asyncio.sleep(_BACKOFF_S * 2**turn)
        finally:
            self._building -= 1
        async with self._changed:
            if box is not None:
                self.statistics.starts += 1
                self._idle.append(box)
                self._failure = None
            elif not self._building and not self._idle:
                self._failure = EngineUnavailable(f"no box could be started: {failure}")
            self._changed.notify_all()
