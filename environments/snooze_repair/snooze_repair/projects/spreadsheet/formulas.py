"""Formulas: sums and products of numbers, cells and functions of areas."""

from cells import area, make_name, parse_name

FUNCTIONS = {
    "SUM": sum,
    "MAX": lambda values: max(values, default=0),
    "MIN": lambda values: min(values, default=0),
    "COUNT": len,
    "AVG": lambda values: sum(values) / len(values) if values else 0,
}


def split_terms(text, signs):
    """Parts between signs that stand outside parentheses, each with the sign before it."""
    parts, depth, start, sign = [], 0, 0, signs[0]
    for place, c in enumerate(text):
        if c == "(":
            depth += 1
        elif c == ")":
            depth -= 1
        elif c in signs and depth == 0 and place > start:
            parts.append((sign, text[start:place]))
            sign, start = c, place + 1
    parts.append((sign, text[start:]))
    return parts


def evaluate(text, look):
    """The value of a formula; `look` gives the value of a cell."""
    total = 0
    for sign, term in split_terms(text.replace(" ", ""), "+-"):
        result = product(term, look)
        total = total - result if sign == "-" else total + result
    return total


def product(text, look):
    result = 1
    for sign, factor in split_terms(text, "*/"):
        number = single(factor, look)
        if sign == "/":
            if number == 0:
                raise ZeroDivisionError("division by zero")
            result = result / number
        else:
            result = result * number
    return result


def single(text, look):
    if text.startswith("-"):
        return -single(text[1:], look)
    if text.startswith("(") and text.endswith(")"):
        return evaluate(text[1:-1], look)
    if text.endswith(")"):
        name, _, inside = text[:-1].partition("(")
        if name.upper() not in FUNCTIONS:
            raise ValueError(f"unknown function {name}")
        values = [look(cell) for cell in cells_of(inside)]
        return FUNCTIONS[name.upper()]([value for value in values if isinstance(value, (int, float))])
    if text and (text[0].isdigit() or text[0] == "."):
        return float(text) if "." in text else int(text)
    value = look(make_name(*parse_name(text)))
    return 0 if value is None else value


def cells_of(text):
    found = []
    for part in text.split(","):
        first, colon, last = part.partition(":")
        found += area(first, last) if colon else [make_name(*parse_name(first))]
    return found
