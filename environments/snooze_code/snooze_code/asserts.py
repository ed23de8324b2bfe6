"""Plain calls out of assert statements, so that the expected values can stay outside the box."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from typing import Any, Literal

from snooze_code.suite import Call

_NOTHING = object()


def parsed(source: str, mode: Literal["exec", "eval"] = "exec") -> Any:
    """`ast.parse` without the warnings that other people's source gives (an odd escape in a pattern)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(source, mode=mode)


def call_of(text: str, entry: str) -> Call | None:
    """`assert entry(1, [2]) == (3,)` as a call; None where a side is not a literal, or it is no such assert."""
    try:
        body = parsed(text).body
    except (SyntaxError, ValueError):
        return None
    return _call(body[0], entry) if len(body) == 1 and isinstance(body[0], ast.Assert) else None


def calls_of_check(source: str, name: str = "candidate") -> list[Call] | None:
    """The asserts of HumanEval's `check(candidate)` as calls; None where one of them is anything else.

    Asserts on constants (`assert True, "..."`) say nothing and are left out.
    """
    checks = [n for n in parsed(source).body if isinstance(n, ast.FunctionDef) and n.name == "check"]
    if len(checks) != 1:
        return None
    calls: list[Call] = []
    for statement in checks[0].body:
        if isinstance(statement, ast.Assert) and isinstance(statement.test, ast.Constant):
            continue
        call = _call(statement, name) if isinstance(statement, ast.Assert) else None
        if call is None:
            return None
        calls.append(call)
    return calls or None


def visible_calls(prompt: str, entry: str) -> list[tuple[Any, ...]]:
    """Arguments of every call of `entry` with plain values that a prompt shows, in docstrings and prose too."""
    found = []
    for match in re.finditer(rf"\b{re.escape(entry)}\(", prompt):
        arguments = _arguments(prompt[match.start() :])
        if arguments is not _NOTHING:
            found.append(arguments)
    return found


def literal_lists(source: str, *names: str) -> dict[str, Any]:
    """Values of the given names where they are assigned a literal, at any depth of the text."""
    out = {}
    for node in ast.walk(parsed(source)):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name, value = node.targets[0].id, _literal(node.value)
            if name in names and value is not _NOTHING:
                out[name] = value
    return out


def _arguments(text: str) -> Any:
    """The arguments of the call that `text` begins with."""
    for end in _closings(text):
        try:
            call = parsed(text[:end], "eval").body
        except (SyntaxError, ValueError):
            continue
        if isinstance(call, ast.Call) and not call.keywords:
            values = [_literal(a) for a in call.args]
            return _NOTHING if any(v is _NOTHING for v in values) else tuple(values)
    return _NOTHING


def _closings(text: str) -> Iterator[int]:
    for place, character in enumerate(text[:2000]):
        if character == ")":
            yield place + 1


def _call(statement: ast.stmt, entry: str) -> Call | None:
    if not isinstance(statement, ast.Assert):
        return None
    test, expected, truth = statement.test, True, True
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test, expected = test.operand, False
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq | ast.Is):
        test, expected, truth = test.left, _literal(test.comparators[0]), False
    elif not isinstance(test, ast.Call):
        return None
    if not isinstance(test, ast.Call) or not isinstance(test.func, ast.Name) or test.func.id != entry:
        return None
    args = [_literal(a) for a in test.args]
    if test.keywords or expected is _NOTHING or any(a is _NOTHING for a in args):
        return None
    return Call(args=tuple(args), expected=expected, truth=truth)


def _literal(node: ast.expr) -> Any:
    """A literal's value; also `float("inf")`, `inf`, `nan`, `set()` and sums and products of numbers."""
    try:
        return eval(
            compile(ast.Expression(_checked(node)), "literal", "eval"), {"__builtins__": {}, **_NAMES}
        )
    except (ValueError, SyntaxError, TypeError, ArithmeticError, RecursionError):
        return _NOTHING


_NAMES = {"inf": float("inf"), "nan": float("nan"), "set": set, "float": float, "complex": complex}
_PLAIN = (
    ast.Constant, ast.List, ast.Tuple, ast.Set, ast.Dict, ast.Load, ast.UnaryOp, ast.USub, ast.UAdd, ast.BinOp,
    ast.Add, ast.Sub, ast.Mult,
)  # fmt: skip


def _checked(node: ast.expr) -> ast.expr:
    """The node, if evaluating it can do nothing but build plain data of about its own size."""
    for part in ast.walk(node):
        named = isinstance(part, ast.Name) and part.id in _NAMES
        called = isinstance(part, ast.Call) and isinstance(part.func, ast.Name) and not part.keywords
        if not isinstance(part, _PLAIN) and not named and not called:
            raise ValueError(f"{type(part).__name__} is not plain data")
        if isinstance(part, ast.BinOp) and not all(_number(side) for side in (part.left, part.right)):
            raise ValueError("arithmetic on what is not a number")
    return node


def _number(node: ast.expr) -> bool:
    return all(
        isinstance(part, ast.BinOp | ast.UnaryOp | ast.operator | ast.unaryop)
        or (isinstance(part, ast.Constant) and isinstance(part.value, int | float | complex))
        for part in ast.walk(node)
    )
