"""The loop that turns while nobody waits on it."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Iterator

import pytest

from snoozing_env.errors import LoopError
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


def ask_twice(loop: LoopThread) -> None:
    """The first may still be answered in a dying loop's last turn."""
    ask(loop)
    ask(loop)


def ask(loop: LoopThread) -> int:
    async def answer() -> int:
        return 42

    return loop.run(answer(), every_s=0.02)


@pytest.mark.parametrize("dies_by", [ZeroDivisionError("here"), SystemExit(3)])
def test_a_loop_that_ends_is_named_to_whoever_waits_and_the_rest_can_still_be_cleaned_up(
    dies_by: BaseException,
):
    loop, cleaned = LoopThread(), threading.Event()
    kept: list[asyncio.Task[None]] = []

    async def flight() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.set()

    def callback() -> None:
        raise dies_by

    async def start_and_wait() -> None:
        kept.append(asyncio.create_task(flight()))
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_soon(callback)
        await asyncio.Event().wait()

    name = type(dies_by).__name__
    with pytest.raises(
        LoopError,
        match=rf"thread 'rollouts' ended: {name}: .*test_loop_thread.py:.*callback.*; resume from the last",
    ) as raised:
        loop.run(start_and_wait(), every_s=0.02)
    assert raised.value.__cause__ is dies_by
    assert ask(loop) == 42, "what is left to do runs in the caller's thread"
    loop.close()
    assert cleaned.is_set()


def test_a_loop_that_died_while_nobody_waited_is_named_to_the_next_who_does():
    loop = LoopThread()

    def callback() -> None:
        raise ZeroDivisionError("unseen")

    async def start() -> None:
        asyncio.get_running_loop().call_soon(callback)

    loop.run(start(), every_s=0.02)
    with pytest.raises(LoopError, match="ended: ZeroDivisionError: unseen"):
        ask_twice(loop)
    loop.close()


def test_a_task_that_fails_alone_does_not_end_the_loop(caplog: pytest.LogCaptureFixture):
    loop = LoopThread()

    async def fail() -> None:
        raise ZeroDivisionError("of its own")

    async def start() -> None:
        asyncio.get_running_loop().create_task(fail())
        await asyncio.sleep(0)

    loop.run(start())
    gc.collect()
    assert ask(loop) == 42
    loop.close()
    assert "of its own" in caplog.text


def test_a_loop_that_stands_still_is_noticed_and_the_place_is_named():
    loop, release = LoopThread(stall_s=0.1), threading.Event()

    async def grader_that_never_returns() -> None:
        release.wait(20)

    with pytest.raises(
        LoopError,
        match=r"has not turned for 0 s and stands in .*threading.py:\d+ \(Condition.wait\) ← .*grader_that_never_returns.*; what blocks it must await",
    ):
        loop.run(grader_that_never_returns(), every_s=0.02)
    loop.close()  # does not wait for it
    with pytest.raises(LoopError, match="has not turned"):
        ask(loop)
    release.set()
