"""What every backend does: results, limits, grading, episodes. One suite for the local backend and for Docker."""

from __future__ import annotations

import asyncio

import pytest
from snoozing_sandboxes import (
    BoxLost,
    CallCase,
    CallSuite,
    FileTooLarge,
    PoolClosed,
    StdioCase,
    open_pool,
)

BACKENDS = ["local", pytest.param("docker", marks=pytest.mark.docker)]


@pytest.fixture(scope="module", params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def loop():
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="module")
def pool(loop: asyncio.Runner, backend: str):
    pool = open_pool(backend=backend, boxes=2, spares=0)
    loop.run(pool.__aenter__())
    yield pool
    loop.run(pool.close())


@pytest.mark.parametrize(
    ("code", "status", "stdout"),
    [
        ("print(input()[::-1])", "ok", "cba\n"),
        ("print(1 / 0)", "error", ""),
        ("import sys; sys.exit(3)", "error", ""),
        ("import os; print('x', flush=True); os.abort()", "crash", "x\n"),
        ("x = bytearray(1 << 30)", "memory", ""),
        ("import sys; print(__name__, __file__, sys.argv[1:])", "ok", "__main__ solution.py ['a b']\n"),
        (
            "import threading; e = threading.Event(); threading.Thread(target=lambda: print(e.wait())).start(); print('early'); e.set()",
            "ok",
            "early\nTrue\n",
        ),
        ("print(open('data/in.txt').read())", "ok", "here\n"),
    ],
)
def test_a_program_ends_as_python_would_end_it(pool, loop, code, status, stdout):
    result = loop.run(pool.run(code, stdin="abc", argv=["a b"], files={"data/in.txt": "here"}))

    assert (result.status, result.stdout) == (status, stdout)
    assert result.cpu_s < 2.0


def test_a_traceback_shows_the_program_and_nothing_of_the_runner(pool, loop):
    result = loop.run(pool.run("def f():\n    raise KeyError('k')\nf()"))

    assert result.exit_code == 1
    assert "KeyError: 'k'" in result.stderr
    assert 'File "solution.py", line 2' in result.stderr
    assert "runner" not in result.stderr


def test_cpu_is_limited_for_the_whole_tree_and_wall_for_those_who_sleep(pool, loop):
    busy = "import os\nfor _ in range(3): os.fork()\nwhile True: pass"
    assert loop.run(pool.run(busy, cpu_s=0.3)).status == "timeout"
    assert loop.run(pool.run("import time; time.sleep(60)", wall_s=0.3)).status == "timeout"


def test_output_is_kept_up_to_its_limit_and_a_flood_ends_the_program(pool, loop):
    result = loop.run(pool.run("while True: print('x' * 100)", output_bytes=1000))

    assert (result.status, len(result.stdout), result.truncated) == ("output", 1000, True)


def test_nothing_of_a_job_is_left_for_the_next(pool, loop):
    leave = "import os, sys\nopen('left', 'w').write('x'); os.makedirs('a/b'); sys.modules['json'] = None; os.environ['K'] = 'v'"
    look = "import json, os\nprint(os.listdir('.'), 'K' in os.environ)"

    async def both():
        for _ in range(4):
            await pool.run(leave)
        return {(await pool.run(look)).stdout for _ in range(4)}

    assert loop.run(both()) == {"[] False\n"}


def test_queued_jobs_each_get_their_own_answer(pool, loop):
    async def many():
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(pool.run(f"print({n} ** 2)")) for n in range(100)]
        return [task.result().stdout for task in tasks]

    assert loop.run(many()) == [f"{n**2}\n" for n in range(100)]


STDIO = [StdioCase(stdin="2\n", stdout="4"), StdioCase(stdin="5\n", stdout="10\n\n")]
CALLS = CallSuite(entry="f", cases=[CallCase(args=(2,), expected=4), CallCase(args=(5,), expected=10)])


def test_stdio_counts_the_cases_whose_output_is_right(pool, loop):
    grade = lambda code: loop.run(pool.grade(code, STDIO))  # noqa: E731

    assert grade("print(int(input()) * 2)").ok
    half = grade("print(4)")
    assert (half.passed, half.failed, half.ok) == (1, 1, False)
    assert grade("print(int(input()) * 2); raise SystemExit(1)").passed == 0
    assert "ZeroDivisionError" in grade("1 / 0").stderr


def test_numbers_in_output_may_differ_by_the_tolerance_only(pool, loop):
    cases = [StdioCase(stdin="", stdout="0.5 ok", abs_tol=1e-3)]

    assert loop.run(pool.grade("print(0.5004, 'ok')", cases)).ok
    assert not loop.run(pool.grade("print(0.502, 'ok')", cases)).ok
    assert not loop.run(pool.grade("print(0.5, 'no')", cases)).ok


@pytest.mark.parametrize(
    ("returned", "expected", "same"),
    [
        ("[1, 2]", [1, 2], True),
        ("(1, 2)", [1, 2], False),
        ("(1, 2)", (1, 2), True),
        ("{1, 2}", {2, 1}, True),
        ("{'a': [None, True]}", {"a": [None, True]}, True),
        ("{'a': 1, 'b': 2}", {"b": 2, "a": 1}, True),
        ("{1: 'x'}", {1.0: "x"}, True),
        ("1", 1.0, True),
        ("True", 1, True),
        ("'1'", 1, False),
        ("2 ** 200", 2**200, True),
        ("2 ** 200 + 1", 2**200, False),
        ("b'ab'", b"ab", True),
        ("1j", 1j, True),
        ("'\\ud800'", "\ud800", True),
        ("float('inf')", float("inf"), True),
        ("__import__('collections').Counter('aab')", {"a": 2, "b": 1}, True),
        ("object()", None, False),
        ("print", None, False),
        ("None", None, True),
    ],
)
def test_call_values_compare_as_python_compares_plain_data(pool, loop, returned, expected, same):
    suite = CallSuite(entry="f", cases=[CallCase(expected=expected)])

    assert loop.run(pool.grade(f"def f(): return {returned}", suite, "calls")).ok is same


def test_calls_may_ask_for_exceptions_tolerance_methods_and_json(pool, loop):
    raising = CallSuite(entry="f", cases=[CallCase(args=("x",), raises="ValueError")])
    close = CallSuite(entry="Solution.half", cases=[CallCase(args=(1,), expected=0.5)], abs_tol=1e-6)
    text = '{"entry": "f", "cases": [{"args": [[1, 2]], "expected": [2, 1]}]}'

    assert loop.run(pool.grade("def f(x): return int(x)", raising, "calls")).ok
    assert not loop.run(pool.grade("def f(x): return 0", raising, "calls")).ok
    method = "class Solution:\n  @staticmethod\n  def half(x): return x / 2 + 1e-9"
    assert loop.run(pool.grade(method, close, "calls")).ok
    assert loop.run(pool.grade("def f(x): return tuple(x[::-1])", text, "calls")).ok


def test_a_solution_that_dies_in_one_call_keeps_what_it_earned_before(pool, loop):
    code = "import os\ndef f(x):\n  if x == 5: os._exit(0)\n  return 2 * x"
    result = loop.run(pool.grade(code, CALLS, "calls"))

    assert (result.passed, result.failed) == (1, 1)


@pytest.mark.parametrize(
    "tests",
    [
        "assert f(2) == 4\nassert f(3) == 7\n",
        "import unittest\nfrom solution import f\nclass T(unittest.TestCase):\n  def test_a(self): self.assertEqual(f(2), 4)\n  def test_b(self): self.assertEqual(f(3), 7)\n",
        "from solution import *\ndef test_a():\n  assert f(2) == 4\ndef test_b():\n  assert f(3) == 7\n",
        "import solution\nassert solution.f(2) == 4\ndef test_b():\n  assert solution.f(3) == 7\n",
    ],
)
def test_tests_of_every_form_are_counted(pool, loop, tests):
    result = loop.run(pool.grade("def f(x): return 2 * x", tests, "tests"))

    assert (result.passed, result.failed) == (1, 1), result.details


def test_objects_and_exceptions_of_the_solution_can_be_tested(pool, loop):
    files = {
        "bank/__init__.py": "from bank.account import Account, Overdrawn\n",
        "bank/account.py": "class Overdrawn(ValueError): pass\nclass Account:\n  def __init__(self, n=0): self.n = n\n"
        "  def pay(self, k):\n    if k > self.n: raise Overdrawn(f'only {self.n}')\n    self.n -= k\n    return self\n"
        "  def __len__(self): return self.n\n  def __str__(self): return f'Account({self.n})'\n"
        "  def __eq__(self, o): return self.n == o.n\n  def __iter__(self): return iter([self.n])\n",
    }
    tests = """
import unittest
from bank import Account, Overdrawn
from bank.account import Account as Same
class T(unittest.TestCase):
    def test_values(self):
        account = Account(5).pay(2)
        self.assertEqual(account.n, 3)
        self.assertEqual(len(account), 3)
        self.assertEqual(str(account), "Account(3)")
        self.assertEqual(list(account), [3])
        self.assertEqual(account, Same(3))
        self.assertNotEqual(account, Same(4))
    def test_raises(self):
        with self.assertRaises(Overdrawn) as caught: Account(1).pay(2)
        self.assertEqual(str(caught.exception), "only 1")
        with self.assertRaises(ValueError): Account(1).pay(2)
    def test_state(self):
        account = Account()
        account.n = 9
        self.assertEqual(account.n, 9)
"""
    result = loop.run(pool.grade(files, tests, "tests"))
    assert (result.passed, result.failed) == (3, 0), result.details


def test_an_empty_suite_grades_nothing(pool, loop):
    with pytest.raises(ValueError, match="no cases to grade by"):
        loop.run(pool.grade("print(1)", [], "stdio"))
    with pytest.raises(ValueError, match="unknown protocol 'exit'"):
        loop.run(pool.grade("print(1)", "assert True", "exit"))
    assert not loop.run(pool.grade("x = 1", "import os\n", "tests")).ok


def test_an_episode_keeps_its_files_and_processes_until_its_end(pool, loop):
    async def episode():
        async with pool.box() as box:
            await box.write({"src/a.py": "print('hi')", "run.sh": b"#!/bin/sh\necho ran"})
            first = await box.run_shell(
                "python3 src/a.py; ./run.sh; (while true; do echo x >> log; sleep 0.01; done) & echo $K",
                env={"K": "v"},
            )
            await box.run_shell("while [ ! -s log ]; do sleep 0.01; done", cpu_s=5)
            swept = await box.sweep(), await box.sweep()
            files = await box.read(["src", "log", "absent"])
            python = await box.python("print(open('src/a.py').read())")
            await box.reset()
            return first, swept, files, python, await box.read(["src", "log"])

    first, swept, files, python, after = loop.run(episode())
    assert first.stdout == "hi\nran\nv\n"
    assert swept == (True, False)
    assert files["src/a.py"] == b"print('hi')"
    assert set(files) == {"src/a.py", "log"}
    assert python.stdout == "print('hi')\n"
    assert after == {}


def test_reading_is_bounded_and_follows_no_link(pool, loop):
    async def episode():
        async with pool.box() as box:
            await box.run_shell(
                "head -c 100000 /dev/zero > big; ln -s /etc/passwd link; mkfifo pipe; mkdir d; ln -s /etc d/etc"
            )
            with pytest.raises(FileTooLarge, match="more than 1000 bytes"):
                await box.read(["big"], max_bytes=1000)
            with pytest.raises(ValueError, match="no path within a box"):
                await box.read(["../x"])
            return await box.read(["big", "link", "pipe", "d"]), await box.read(
                ["big"], max_bytes=10, truncate=True
            )

    everything, truncated = loop.run(episode())
    assert {name: len(content) for name, content in everything.items()} == {"big": 100000}
    assert truncated == {"big": bytes(10)}


def test_writing_replaces_a_link_instead_of_following_it(pool, loop):
    async def episode():
        async with pool.box() as box:
            await box.run_shell("echo safe > target; ln -s target a; mkfifo b")
            await box.write({"a": "new", "b": "new"})
            return await box.read(["target", "a", "b"])

    assert loop.run(episode()) == {"target": b"safe\n", "a": b"new", "b": b"new"}


def test_a_command_that_prints_much_is_cut_not_killed(pool, loop):
    async def episode():
        async with pool.box() as box:
            return await box.run_shell("head -c 300000 /dev/zero; echo >&2 done")

    result = loop.run(episode())
    assert (result.status, len(result.stdout), result.truncated, result.stderr) == (
        "ok",
        65536,
        True,
        "done\n",
    )


def test_a_cancelled_job_costs_its_box_and_nothing_else(pool, loop):
    async def cancel():
        before = pool.statistics.replaced
        task = asyncio.create_task(pool.run("import time; time.sleep(60)", wall_s=60.0))
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return (await pool.run("print(1)")).stdout, pool.statistics.replaced - before

    assert loop.run(cancel()) == ("1\n", 1)


def test_a_box_that_is_lost_under_an_episode_raises_and_is_replaced(pool, loop):
    async def episode():
        async with pool.box() as box:
            await box.kill()
            await box.run_shell("true")

    with pytest.raises(BoxLost, match="gone"):
        loop.run(episode())
    assert loop.run(pool.run("print(1)")).ok


def test_a_closed_pool_and_an_impossible_one_say_so(backend, loop):
    with pytest.raises(ValueError, match="at least one box"):
        open_pool(backend=backend, boxes=0)
    with pytest.raises(ValueError, match='choose "docker" or "local"'):
        open_pool(backend="podman")

    async def closed():
        async with open_pool(backend=backend, boxes=1, spares=0) as pool:
            pass
        await pool.run("print(1)")

    with pytest.raises(PoolClosed, match="open another"):
        loop.run(closed())
