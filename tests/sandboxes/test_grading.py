"""The three protocols grade as written, on every backend."""

from __future__ import annotations

import pytest
from snoozing_sandboxes import CallCase, CallSuite, StdioCase

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
