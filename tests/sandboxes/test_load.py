"""Verdicts hang on CPU time, so a busy machine gives the same ones; and a thousand jobs come out right."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from snoozing_sandboxes import CallCase, CallSuite, Pool, open_pool

from tests.sandboxes.running import run

pytestmark = pytest.mark.docker
SUITE = CallSuite(entry="f", cases=[CallCase(args=(x,), expected=2 * x) for x in (2, 17)])
SPIN = "import time\ndef f(x):\n  end = time.process_time() + {seconds}\n  while time.process_time() < end: pass\n  return 2 * x"
SOLUTIONS = {
    "def f(x): return 2 * x": (2, 0),
    "def f(x): return 4": (1, 1),
    "def f(x): raise ValueError": (0, 2),
    "def f(x):": (0, 2),
    SPIN.format(seconds=0.15): (2, 0),  # 0.3 s of CPU in all, of the 0.6 s allowed
    SPIN.format(seconds=5): (0, 2),
    SPIN.format(seconds=0.15).replace("2 * x", "x"): (0, 2),
    "x = [bytearray(1 << 20) for _ in range(200)]\ndef f(x): return 2 * x": (2, 0),
    "x = [bytearray(1 << 20) for _ in range(300)]\ndef f(x): return 2 * x": (0, 2),
}


async def verdicts(pool: Pool) -> dict[str, tuple[int, int]]:
    async with asyncio.TaskGroup() as group:
        tasks = {
            solution: group.create_task(pool.grade(solution, SUITE, "calls", cpu_s=0.6))
            for solution in SOLUTIONS
        }
    return {solution: (task.result().passed, task.result().failed) for solution, task in tasks.items()}


@contextmanager
def burning(times: int) -> Iterator[None]:
    """Keep every core busy `times` over."""
    command = [sys.executable, "-S", "-c", "while True: pass"]
    burners = [subprocess.Popen(command) for _ in range(times * (os.cpu_count() or 1))]
    try:
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()


def test_verdicts_are_the_same_under_five_times_the_cpu_load():
    async def graded():
        async with open_pool(boxes=2, spares=0) as pool:
            quiet = await verdicts(pool)
            with burning(5):
                return quiet, await verdicts(pool)

    quiet, busy = run(graded())
    assert quiet == busy == SOLUTIONS


def test_a_thousand_queued_jobs_on_four_boxes_are_all_right():
    async def queued():
        async with open_pool(boxes=4) as pool:
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(pool.run(f"print(input(), {n})", stdin=str(n))) for n in range(1000)
                ]
            return [task.result().stdout for task in tasks], pool.statistics

    outputs, statistics = run(queued())
    assert outputs == [f"{n} {n}\n" for n in range(1000)]
    assert (statistics.replaced, statistics.retries) == (0, 0)
