"""Laws of the killable grading pool."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from snooze_kit.pool import GradingPool, default_pool

BOMB = ("operator:pow", 9, 9**9)
KILLED = {"hang", "starved"}
"""Both are kills at the deadline; which one depends on how busy this machine is."""


@pytest.fixture(scope="module")
def pool():
    with GradingPool(workers=2, deadline_s=0.3) as made:
        yield made


def run_script(text: str, *, timeout: float = 30.0) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", text],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def gone(pid: int, *, within_s: float = 10.0) -> bool:
    limit = time.monotonic() + within_s
    while time.monotonic() < limit:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        try:
            with open(f"/proc/{pid}/stat") as stat:
                if (
                    stat.read().rpartition(")")[2].split()[0] == "Z"
                ):  # dead, its new parent has not looked yet
                    return True
        except FileNotFoundError:
            return True
        time.sleep(0.05)
    return False


def test_a_grader_named_by_module_and_function_returns_its_value(pool):
    grading = pool.call("math:sqrt", 4)
    assert (grading.status, grading.value) == ("value", 2.0)


def test_a_grader_that_never_returns_is_killed_and_the_next_job_gets_a_fresh_worker(pool):
    before = pool.statistics
    hung = pool.call(*BOMB)
    assert (hung.status in KILLED, hung.stage) == (True, "started")
    assert pool.call("math:sqrt", 9).value == 3.0
    assert pool.statistics.hangs == before.hangs + 1


def test_a_worker_without_cpu_gets_a_second_deadline_and_is_then_called_starved_not_hung(pool):
    starved = pool.call("time:sleep", 60)
    assert starved.status == "starved"
    assert starved.seconds >= 0.6
    assert pool.call("math:sqrt", 9).value == 3.0


def test_a_grader_that_raises_is_a_crash_that_names_the_exception_and_keeps_the_worker(pool):
    pool.call("math:sqrt", 4)
    starts = pool.statistics.starts
    grading = pool.call("math:sqrt", -1)
    assert grading.status == "crash"
    assert "ValueError" in grading.detail
    assert pool.statistics.starts == starts


def test_a_worker_that_dies_is_a_crash_and_is_replaced(pool):
    assert pool.call("os:_exit", 3).status == "crash"
    assert pool.call("math:sqrt", 16).value == 4.0


def test_memory_beyond_the_limit_is_a_crash_not_a_dead_machine(pool):
    grading = pool.call("builtins:bytearray", 1 << 40)
    assert grading.status == "crash"
    assert "MemoryError" in grading.detail


def test_a_grader_that_cannot_be_imported_crashes_before_it_started(pool):
    grading = pool.call("no_such_module:grade", 1)
    assert (grading.status, grading.stage) == ("crash", "")
    assert "no_such_module" in grading.detail


def test_a_grader_without_a_function_name_is_refused_at_once(pool):
    with pytest.raises(ValueError, match=r"name it 'package\.module:function'"):
        pool.submit("math.sqrt", 4)


def test_arguments_that_are_not_json_are_a_crash_and_the_slot_lives(pool):
    assert pool.call("math:sqrt", object()).status == "crash"
    assert pool.call("math:sqrt", 25).value == 5.0


def test_constructor_arguments_are_checked_at_birth():
    with pytest.raises(ValueError, match="at least one worker, got workers=0"):
        GradingPool(workers=0)
    with pytest.raises(ValueError, match="deadline_s must be positive seconds, got -1"):
        GradingPool(deadline_s=-1)


def test_many_threads_each_get_their_own_answer(pool):
    answers: dict[int, float] = {}

    def ask(number: int) -> None:
        answers[number] = pool.call("math:sqrt", number * number).value

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {number: float(number) for number in range(24)}


def test_eight_bombs_at_once_leave_other_tasks_of_the_event_loop_running(pool):
    async def main() -> tuple[list[str], int]:
        beats = 0

        async def beat() -> None:
            nonlocal beats
            while True:
                beats += 1
                await asyncio.sleep(0.01)

        heart = asyncio.create_task(beat())
        gradings = await asyncio.gather(*(pool.call_async(*BOMB) for _ in range(8)))
        heart.cancel()
        return [grading.status for grading in gradings], beats

    statuses, beats = asyncio.run(main())
    assert set(statuses) <= KILLED
    assert beats > 20


def test_the_blocking_call_works_while_an_event_loop_runs_in_this_thread(pool):
    async def main() -> float:
        return pool.call("math:sqrt", 36).value

    assert asyncio.run(main()) == 6.0


def test_a_cancelled_job_leaves_the_pool_usable():
    async def main(pool: GradingPool) -> None:
        running = asyncio.create_task(pool.call_async(*BOMB))
        queued = asyncio.create_task(pool.call_async("math:sqrt", 4))
        await asyncio.sleep(0.05)
        running.cancel()
        queued.cancel()
        await asyncio.gather(running, queued, return_exceptions=True)

    with GradingPool(workers=1, deadline_s=0.3) as pool:
        asyncio.run(main(pool))
        assert pool.call("math:sqrt", 49).value == 7.0


def test_closing_resolves_every_waiting_job_and_refuses_new_ones():
    pool = GradingPool(workers=1, deadline_s=30.0)
    futures = [pool.submit(*BOMB) for _ in range(3)]
    pool.close()
    assert [future.result(timeout=10).status for future in futures] == ["crash"] * 3
    with pytest.raises(RuntimeError, match="the grading pool is closed"):
        pool.call("math:sqrt", 4)


def test_a_dead_default_pool_is_replaced():
    first = default_pool()
    first.close()
    assert default_pool() is not first
    assert default_pool().call("math:sqrt", 4).value == 2.0


def test_workers_end_with_a_parent_that_is_killed_even_in_the_middle_of_a_bomb():
    script = (
        "import time; from snooze_kit.pool import GradingPool\n"
        "pool = GradingPool(deadline_s=600.0); print(pool.call('os:getpid').value, flush=True)\n"
        "pool.submit('operator:pow', 9, 9**9); time.sleep(0.2); print('hung', flush=True); time.sleep(600)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    with parent:
        worker = int(parent.stdout.readline())
        assert parent.stdout.readline() == "hung\n"
        parent.send_signal(signal.SIGKILL)
    assert gone(worker)


def test_a_process_with_a_running_bomb_exits_cleanly():
    script = (
        "from snooze_kit.pool import default_pool\n"
        "print(default_pool().call('os:getpid').value)\n"
        "default_pool().submit('operator:pow', 9, 9**9, deadline_s=600.0)\n"
    )
    done = run_script(script)
    assert (done.returncode, done.stderr) == (0, "")
    assert gone(int(done.stdout))


def test_after_a_fork_parent_and_child_each_have_their_own_workers():
    script = (
        "import os; from snooze_kit.pool import default_pool\n"
        "first = default_pool().call('os:getpid').value\n"
        "child = os.fork()\n"
        "mine = default_pool().call('os:getpid').value\n"
        "if child == 0: os._exit(0 if mine != first else 1)\n"
        "assert os.waitpid(child, 0)[1] == 0 and mine == first\n"
    )
    done = run_script(script)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_daemonic_process_may_grade(tmp_path):
    script = tmp_path / "daemonic.py"
    script.write_text(
        "import multiprocessing, sys\n"
        "from snooze_kit.pool import default_pool\n"
        "def work(): sys.exit(0 if default_pool().call('math:sqrt', 4).value == 2.0 else 1)\n"
        "if __name__ == '__main__':\n"
        "    child = multiprocessing.get_context('spawn').Process(target=work, daemon=True)\n"
        "    child.start(); child.join(); sys.exit(child.exitcode)\n"
    )
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_workers_import_neither_the_callers_main_nor_verifiers_nor_torch():
    with GradingPool() as pool:
        assert (
            pool.call("snooze_math.grading.symbolic:equal_symbolic", "\\sqrt{8}", "2\\sqrt{2}").value is True
        )
        loaded = {
            name
            for name in ("sympy", "verifiers", "torch", "aiohttp", "pytest")
            if pool.call("sys:modules.__contains__", name).value
        }
    assert loaded == {"sympy"}
