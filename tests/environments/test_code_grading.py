"""Laws of the verdict: what passes, what cannot be forged, what is unknown, and one pool for every event loop."""

from __future__ import annotations

import asyncio
import math
import subprocess
import sys
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from snooze_code import grading
from snooze_code.grading import Problem, ReferenceFailed, grade, grade_async, grade_in
from snooze_code.sandbox import Place, Sandbox, SandboxMissing, close_sandboxes, sandbox_at
from snooze_code.suite import Call, Suite
from snoozing_sandboxes import BoxLost, open_pool

LOCAL = Place(backend="local", boxes=2)
NOWHERE = Place(hosts=("unix:///nowhere/docker.sock",))
DOUBLE = Suite(protocol="calls", calls=tuple(Call(args=(n,), expected=2 * n) for n in range(4)))
ECHO = Suite(protocol="stdio", cases=(("a\n", "a\n"), ("b c\n", "b c\n")))


@pytest.fixture(scope="module", autouse=True)
def _sandboxes_end_with_the_module():
    yield
    close_sandboxes()


def fenced(code: str) -> str:
    return f"```python\n{code}\n```"


def verdict(suite: Suite, code: str, **more) -> grading.Grading:
    return grade(Problem(**{"suite": suite, "entry": "f", "cpu_s": 1.0, **more}), fenced(code), LOCAL)


# x + 0.0: the sandbox sends -0.0 as 0.0, which it equals.
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False).map(lambda x: x + 0.0) | st.text(max_size=8) | st.binary(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.tuples(inner, inner) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.tuples(plain), plain, st.booleans()), max_size=4),
    st.sampled_from(["value", "set", "truth"]),
)
def test_a_suite_survives_json_with_every_type_it_had(calls, view):
    made = tuple(
        Call(args=args, expected=value if known else None, known=known) for args, value, known in calls
    )
    suite = Suite(protocol="calls", calls=made, rel_tol=1e-9, view=view)
    again = Suite.loads(suite.dumps())
    assert again == suite
    assert repr(again) == repr(
        suite
    )  # (1,) and [1], 1 and True are equal; here they must stay what they were


def test_all_hidden_tests_or_nothing_with_the_share_told_apart():
    assert verdict(DOUBLE, "def f(x): return 2 * x").verdict.correct is True
    half = verdict(DOUBLE, "def f(x): return 2 * x if x < 3 else 0")
    assert (half.verdict.correct, half.passed, half.total, half.share) == (False, 3, 4, 0.75)
    assert half.verdict.reason == "3 of 4 hidden tests passed; first failure: case 3: wrong value"


def test_a_program_is_judged_by_what_it_prints():
    assert verdict(ECHO, "print(input())", entry="").verdict.correct is True
    script = 'def main():\n    print(input())\nif __name__ == "__main__":\n    main()'
    assert verdict(ECHO, script, entry="").verdict.correct is True
    assert verdict(ECHO, "print('a')", entry="").share == 0.5


def test_what_runs_only_as_a_script_does_not_run_when_a_function_is_called():
    code = 'def f(x):\n    return 2 * x\nif __name__ == "__main__":\n    raise SystemExit(input())'
    assert verdict(DOUBLE, code).verdict.correct is True


@pytest.mark.parametrize(
    "code",
    [
        "import os\nos._exit(0)",
        "raise SystemExit(0)",
        "class E:\n    def __eq__(self, o): return True\n    __hash__ = None\ndef f(x): return E()",
        "import builtins, json\njson.dumps = lambda *a, **k: '{\"v\": 0}'\ndef f(x): return x",
        'import sys\ndef f(x):\n    sys.stdout.write(\'{"passed": 4, "failed": 0}\')\n    return None',
        "import atexit, os\natexit.register(lambda: os._exit(0))\ndef f(x): return 0",
        "def f(x):\n    raise AssertionError('passed')",
        "f = None",
        "def g(x): return 2 * x",
    ],
)
@pytest.mark.parametrize("protocol", ["calls", "tests"])
def test_a_program_cannot_say_that_it_passed(code, protocol):
    text = "def check(candidate):\n" + "".join(f"    assert candidate({n}) == {2 * n}\n" for n in range(1, 4))
    suite = DOUBLE if protocol == "calls" else Suite(protocol="tests", text=text)
    assert verdict(suite, code).verdict.correct is False
    assert verdict(suite, "def f(x): return 2 * x").verdict.correct is True


def test_a_program_that_never_ends_is_wrong_and_says_so():
    result = verdict(DOUBLE, "def f(x):\n    while True: pass", cpu_s=0.2)
    assert (result.verdict.correct, result.verdict.hang) == (False, True)


def test_a_reply_without_a_program_is_wrong_without_a_box():
    result = grade(Problem(suite=DOUBLE, entry="f"), "I would rather not.", NOWHERE)
    assert (result.verdict.correct, result.verdict.reason) == (False, "the reply has no program")
    assert result.total == 4


def test_without_an_engine_the_verdict_is_unknown_and_says_what_to_do():
    result = grade(Problem(suite=DOUBLE, entry="f"), fenced("def f(x): return 2 * x"), NOWHERE)
    assert result.verdict.correct is None
    for advice in ("no usable Docker engine", "snoozing-sandboxes check", "--env.taskset.task.backend local"):
        assert advice in result.verdict.reason


def test_a_box_that_is_lost_leaves_the_verdict_unknown_never_zero():
    class Lost:
        async def submit(self, job, read):
            raise BoxLost("the container is gone")

    with pytest.raises(BoxLost, match="the container is gone"):
        asyncio.run(grade_in(Lost(), Problem(suite=DOUBLE, entry="f"), "def f(x): return 2 * x"))

    async def killed_under_the_program() -> grading.Grading:
        place = Place(backend="local", boxes=1)
        sandbox = sandbox_at(place)
        problem = Problem(suite=DOUBLE, entry="f", cpu_s=20.0)
        await grade_async(problem, fenced("def f(x): return 0"), place)
        slow = asyncio.create_task(
            grade_async(problem, fenced("import time\ndef f(x):\n    time.sleep(30)"), place)
        )
        for _ in range(2):  # the pool tries a lost job once more
            await sandbox.run(_lose_the_busy_box)
        return await slow

    assert asyncio.run(killed_under_the_program()).verdict.correct is None


async def _lose_the_busy_box(pool) -> None:
    await _until(lambda: pool._lent)
    box = next(iter(pool._lent))
    await box.kill()
    await _until(lambda: box not in pool._lent)


async def _until(holds) -> None:
    for _ in range(3000):
        if holds():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("the sandbox did not get there within 30 s")


def test_helpers_stand_before_the_solution_set_up_after_it_and_a_future_import_stays_first():
    problem = Problem(suite=DOUBLE, entry="f", before="def half(x): return x / 2", after="f = twice(f)")
    code = "from __future__ import annotations\ndef f(x: Missing): return half(2 * x)\ndef twice(g): return lambda x: 2 * g(x)"
    assert grade(problem, fenced(code), LOCAL).verdict.correct is True


def test_methods_sets_and_truth_have_views_of_their_own():
    method = "class Solution:\n    def f(self, x):\n        return 2 * x"
    assert verdict(DOUBLE, method, entry="Solution.f").verdict.correct is True
    elements = Suite(protocol="calls", calls=(Call(args=([2, 1],), expected=[1, 2]),), view="set")
    assert verdict(elements, "def f(x): return (2, 1, 1)").verdict.correct is True
    assert verdict(elements, "def f(x): return [1]").verdict.correct is False
    truth = Suite(
        protocol="calls",
        calls=(Call(args=("a",), expected=True), Call(args=("",), expected=False)),
        view="truth",
    )
    assert verdict(truth, "import re\ndef f(x): return re.search('a', x)").verdict.correct is True
    assert verdict(truth, "def f(x): return True").verdict.correct is False


def test_a_reference_is_asked_for_what_a_suite_leaves_open():
    suite = Suite(protocol="calls", calls=(Call(args=(3,), expected=9), Call(args=(4,), known=False)))
    reference = "def f(x): return x * x"
    assert verdict(suite, "def f(x): return x ** 2", reference=reference).verdict.correct is True
    assert verdict(suite, "def f(x): return 9", reference=reference).share == 0.5
    for broken in ("def f(x): return open", "def f(x): return 1 / 0", "def f(x):\n    while True: pass"):
        unknown = verdict(suite, "def f(x): return x * x", reference=broken, cpu_s=0.1)
        assert unknown.verdict.correct is None
        assert ReferenceFailed.__name__ in unknown.verdict.reason


def test_an_answer_too_large_to_be_sent_is_left_out_for_reference_and_reply_alike(monkeypatch):
    monkeypatch.setattr(grading, "_VALUE_BYTES", 4000)
    calls = (Call(args=(1,), known=False), Call(args=(9000,), known=False), Call(args=(2,), known=False))
    suite = Suite(protocol="calls", calls=calls)
    result = verdict(suite, "def f(x): return [0] * x", reference="def f(x):\n    return [0] * x")
    assert (result.verdict.correct, result.total) == (True, 2)


def test_a_bare_reply_is_one_expression_in_x():
    problem = Problem(suite=DOUBLE, entry="f", bare=True)
    for reply, right in [
        ("x*2", True),
        (" x + x\n", True),
        ("x", False),
        ("", False),
        ("x*2\nx*2", False),
        ("2*", False),
        ("0)*0+(2*x", False),
        ("2*x #", False),
    ]:
        assert grade(problem, reply, LOCAL).verdict.correct is right, reply


def test_numbers_may_differ_by_the_tolerance_of_the_suite_only():
    third = Suite(
        protocol="calls", calls=(Call(args=(1,), expected=1 / 3), Call(args=(0,), expected=0.0)), rel_tol=1e-9
    )
    assert verdict(third, "def f(x): return x / 3 * (1 + 1e-12)").verdict.correct is True
    assert verdict(third, "def f(x): return round(x / 3, 4)").verdict.correct is False
    assert math.isfinite(1 / 3)


def test_one_sandbox_serves_every_loop_and_thread_and_opens_again_after_it_was_closed():
    sandbox = sandbox_at(LOCAL)
    results = []

    def work(n: int) -> None:
        results.append(verdict(DOUBLE, f"def f(x): return 2 * x + {n}").verdict.correct)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [False, False, False, True]
    assert sandbox_at(LOCAL) is sandbox
    assert sandbox_at(Place(backend="local", boxes=3)) is not sandbox
    close_sandboxes()
    with pytest.raises(RuntimeError, match="this sandbox is closed"):
        sandbox.run_blocking(lambda pool: pool.run("print(1)"))
    assert verdict(DOUBLE, "def f(x): return 2 * x").verdict.correct is True


def test_a_cancelled_grading_leaves_the_sandbox_usable():
    async def main() -> bool | None:
        problem = Problem(suite=DOUBLE, entry="f", cpu_s=20.0)
        task = asyncio.create_task(grade_async(problem, fenced("import time\ntime.sleep(60)"), LOCAL))
        await asyncio.sleep(0.1)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return (await grade_async(problem, fenced("def f(x): return 2 * x"), LOCAL)).verdict.correct

    assert asyncio.run(main()) is True


def test_a_failed_opening_is_tried_again_by_the_next_caller():
    sandbox = Sandbox(NOWHERE)
    try:
        for _ in range(2):
            with pytest.raises(SandboxMissing, match="none to be had"):
                sandbox.run_blocking(lambda pool: pool.run("print(1)"))
    finally:
        sandbox.close()
        sandbox.close()
    assert sandbox.closed


def test_grading_needs_no_verifiers_and_a_process_that_graded_exits_cleanly(tmp_path):
    script = (
        "import sys\nfrom snooze_code import Call, Problem, Suite, grade\n"
        "from snooze_code.sandbox import Place\n"
        "problem = Problem(suite=Suite(protocol='calls', calls=(Call(args=(1,), expected=2),)), entry='f')\n"
        "place = Place(backend='local', boxes=1)\n"
        "assert grade(problem, 'def f(x): return 2 * x', place).verdict.correct\n"
        "assert 'verifiers' not in sys.modules\n"
    )
    environment = {"TMPDIR": str(tmp_path), "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", script],
        capture_output=True, text=True, timeout=120, check=False, env=environment,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert list(tmp_path.iterdir()) == []


def test_the_pool_of_the_sandbox_is_the_one_everybody_can_open():
    async def main() -> bool:
        async with open_pool(backend="local", boxes=1) as pool:
            problem = Problem(suite=DOUBLE, entry="f")
            return (await grade_in(pool, problem, "def f(x): return 2 * x")).ok

    assert asyncio.run(main()) is True
