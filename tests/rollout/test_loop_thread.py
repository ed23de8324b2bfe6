"""The loop that turns while nobody waits on it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

from snoozing_env.rollout.loop_thread import LoopThread


@pytest.fixture
def loop() -> Iterator[LoopThread]:
    thread = LoopThread()
    yield thread
    thread.close()


def test_results_and_exceptions_come_back_to_the_caller(loop: LoopThread):
    async def answer() -> int:
        return 42

    async def fail() -> None:
        raise ZeroDivisionError("here")

    assert loop.run(answer()) == 42
    with pytest.raises(ZeroDivisionError, match="here"):
        loop.run(fail())


def test_what_was_started_goes_on_while_the_caller_computes(loop: LoopThread):
    done = threading.Event()
    kept: list[asyncio.Task[None]] = []

    async def background() -> None:
        await asyncio.sleep(0.01)
        done.set()

    async def start() -> None:
        kept.append(asyncio.create_task(background()))

    loop.run(start())
    assert done.wait(10.0)


def test_closing_cancels_what_runs_and_may_be_repeated():
    loop = LoopThread()
    cancelled = threading.Event()
    kept: list[asyncio.Task[None]] = []

    async def endless() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    async def start() -> None:
        kept.append(asyncio.create_task(endless()))
        await asyncio.sleep(0)

    loop.run(start())
    loop.close()
    assert cancelled.is_set()
    loop.close()


def test_the_caller_may_do_something_while_it_waits(loop: LoopThread):
    times: list[int] = []
    enough = asyncio.Event()

    async def wait() -> int:
        await enough.wait()
        return len(times)

    async def end() -> None:
        enough.set()

    def meanwhile() -> None:
        times.append(1)
        if len(times) == 3:
            loop.run(end())

    assert loop.run(wait(), meanwhile=meanwhile, every_s=0.01) >= 3


def test_a_time_out_of_the_program_is_its_own(loop: LoopThread):
    async def late() -> None:
        async with asyncio.timeout(0.01):
            await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        loop.run(late(), meanwhile=lambda: None, every_s=0.02)
