"""Three ways to grade, each with the verdict out of the solution's reach.

| protocol | where the expected values are | who compares |
|---|---|---|
| stdio | on the host | the host, text |
| calls | on the host | the host, encoded values |
| tests | in a second process, other uid, whose memory the solution cannot read | that process; only plain data crosses |

`tests` may be text or objects. stdio: a sequence of StdioCase, or JSON `[{"stdin": ..., "stdout": ...}]`. calls: a
CallSuite, or JSON `{"entry": ..., "cases": [{"args": [...], "kwargs": {}, "expected": ...}]}`, where tuples count as
lists. tests: the text of unittest classes, `test_*` functions, `check(candidate)` (with `entry`) or bare asserts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, Protocol, TypeVar

from snoozing_sandboxes import types
from snoozing_sandboxes.box import Job, as_bytes, as_result
from snoozing_sandboxes.channel import Reply
from snoozing_sandboxes.runner import wire
from snoozing_sandboxes.types import CallCase, CallSuite, GradeResult, Limits, Result, StdioCase
from snoozing_sandboxes.values import Equality

__all__ = ["grade"]

_MODULE = "solution"
_T = TypeVar("_T")


class Submitter(Protocol):
    """Runs a job in a clean box."""

    async def submit(self, job: Job, read: Callable[[Reply], _T]) -> _T: ...


async def grade(
    pool: Submitter,
    solution: str | Mapping[str, str],
    tests: str | Sequence[StdioCase] | CallSuite,
    protocol: types.Protocol,
    *,
    entry: str | None,
    limits: Limits,
) -> GradeResult:
    """See Pool.grade. A solution of several files is a mapping from path to text; "stdio" runs its `main.py`."""
    if protocol == "stdio":
        if isinstance(tests, CallSuite):
            raise TypeError('protocol "stdio" takes StdioCases or their JSON, got a CallSuite')
        cases = _stdio_cases(tests) if isinstance(tests, str) else tests
        return await _grade_stdio(pool, solution, cases, limits)
    if protocol == "calls":
        suite = _call_suite(tests, entry) if isinstance(tests, str) else tests
        if not isinstance(suite, CallSuite):
            raise TypeError(f'protocol "calls" takes a CallSuite or its JSON, got {type(tests).__name__}')
        return await _grade_calls(pool, solution, suite, limits)
    if protocol == "tests":
        if not isinstance(tests, str):
            raise TypeError(f'protocol "tests" takes the tests as text, got {type(tests).__name__}')
        return await _grade_tests(pool, solution, tests, entry, limits)
    raise ValueError(f'unknown protocol {protocol!r}; choose "stdio", "calls" or "tests"')


def _stdio_cases(text: str) -> list[StdioCase]:
    return [StdioCase(**case) for case in json.loads(text)]


def _call_suite(text: str, entry: str | None) -> CallSuite:
    data = json.loads(text)
    cases = [CallCase(**case) for case in data.pop("cases")]
    return CallSuite(
        **{"tuples_as_lists": True, **({"entry": entry} if entry else {}), **data, "cases": cases}
    )


def _job(kind: str, solution: str | Mapping[str, str], limits: Limits, main: str, **more: Any) -> Job:
    job = Job(kind, limits, code=solution if isinstance(solution, str) else solution.get(main, ""), **more)
    if not isinstance(solution, str):
        job.files = {path: as_bytes(text) for path, text in solution.items()}
    return job


def _graded(result: Result, passed: int, details: Sequence[tuple[str, str]], failed: int) -> GradeResult:
    shared = {f.name: getattr(result, f.name) for f in fields(Result)}
    return GradeResult(**shared, passed=passed, failed=failed, details=tuple(details[:50]))


async def _grade_stdio(
    pool: Submitter, solution: str | Mapping[str, str], cases: Sequence[StdioCase], limits: Limits
) -> GradeResult:
    """One clean run per case. The result shown is the first that failed, else the last; CPU and wall are sums."""
    if not cases:
        raise ValueError("no cases to grade by; a solution that is asked nothing has shown nothing")
    details, shown, cpu_s, wall_s = [], None, 0.0, 0.0
    for number, case in enumerate(cases):
        job = _job("python", solution, limits, "main.py")
        job.stdin = as_bytes(case.stdin)
        result = await pool.submit(job, as_result)
        cpu_s, wall_s = cpu_s + result.cpu_s, wall_s + result.wall_s
        right = result.ok and not result.truncated and _same_text(case.stdout, result.stdout, case.abs_tol)
        if shown is None or not details:
            shown = result
        if not right:
            details.append((f"case {number}", result.status if not result.ok else "wrong output"))
    assert shown is not None
    graded = _graded(shown, len(cases) - len(details), details, len(details))
    return GradeResult(
        **{**{f.name: getattr(graded, f.name) for f in fields(graded)}, "cpu_s": cpu_s, "wall_s": wall_s}
    )


def _same_text(expected: str, got: str, abs_tol: float) -> bool:
    wanted, printed = ([line.rstrip() for line in text.rstrip().splitlines()] for text in (expected, got))
    if wanted == printed or not abs_tol:
        return wanted == printed
    one, other = expected.split(), got.split()
    return len(one) == len(other) and all(
        a == b or _close(a, b, abs_tol) for a, b in zip(one, other, strict=True)
    )


def _close(expected: str, got: str, abs_tol: float) -> bool:
    try:
        return abs(float(expected) - float(got)) <= abs_tol
    except ValueError:
        return False


async def _grade_calls(
    pool: Submitter, solution: str | Mapping[str, str], suite: CallSuite, limits: Limits
) -> GradeResult:
    """All calls in one process, their arguments sent in, their values compared here."""
    if not suite.cases:
        raise ValueError("no cases to grade by; a solution that is asked nothing has shown nothing")
    calls = [
        [list(map(wire.encode, c.args)), {k: wire.encode(v) for k, v in c.kwargs.items()}]
        for c in suite.cases
    ]
    job = _job("calls", solution, limits, f"{_MODULE}.py", module=_MODULE, entry=suite.entry, calls=calls)
    equality = Equality(abs_tol=suite.abs_tol, rel_tol=suite.rel_tol, tuples_as_lists=suite.tuples_as_lists)

    def read(reply: Reply) -> GradeResult:
        result = as_result(reply)
        load, *lines = reply.blobs[0].split(b"\n")
        loaded = _parsed(load)
        details = []
        for number, case in enumerate(suite.cases):
            answer = _parsed(lines[number]) if "v" in loaded and number < len(lines) - 1 else None
            why = _wrong(case, answer, equality, loaded, result)
            if why:
                details.append((f"case {number}", why))
        return _graded(result, len(suite.cases) - len(details), details, len(details))

    return await pool.submit(job, read)


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        data = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


def _wrong(
    case: CallCase, answer: dict[str, Any] | None, equality: Equality, loaded: dict[str, Any], result: Result
) -> str:
    """Why the answer is not the expected one; "" if it is."""
    if answer is None:
        return f"the solution did not load: {str(loaded.get('e'))[:200]}" if "e" in loaded else result.status
    if "e" in answer:
        kind = answer["e"][0] if isinstance(answer["e"], list) and answer["e"] else "?"
        return "" if case.raises is not None and kind == case.raises else f"raised {str(kind)[:80]}"
    if "v" not in answer:
        return "the solution broke the protocol"
    if case.raises is not None:
        return f"returned instead of raising {case.raises}"
    try:
        return "" if equality.same(wire.encode(case.expected), answer["v"]) else "wrong value"
    except RecursionError:
        return "wrong value"


async def _grade_tests(
    pool: Submitter, solution: str | Mapping[str, str], tests: str, entry: str | None, limits: Limits
) -> GradeResult:
    """Tests in a process of their own; the solution behind a value-only line."""
    single = isinstance(solution, str)
    modules = [_MODULE] if isinstance(solution, str) else _module_names(solution)
    job = _job("tests", solution, limits, "", entry=entry, modules=modules, single=single)
    job.tests = as_bytes(tests)

    def read(reply: Reply) -> GradeResult:
        result = as_result(reply)
        tally = _parsed(reply.blobs[0])
        if not tally:
            reason = f"the tests did not finish ({reply.header['status']})"
            return _graded(result, 0, [("tests", reason)], 1)
        details = [(str(name), str(why)) for name, why in tally["details"]]
        return _graded(result, int(tally["passed"]), details, int(tally["failed"]))

    return await pool.submit(job, read)


def _module_names(solution: Mapping[str, str]) -> list[str]:
    """Modules and packages that the solution's files define."""
    names = set()
    for path in solution:
        parts = path.removesuffix(".py").split("/") if path.endswith(".py") else []
        if parts and parts[-1] == "__init__":
            parts.pop()
        names.update(".".join(parts[:end]) for end in range(1, len(parts) + 1))
    return sorted(names)
