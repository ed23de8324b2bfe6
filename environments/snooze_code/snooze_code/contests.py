"""Contest problems with stdin or function tests: DeepCoder's and LiveCodeBench's columns."""

from __future__ import annotations

import base64
import io
import json
import pickle
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from snooze_code.rows import Row
from snooze_code.suite import Call, Suite

_MAX_UNPACKED = 512 << 20


@dataclass(frozen=True, slots=True)
class _Test:
    """One test as published."""

    given: Any
    wanted: Any
    function: str
    """Name of the function it calls, "" for stdin."""


def read_deepcoder(row: Mapping[str, Any]) -> Row | None:
    """problem, tests (JSON in any of the set's four forms), solutions, starter_code, metadata."""
    name = _function_name(row.get("metadata"))
    tests = list(_tests(_json(row["tests"]), name))
    solutions = _json(row.get("solutions") or [])
    solution = solutions[0] if isinstance(solutions, list) and solutions else str(solutions or "")
    return _row(None, row["problem"], str(row.get("starter_code") or ""), tests, _unfenced(solution))


def read_livecodebench(row: Mapping[str, Any]) -> Row | None:
    """question_content, starter_code, private_test_cases, metadata. Only private tests are graded: the public ones
    are the statement's examples."""
    name = _function_name(row.get("metadata"))
    tests = list(_tests(_private(row["private_test_cases"]), name))
    read = _row(row["question_id"], row["question_content"], str(row.get("starter_code") or ""), tests, "")
    return read


def _row(name: str | None, statement: str, starter: str, tests: Sequence[_Test], solution: str) -> Row | None:
    hidden = [test for test in tests if not _shown(test, statement)]
    function = next((test.function for test in hidden if test.function), "")
    if not hidden or any(test.function != function for test in hidden):
        return None
    if function:
        calls = tuple(Call(args=tuple(test.given), expected=test.wanted) for test in hidden)
        suite = Suite(protocol="calls", calls=calls, rel_tol=1e-9, tuples_as_lists=True)
        in_class = "class Solution" in starter or "class Solution" in solution
        entry = f"Solution.{function}" if in_class else function
        begin = starter.strip() or f"def {function}(...):"
        prompt = f"{statement.strip()}\n\nBegin your solution like this:\n{begin}"
    else:
        suite = Suite(
            protocol="stdio", cases=tuple((_text(test.given), _text(test.wanted)) for test in hidden)
        )
        entry = ""
        prompt = f"{statement.strip()}\n\nWrite a program that reads standard input and prints the answer."
    return Row(
        id=name,
        prompt=prompt,
        suite=suite,
        entry=entry,
        reference=solution,
        domain="function" if function else "stdio",
    )


def _tests(value: Any, function: str) -> Iterable[_Test]:
    """The tests of a row: lists of objects, or one object with parallel lists."""
    if isinstance(value, Mapping):
        name = str(value.get("fn_name") or "")
        for given, wanted in zip(value["inputs"], value["outputs"], strict=True):
            # TACO wraps each result in a list of one.
            single = name and isinstance(wanted, list) and len(wanted) == 1
            yield _Test(given, wanted[0] if single else wanted, name)
        return
    for test in value:
        kind = str(test.get("testtype") or test.get("type") or "stdin")
        if kind in ("functional", "function_call"):
            name = str(test.get("fn_name") or function)
            if not name:
                raise KeyError("a function test without the function's name")
            yield _Test(_arguments(test["input"]), _json(test["output"]), name)
        else:
            yield _Test(test["input"], test["output"], "")


def _arguments(value: Any) -> list[Any]:
    """LiveCodeBench writes one JSON value per line, the others a list."""
    return (
        [json.loads(line) for line in value.splitlines() if line.strip()] if isinstance(value, str) else value
    )


def _shown(test: _Test, statement: str) -> bool:
    """Whether the statement shows this test: its input and its output, both more than a few characters of it."""
    given, wanted = _text(test.given).strip(), _text(test.wanted).strip()
    return not test.function and bool(given) and given in statement and wanted in statement


def _text(value: Any) -> str:
    return "\n".join(map(str, value)) if isinstance(value, list) else str(value)


def _json(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


def _unfenced(solution: str) -> str:
    """DeepCoder fences its solutions."""
    text = str(solution).strip()
    return text.removeprefix("```python").removesuffix("```").strip("\n") if text.startswith("```") else text


def _function_name(metadata: Any) -> str:
    data = _json(metadata or {})
    return str(data.get("func_name") or "") if isinstance(data, Mapping) else ""


def _private(value: str | Sequence[Any]) -> Any:
    """LiveCodeBench's private tests: JSON, or that JSON pickled, compressed and in base64."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        unpacker = zlib.decompressobj()
        packed = unpacker.decompress(base64.b64decode(value), _MAX_UNPACKED)
        return json.loads(_TextOnly(io.BytesIO(packed)).load())


class _TextOnly(pickle.Unpickler):
    """Text and containers need no class; whatever asks for one would run code from the data set."""

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        raise pickle.UnpicklingError(
            f"a test file wants {module_name}.{global_name}; only plain data is unpacked"
        )
