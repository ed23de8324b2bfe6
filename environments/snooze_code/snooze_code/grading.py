"""The verdict on one reply: extract the program, run it in a box, compare outside of it.

Nothing that the graded program can reach knows the expected values: under "calls" and "stdio" they stay in this
process, under "tests" in another one with another uid (see the threat model in sandboxes/README.md).
"""

from __future__ import annotations

import json
import logging
import re
from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import Any

from snooze_kit.verdict import Verdict
from snoozing_sandboxes import CallCase, CallSuite, GradeResult, Limits, Pool, SandboxError, StdioCase
from snoozing_sandboxes.box import Job, as_result
from snoozing_sandboxes.grading import grade as grade_program
from snoozing_sandboxes.runner.wire import Malformed, Opaque, decode, encode

from snooze_code.extract import extract, is_expression
from snooze_code.sandbox import Place, SandboxMissing, sandbox_at
from snooze_code.suite import Call, Suite

logger = logging.getLogger(__name__)

_ADAPTER = "_snooze_call"
_FUTURE = re.compile(r"^from __future__ import .*$", re.MULTILINE)
_KEPT = 4096
"""Suites whose reference was already asked, per process."""
_VALUE_BYTES = 24 << 20
"""What all calls of one grading may return, as JSON."""
_TOO_LARGE_AT_MOST = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What a grader has to know of a problem."""

    suite: Suite
    entry: str = ""
    """Dotted name of the function the tests call; "" = a program that is run."""
    before: str = ""
    """Code the prompt shows and replies leave out: imports, helper functions."""
    after: str = ""
    """Set-up that needs the solution's names and that the tests use."""
    reference: str = ""
    """A right solution; asked for expected values that the suite does not have."""
    bare: bool = False
    """The reply itself is an expression in x, the body of `entry`."""
    cpu_s: float = 4.0
    """CPU seconds of all calls, or of one run of a program. The verdict hangs on these, not on the wall clock."""
    wall_s: float = 60.0
    memory_mb: int = 256

    def program(self, reply: str) -> str:
        """The program to run, "" where the reply has none."""
        if self.bare:
            text = reply.strip()
            return f"{self.entry} = lambda x: {text}" if is_expression(text) else ""
        code = extract(reply, self.entry)
        return self.whole(code) if code.strip() else ""

    def whole(self, code: str) -> str:
        """A solution with what stands before and after it."""
        future = "\n".join(_FUTURE.findall(code))  # must stay the first statement
        code = _FUTURE.sub("", code) if future else code
        parts = (future, self.before, code, self.after, self._adapter)
        return "\n\n".join(part for part in parts if part) + "\n"

    @property
    def called(self) -> str:
        """The name the calls go to: the entry, or what stands for it after the solution."""
        return _ADAPTER if self._adapter else self.entry

    @property
    def _adapter(self) -> str:
        """A function for entries that are methods, and for results of which only a view counts."""
        holder, _, method = self.entry.rpartition(".")
        call = f"{holder}().{method}(*args)" if holder else f"{self.entry}(*args)"
        if self.suite.view == "value":
            return f"def {_ADAPTER}(*args):\n    return {call}" if holder else ""
        kind = {"set": "set", "truth": "bool"}[self.suite.view]
        return f"def {_ADAPTER}(*args):\n    return {kind}({call})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Grading:
    """A verdict, and how much of the tests it was short of."""

    verdict: Verdict
    passed: int = 0
    total: int = 0

    @property
    def share(self) -> float:
        """Share of the hidden tests that passed, in [0, 1]."""
        return self.passed / self.total if self.total else 0.0


class ReferenceFailed(RuntimeError):
    """The problem's own solution does not answer its tests: the problem is faulty, no reply can be graded."""


async def grade_async(problem: Problem, reply: str, place: Place | None = None) -> Grading:
    """Grade a reply from any event loop. `correct` is None where the sandbox or the problem failed, never 0."""
    code = problem.program(reply)
    if not code:
        return Grading(verdict=Verdict(False, "the reply has no program"), total=problem.suite.size)
    try:
        graded = await sandbox_at(place or Place()).run(lambda pool: grade_in(pool, problem, code))
    except (SandboxError, SandboxMissing, ReferenceFailed) as error:
        return Grading(verdict=Verdict(None, f"{type(error).__name__}: {error}"), total=problem.suite.size)
    return _grading(graded)


def grade(problem: Problem, reply: str, place: Place | None = None) -> Grading:
    """The same, blocking, safe from any thread that runs no event loop."""
    import asyncio

    return asyncio.run(grade_async(problem, reply, place))


async def grade_in(pool: Pool, problem: Problem, code: str) -> GradeResult:
    """Grade a whole program in a pool.

    Raises:
        BoxLost: the boxes were lost; nothing is known about the program.
        ReferenceFailed: the suite leaves values to the reference solution, and that one fails.
    """
    suite = problem.suite
    limits = Limits(
        cpu_s=problem.cpu_s,
        wall_s=problem.wall_s,
        memory_mb=problem.memory_mb,
        value_bytes=_VALUE_BYTES,
    )
    if suite.protocol == "stdio":
        cases = [
            StdioCase(stdin=given, stdout=wanted, abs_tol=suite.abs_tol) for given, wanted in suite.cases
        ]
        return await grade_program(pool, code, cases, "stdio", entry=None, limits=limits)
    if suite.protocol == "tests":
        entry = problem.entry or None
        return await grade_program(pool, code, suite.text, "tests", entry=entry, limits=limits)
    if not suite.complete:
        suite = await _completed(pool, problem)
    cases = [CallCase(args=call.args, expected=_wanted(suite, call.expected)) for call in suite.calls]
    calls = CallSuite(
        entry=problem.called,
        cases=cases,
        abs_tol=suite.abs_tol,
        rel_tol=suite.rel_tol,
        tuples_as_lists=suite.tuples_as_lists,
    )
    return await grade_program(pool, code, calls, "calls", entry=None, limits=limits)


def _wanted(suite: Suite, expected: Any) -> Any:
    return {"value": lambda x: x, "set": set, "truth": bool}[suite.view](expected)


async def _completed(pool: Pool, problem: Problem) -> Suite:
    """The suite with the reference's answers, asked once per process and problem."""
    key = (problem.reference, problem.suite.dumps())
    if key not in _COMPLETED:
        _COMPLETED[key] = await _asked(pool, problem)
        while len(_COMPLETED) > _KEPT:
            _COMPLETED.popitem(last=False)
    return _COMPLETED[key]


async def _asked(pool: Pool, problem: Problem) -> Suite:
    """Calls whose answers are too large to be sent are left out (HumanEval+ asks for lists of a million numbers)."""
    calls = list(problem.suite.calls)
    for _ in range(_TOO_LARGE_AT_MOST):
        answers, status = await _answers(pool, problem, calls)
        if len(answers) == len(calls):
            values = [value for call, value in zip(calls, answers, strict=True) if not call.known]
            return replace(problem.suite, calls=tuple(calls)).with_expected(values)
        if status != "output":
            raise ReferenceFailed(f"the reference answered {len(answers)} of {len(calls)} calls ({status})")
        logger.info("%s: left out a call whose answer is too large", problem.entry)
        calls.pop(len(answers))
    raise ReferenceFailed(f"more than {_TOO_LARGE_AT_MOST} answers of the reference are too large")


async def _answers(pool: Pool, problem: Problem, calls: list[Call]) -> tuple[list[Any], str]:
    """What the reference returns, in a box like any other program but with four times the CPU of a reply."""
    limits = Limits(
        cpu_s=4 * problem.cpu_s,
        wall_s=4 * problem.wall_s,
        memory_mb=2 * problem.memory_mb,
        value_bytes=int(_VALUE_BYTES * 0.9),
    )
    fields = {
        "module": "solution",
        "entry": problem.called,
        "calls": [[[encode(a) for a in call.args], {}] for call in calls],
    }
    job = Job("calls", limits, code=problem.whole(problem.reference), **fields)
    result, text = await pool.submit(job, lambda reply: (as_result(reply), reply.blobs[0]))
    lines = text.split(b"\n")[1:-1]  # without the word on loading, and what follows the last line end
    try:
        values = [decode(json.loads(line)["v"]) for line in lines[: len(calls)]]
    except (ValueError, KeyError, Malformed) as error:
        raise ReferenceFailed(f"the reference gave no value: {type(error).__name__} {error}") from error
    if any(isinstance(value, Opaque) for value in values):
        raise ReferenceFailed("the reference returned an object that is not plain data")
    return values, result.status


def _grading(graded: GradeResult) -> Grading:
    passed, total = graded.passed, graded.passed + graded.failed
    if graded.ok:
        return Grading(verdict=Verdict(True, f"all {total} hidden tests passed"), passed=passed, total=total)
    first = ": ".join(graded.details[0])[:120] if graded.details else graded.status
    hang = graded.status == "timeout"
    reason = f"{passed} of {total} hidden tests passed; first failure: {first}"
    return Grading(verdict=Verdict(False, reason, hang), passed=passed, total=total)


_COMPLETED: OrderedDict[tuple[str, str], Suite] = OrderedDict()
