"""The value of a line of arithmetic."""

from grammar import Parser

FUNCTIONS = {
    "abs": abs,
    "min": min,
    "max": max,
    "sum": lambda *numbers: sum(numbers),
    "round": lambda number: int(number + 0.5) if number >= 0 else -int(-number + 0.5),
}


def evaluate(text, names=None):
    """A number. Names are looked up in `names`; division by zero and unknown names are ValueErrors."""
    return value_of(Parser(text).parse(), names or {})


def value_of(tree, names):
    if not isinstance(tree, tuple):
        return tree
    if tree[0] == "name":
        if tree[1] not in names:
            raise ValueError(f"unknown name {tree[1]!r}")
        return names[tree[1]]
    if tree[0] == "neg":
        return -value_of(tree[1], names)
    if tree[0] == "call":
        if tree[1] not in FUNCTIONS:
            raise ValueError(f"unknown function {tree[1]!r}")
        return FUNCTIONS[tree[1]](*[value_of(one, names) for one in tree[2]])
    return combine(tree[0], value_of(tree[1], names), value_of(tree[2], names))


def combine(operator, x, y):
    if operator == "+":
        return x + y
    if operator == "-":
        return x - y
    if operator == "*":
        return x * y
    if operator == "^":
        return x**y
    if y == 0:
        raise ValueError("division by zero")
    if operator == "%":
        return x % y
    return x // y if isinstance(x, int) and isinstance(y, int) and x % y == 0 else x / y
