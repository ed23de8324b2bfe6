"""The test process: it never imports the solution, and its memory and files are out of the solution's reach.

Tests may be unittest classes, `test_*` functions, HumanEval's `check(candidate)`, bare top-level asserts (each counts),
or any mixture. Names that the tests use and do not define come from the solution.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import importlib.abc
import importlib.machinery
import inspect
import json
import os
import socket
import sys
import traceback
import types
import unittest
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from snoozing_sandboxes.runner.proxies import Link
from snoozing_sandboxes.runner.wire import write_all


class Tally:
    """What is reported: counts, and why each failure failed."""

    def __init__(self) -> None:
        self.passed = 0
        self.details: list[list[str]] = []

    def run(self, name: str, test: Callable[[], object]) -> bool:
        """Run one test; False when the tests cannot go on."""
        try:
            test()
        except Exception as error:
            self.fail(name, error)
        except BaseException as error:  # the solution died, or a value was needed where it gave an object
            self.fail(name, error)
            return type(error).__name__ != "SolutionDied"
        else:
            self.passed += 1
        return True

    def fail(self, name: str, error: BaseException) -> None:
        self.details.append([name, f"{type(error).__name__}: {str(error)[:300]}"])

    def report(self, skipped: int = 0) -> bytes:
        details = self.details[:50]
        return json.dumps(
            {"passed": self.passed, "failed": len(self.details), "skipped": skipped, "details": details}
        ).encode()


class SolutionModules(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """`import solution` in the tests gives a module of proxies; so does every module among the solution's files."""

    def __init__(self, link: Link, names: Sequence[str]) -> None:
        self._link = link
        self._names = set(names)

    def find_spec(self, name: str, path: object = None, target: object = None) -> Any:
        if name not in self._names:
            return None
        package = any(other.startswith(name + ".") for other in self._names)
        return importlib.machinery.ModuleSpec(name, self, is_package=package)

    def create_module(self, spec: Any) -> types.ModuleType:
        return ProxyModule(spec.name, self._link)

    def exec_module(self, module: types.ModuleType) -> None:
        return None


class ProxyModule(types.ModuleType):
    def __init__(self, name: str, link: Link, *, first: bool = False) -> None:
        super().__init__(name)
        number, exported = link.ask("load", name=name, first=first)
        self.__dict__.update(_link=link, _number=int(number), __all__=[str(n) for n in exported])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        value = self._link.value("get", o=self._number, n=name)
        return value


def judge(tests: bytes, header: dict[str, Any], channel: int, out: int) -> None:
    """Run the tests against the solution behind `channel` and write the tally to `out`."""
    sys.excepthook = sys.__excepthook__
    tally = Tally()
    with socket.socket(fileno=channel) as connection:
        _judge(tests.decode("utf-8", "replace"), header, Link(connection), tally)
    write_all(out, tally.report())
    os._exit(0)


def _judge(source: str, header: dict[str, Any], link: Link, tally: Tally) -> None:
    names = header["modules"]
    sys.meta_path.insert(0, SolutionModules(link, names))
    space: dict[str, Any] = {"__name__": "tests", "__builtins__": builtins}
    sys.modules["tests"] = module = types.ModuleType("tests")
    try:
        tree = ast.parse(source, "tests.py")
        if header["single"]:
            solution = sys.modules[names[0]] = ProxyModule(names[0], link, first=True)
            space.update(_borrowed(tree, solution, header.get("entry")))
    except BaseException as error:
        tally.fail("load", error)
        return
    module.__dict__.update(space)
    if not _script(tree, module.__dict__, tally):
        return
    for name, test in _collected(module.__dict__, header, names[0]):
        if not tally.run(name, test):
            return
    if not tally.passed and not tally.details:
        tally.details.append(["tests", "no test was found in the test text"])


def _borrowed(tree: ast.Module, solution: ProxyModule, entry: str | None) -> Iterator[tuple[str, Any]]:
    """Names the tests use and the solution exports. Builtins are not the solution's to replace, except its entry."""
    used = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    for name in solution.__all__:
        if name in used and (not hasattr(builtins, name) or name == entry) and not name.startswith("test"):
            yield name, getattr(solution, name)
    if entry and entry in used and entry not in solution.__all__:
        yield entry, getattr(solution, entry)


def _script(tree: ast.Module, space: dict[str, Any], tally: Tally) -> bool:
    """Run the top level statement by statement: an assert that fails is one failed test, any other error is the end."""
    for statement in tree.body:
        code = compile(ast.Module([statement], []), "tests.py", "exec", dont_inherit=True)
        line = f"line {statement.lineno}"
        if isinstance(statement, ast.Assert):
            if not tally.run(line, lambda code=code: exec(code, space)):
                return False
            continue
        try:
            exec(code, space)
        except BaseException as error:
            traceback.print_exc()
            tally.fail(line, error)
            return False
    return True


def _collected(
    space: dict[str, Any], header: dict[str, Any], solution: str
) -> Iterator[tuple[str, Callable[[], object]]]:
    """Every test that the text defined, by the name it has there."""
    for name, value in list(space.items()):
        if isinstance(value, type) and issubclass(value, unittest.TestCase) and value.__module__ == "tests":
            for case in unittest.defaultTestLoader.loadTestsFromTestCase(value):
                yield f"{name}.{case._testMethodName}", lambda case=case: _run_case(case)  # type: ignore[attr-defined]
        elif (
            name.startswith("test") and inspect.isfunction(value) and not inspect.signature(value).parameters
        ):
            yield name, value
    check, entry = space.get("check"), header.get("entry")
    if inspect.isfunction(check) and entry:
        yield "check", lambda: check(getattr(importlib.import_module(solution), entry))


def _run_case(case: Any) -> None:
    """One unittest method; what it raised is raised on. A skip or an unexpected success is no pass."""
    result = unittest.TestResult()
    unittest.TestSuite([case]).run(result)  # a suite, so that setUpClass runs
    for _, text in result.failures + result.errors:
        raise AssertionError(text.strip().splitlines()[-1])
    if result.skipped or result.unexpectedSuccesses or result.testsRun != 1:
        raise AssertionError("skipped" if result.skipped else "succeeded unexpectedly")
