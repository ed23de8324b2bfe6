"""The killable grading pool: run a named grader in another process, with a deadline that cannot be ignored.

    call / call_async / submit ─→ queue ─→ slot thread ─→ worker process
                                              │  waits in poll(), not in Python: the GIL is free
                                              └─ overdue: SIGKILL, start another, answer "hang"

Who waits for whom: a caller waits on its Future, which its slot always resolves within the load time plus two
deadlines; a slot waits on the queue (woken by submit or close) or on its worker (bounded). A slot's thread lives
as long as the pool, because the kernel's parent-death signal fires when the *thread* that started a process ends.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import queue
import threading
import weakref
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any

from snooze_kit.process import Grading, Limits, WorkerProcess

__all__ = ["Grading", "GradingPool", "PoolStatistics", "default_pool", "pool_seconds"]


@dataclass(slots=True)
class PoolStatistics:
    """Counts since the pool was made."""

    jobs: int = 0
    hangs: int = 0
    crashes: int = 0
    starts: int = 0
    """Worker processes started, replacements included."""
    busy_s: float = 0.0
    """Seconds the workers spent on jobs: CPU where a grader ended by itself, wall where it was killed."""


@dataclass(slots=True)
class _Job:
    grader: str
    args: tuple[Any, ...]
    deadline_s: float
    future: Future[Grading]


class GradingPool:
    """At most `workers` processes, started when first needed; every method is safe from any thread and any event loop.

    `deadline_s` counts from the moment a worker has imported the grader and picked the job up, never from the queue.
    A worker the machine left without CPU gets up to two deadlines. `load_s` bounds start and import, `memory_mb`
    the worker's address space (RLIMIT_AS). After a fork the child starts its own workers.
    """

    def __init__(
        self, workers: int = 1, *, deadline_s: float = 1.4, load_s: float = 60.0, memory_mb: int = 2048
    ) -> None:
        if workers < 1:
            raise ValueError(f"a grading pool needs at least one worker, got workers={workers}")
        if not deadline_s > 0:
            raise ValueError(f"deadline_s must be positive seconds, got {deadline_s}")
        self._workers = workers
        self._limits = Limits(deadline_s=deadline_s, load_s=load_s, memory_bytes=memory_mb << 20)
        self._reset()
        _POOLS.add(self)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._queue: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._processes: dict[int, WorkerProcess] = {}
        self._waiting = 0
        self._closed = False
        self._counts = PoolStatistics()

    def submit(self, grader: str, *args: Any, deadline_s: float | None = None) -> Future[Grading]:
        """Queue `module:function(*args)`; arguments and value must be JSON data."""
        module, _, function = grader.partition(":")
        if not (module and function):
            raise ValueError(
                f"grader is {grader!r}; name it 'package.module:function', workers import it by that name"
            )
        future: Future[Grading] = Future()
        with self._lock:
            if self._closed:
                raise RuntimeError("the grading pool is closed; make a new GradingPool or use default_pool()")
            self._waiting += 1
            self._counts.jobs += 1
            self._queue.put(_Job(grader, args, deadline_s or self._limits.deadline_s, future))
            if self._waiting > len(self._threads) and len(self._threads) < self._workers:
                self._start_slot()
        return future

    def call(self, grader: str, *args: Any, deadline_s: float | None = None) -> Grading:
        """Run a grader and block this thread until it is done, hung or crashed."""
        return self.submit(grader, *args, deadline_s=deadline_s).result()

    async def call_async(self, grader: str, *args: Any, deadline_s: float | None = None) -> Grading:
        """The same without blocking the event loop; cancelling drops a job that has not been picked up."""
        return await asyncio.wrap_future(self.submit(grader, *args, deadline_s=deadline_s))

    def warm(self, grader: str, *args: Any) -> None:
        """Start every worker and import the grader in it, so the first real job does not wait for that."""
        for future in [self.submit(grader, *args) for _ in range(self._workers)]:
            future.result()

    @property
    def statistics(self) -> PoolStatistics:
        with self._lock:
            return replace(self._counts)

    def close(self) -> None:
        """Kill the workers; jobs still queued or running resolve as crashes. Safe to call twice."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            threads, processes = list(self._threads), list(self._processes.values())
        for _ in threads:
            self._queue.put(None)
        for process in processes:
            process.interrupt()
        for thread in threads:
            thread.join(timeout=5.0)
        _POOLS.discard(self)

    def __enter__(self) -> GradingPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _start_slot(self) -> None:
        slot = len(self._threads)
        thread = threading.Thread(
            target=self._serve, args=(slot,), name=f"snooze-grading-{slot}", daemon=True
        )
        self._threads.append(thread)
        thread.start()

    def _serve(self, slot: int) -> None:
        while (job := self._queue.get()) is not None:
            if job.future.set_running_or_notify_cancel():
                job.future.set_result(self._closing() or self._grade(slot, job))
            with self._lock:
                self._waiting -= 1
        with self._lock:
            process = self._processes.pop(slot, None)
        if process is not None:
            process.kill()

    def _closing(self) -> Grading | None:
        closed = Grading(status="crash", detail="the grading pool was closed before this job was graded")
        return closed if self._closed else None

    def _grade(self, slot: int, job: _Job) -> Grading:
        try:
            grading = self._worker(slot).exchange(job.grader, job.args, job.deadline_s)
        except (OSError, EOFError, TypeError, ValueError) as error:
            # No process could be started, or the arguments are not JSON: the caller must hear, the slot must live.
            grading = Grading(status="crash", detail=f"{type(error).__name__}: {error}")
        with self._lock:
            self._counts.hangs += grading.status in ("hang", "starved")
            self._counts.crashes += grading.status == "crash"
            self._counts.busy_s += grading.cpu_s
        return grading

    def _worker(self, slot: int) -> WorkerProcess:
        process = self._processes.get(slot)
        if process is None or not process.alive:
            process = WorkerProcess(self._limits)
            with self._lock:
                closed, self._processes[slot] = self._closed, process
                self._counts.starts += 1
            if closed:  # close() looked before this process was on the list
                process.kill()
                raise EOFError("the grading pool was closed")
        return process

    def _after_fork(self) -> None:
        for process in self._processes.values():
            process.abandon()
        self._reset()


_POOLS: weakref.WeakSet[GradingPool] = weakref.WeakSet()
_DEFAULT: list[GradingPool] = []
_DEFAULT_LOCK = threading.Lock()


def default_pool() -> GradingPool:
    """The pool all graders of this process share: one worker, made on first use, closed at exit."""
    with _DEFAULT_LOCK:
        if not _DEFAULT or _DEFAULT[0]._closed:
            _DEFAULT[:] = [GradingPool(workers=1)]
        return _DEFAULT[0]


def pool_seconds() -> float:
    """Seconds the workers of all pools of this process have spent on jobs, as in `PoolStatistics.busy_s`."""
    return sum(pool.statistics.busy_s for pool in list(_POOLS))


def _close_all() -> None:
    for pool in list(_POOLS):
        pool.close()


def _after_fork_in_child() -> None:
    global _DEFAULT_LOCK
    _DEFAULT_LOCK = threading.Lock()
    for pool in list(_POOLS):
        pool._after_fork()


atexit.register(_close_all)
os.register_at_fork(after_in_child=_after_fork_in_child)
