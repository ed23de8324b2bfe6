"""Ways to put a bug into a program: each finds every place in a file where it could, and says the change.

The kinds are those of real mistakes: a boundary, a swapped argument, an update that got lost. Whether a change is a bug
at all (it may be equivalent, or break everything) only the tests can say; see inject.py.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterator

from snooze_repair.edits import Edit, Source

Find = Callable[[Source], Iterator[Edit]]

_COMPARISONS = {
    "<": "<=",
    "<=": "<",
    ">": ">=",
    ">=": ">",
    "==": "!=",
    "!=": "==",
    "in": "not in",
    "not in": "in",
}
_BOUNDARY = frozenset({"<", "<=", ">", ">="})
_SYMBOLS: dict[type[ast.AST], str] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
    ast.In: "in", ast.NotIn: "not in",
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
}  # fmt: skip
_ARITHMETIC = {"+": "-", "-": "+", "*": "+", "/": "*", "//": "/", "%": "//"}
_NAMES = {"min": "max", "max": "min", "any": "all", "all": "any", "sorted": "list", "ceil": "floor"}
_METHODS = {"find": "rfind", "rfind": "find", "lstrip": "rstrip", "rstrip": "lstrip", "lower": "upper"}
_METHODS |= {"startswith": "endswith", "endswith": "startswith", "partition": "rpartition", "upper": "lower"}
_COPIES = frozenset({"list", "dict", "set", "sorted"})
_UPDATES = frozenset(
    {"append", "add", "pop", "remove", "extend", "insert", "update", "discard", "clear", "sort", "reverse"}
)


def _between(source: Source, left: ast.AST, right: ast.AST, old: str, new: str, kind: str) -> Iterator[Edit]:
    """The operator's own characters between two operands."""
    start, end = source.span(left)[1], source.span(right)[0]
    place = source.text[start:end].find(old)
    if place >= 0:
        yield source.edit((start + place, start + place + len(old)), new, kind)


def comparisons(source: Source) -> Iterator[Edit]:
    """`<` for `<=` (kind boundary), `==` for `!=`, `in` for `not in` (kind comparison)."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Compare):
            operands = [node.left, *node.comparators]
            for left, operator, right in zip(operands, node.ops, operands[1:], strict=False):
                old = _SYMBOLS.get(type(operator), "")
                kind = "boundary" if old in _BOUNDARY else "comparison"
                if old:
                    yield from _between(source, left, right, old, _COMPARISONS[old], kind)


def arithmetic(source: Source) -> Iterator[Edit]:
    """Another operator, in expressions and in augmented assignments."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.BinOp):
            old = _SYMBOLS.get(type(node.op), "")
            if old and not _is_text(node):
                yield from _between(source, node.left, node.right, old, _ARITHMETIC[old], "operator")
        elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add | ast.Sub):
            old = _SYMBOLS[type(node.op)]
            if not _is_text(node.value):
                yield from _between(
                    source, node.target, node.value, f"{old}=", f"{_ARITHMETIC[old]}=", "operator"
                )
                yield from _between(source, node.target, node.value, f"{old}=", "=", "lost update")


def _is_text(node: ast.AST) -> bool:
    texts = (ast.JoinedStr, ast.List, ast.ListComp)
    return any(
        isinstance(one, texts) or (isinstance(one, ast.Constant) and isinstance(one.value, str))
        for one in ast.walk(node)
    )


def off_by_one(source: Source) -> Iterator[Edit]:
    """Whole numbers one up and one down; bounds of ranges and slices likewise."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Constant) and type(node.value) is int and node.value < 1000:
            yield source.edit(source.span(node), str(node.value + 1), "off by one")
            if node.value > 0:
                yield source.edit(source.span(node), str(node.value - 1), "off by one")
        bounds: list[ast.expr] = []
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range":
            bounds = node.args[:2]
        elif isinstance(node, ast.Slice):
            bounds = [bound for bound in (node.lower, node.upper) if bound is not None]
        for bound in bounds:
            if not isinstance(bound, ast.Constant):
                yield source.edit(source.span(bound), f"{source.of(bound)} + 1", "off by one")
                yield source.edit(source.span(bound), f"{source.of(bound)} - 1", "off by one")


def logic(source: Source) -> Iterator[Edit]:
    """`and` for `or`; a condition without its `not`; the two sides of `x if c else y`."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.BoolOp):
            old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
            yield from _between(source, node.values[0], node.values[1], old, new, "logic")
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield source.edit(source.span(node), source.of(node.operand), "logic")
        elif isinstance(node, ast.IfExp):
            one, test, other = (source.of(part) for part in (node.body, node.test, node.orelse))
            yield source.edit(source.span(node), f"{other} if {test} else {one}", "logic")


def names(source: Source) -> Iterator[Edit]:
    """`min` for `max`, `sorted` forgotten, a copy that is none, the wrong end of a text."""
    for node in ast.walk(source.tree):
        if not isinstance(node, ast.Call):
            continue
        func = node.func
        if isinstance(func, ast.Name) and func.id in _NAMES and not (func.id == "sorted" and node.keywords):
            yield source.edit(source.span(func), _NAMES[func.id], "wrong function")
        if isinstance(func, ast.Name) and func.id in _COPIES and len(node.args) == 1 and not node.keywords:
            yield source.edit(source.span(node), source.of(node.args[0]), "missing copy")
        if isinstance(func, ast.Attribute) and func.attr in _METHODS:
            end = source.span(func)[1]
            yield source.edit((end - len(func.attr), end), _METHODS[func.attr], "wrong function")


def swapped_arguments(source: Source) -> Iterator[Edit]:
    """The first two arguments of a call the other way round."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call) and len(node.args) >= 2:
            first, second = node.args[:2]
            if any(isinstance(arg, ast.Starred) for arg in (first, second)):
                continue
            old = source.of(first), source.of(second)
            span = (source.span(first)[0], source.span(second)[1])
            middle = source.text[source.span(first)[1] : source.span(second)[0]]
            if old[0] != old[1]:
                yield source.edit(span, f"{old[1]}{middle}{old[0]}", "swapped arguments")


def defaults(source: Source) -> Iterator[Edit]:
    """Another default of a parameter or keyword: True for False, and the reverse."""
    for node in ast.walk(source.tree):
        values: list[ast.expr] = []
        if isinstance(node, ast.FunctionDef):
            values = [value for value in (*node.args.defaults, *node.args.kw_defaults) if value is not None]
        elif isinstance(node, ast.Call):
            values = [keyword.value for keyword in node.keywords]
        elif isinstance(node, ast.Assign | ast.Return) and node.value is not None:
            values = [node.value]
        for value in values:
            if isinstance(value, ast.Constant) and isinstance(value.value, bool):
                yield source.edit(source.span(value), str(not value.value), "wrong default")


def _blocks(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(tree):
        for name in ("body", "orelse"):
            body = getattr(node, name, None)
            if isinstance(body, list) and body and isinstance(body[0], ast.stmt):
                yield body


def removed(source: Source) -> Iterator[Edit]:
    """A guard that is gone (removed branch), or a change of state that is (lost update)."""
    for body in _blocks(source.tree):
        for statement in body:
            kind = ""
            if isinstance(statement, ast.If) and not statement.orelse:
                kind = "removed branch"
            elif _updates(statement):
                kind = "lost update"
            if kind and len(body) > 1 and source.text[: source.span(statement)[0]].endswith(" "):
                start, end = source.lines(statement)
                if not source.text[start:end].lstrip().startswith("elif"):
                    yield source.edit((start, end), "", kind)


def _updates(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.AugAssign):
        return True
    if isinstance(statement, ast.Assign):
        return isinstance(statement.targets[0], ast.Attribute | ast.Subscript)
    if isinstance(statement, ast.Delete):
        return True
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in _UPDATES


def wrong_order(source: Source) -> Iterator[Edit]:
    """Two neighbouring statements the other way round."""
    simple = (ast.Assign, ast.AugAssign, ast.Expr)
    for body in _blocks(source.tree):
        for first, second in itertools.pairwise(body):
            if isinstance(first, simple) and isinstance(second, simple) and not _is_docstring(first):
                (start, middle), (later, end) = source.lines(first), source.lines(second)
                if middle == later and source.span(first)[0] != source.span(second)[0]:
                    swapped = source.text[middle:end] + source.text[start:middle]
                    yield source.edit((start, end), swapped, "wrong order")


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def loop_exits(source: Source) -> Iterator[Edit]:
    """`break` for `continue`; the function's last `return` already inside its loop (early return)."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Continue | ast.Break):
            other = "break" if isinstance(node, ast.Continue) else "continue"
            yield source.edit(source.span(node), other, "loop control")
        if isinstance(node, ast.FunctionDef) and len(node.body) >= 2:
            loop, last = node.body[-2:]
            if isinstance(loop, ast.For | ast.While) and isinstance(last, ast.Return):
                end = source.lines(loop.body[-1])[1]
                indent = " " * loop.body[0].col_offset
                yield source.edit((end, end), f"{indent}{source.of(last)}\n", "early return")


def wrong_variable(source: Source) -> Iterator[Edit]:
    """A parameter or a local where another one, set in a line above, was meant."""
    for function in ast.walk(source.tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        uses = [node for node in ast.walk(function) if isinstance(node, ast.Name)]
        set_in = {arg.arg: function.lineno for arg in function.args.args if arg.arg != "self"}
        for node in uses:
            if isinstance(node.ctx, ast.Store):
                set_in[node.id] = min(node.lineno, set_in.get(node.id, node.lineno))
        known = list(set_in)
        for node in uses:
            if isinstance(node.ctx, ast.Load) and node.id in set_in:
                turn = known.index(node.id) + 1
                for other in [*known[turn:], *known[: turn - 1]]:
                    if set_in[other] < node.lineno:
                        yield source.edit(source.span(node), other, "wrong variable")
                        break


OPERATORS: tuple[Find, ...] = (
    comparisons, arithmetic, off_by_one, logic, names, swapped_arguments, defaults, removed, wrong_order, loop_exits,
    wrong_variable,
)  # fmt: skip

HARDNESS = {
    "comparison": 0, "logic": 0, "operator": 0,
    "boundary": 1, "off by one": 1, "wrong function": 1, "wrong default": 1, "loop control": 1,
    "swapped arguments": 2, "removed branch": 2, "lost update": 2, "early return": 1, "wrong order": 2,
    "wrong variable": 2, "missing copy": 3,
}  # fmt: skip
"""How far the symptom tends to lie from the line to change: 0 = at it, 3 = in another function."""


def edits(path: str, text: str) -> list[Edit]:
    """Every change that an operator proposes and that is still Python, without repetitions, in order of place."""
    source = Source(path, text)
    found = {edit: None for find in OPERATORS for edit in find(source) if _compiles(edit, text)}
    return sorted(found, key=lambda edit: (edit.at, edit.kind, edit.new))


def _compiles(edit: Edit, text: str) -> bool:
    try:
        compile(edit.apply(text), edit.path, "exec", dont_inherit=True)
    except SyntaxError:
        return False
    return edit.old != edit.new
