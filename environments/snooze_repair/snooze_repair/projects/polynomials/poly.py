"""Polynomials as lists of coefficients, the constant first; zero is the empty list."""


def trim(p):
    p = list(p)
    while p and p[-1] == 0:
        p.pop()
    return p


def degree(p):
    """-1 for zero."""
    return len(trim(p)) - 1


def add(p, q):
    size = max(len(p), len(q))
    p, q = list(p) + [0] * (size - len(p)), list(q) + [0] * (size - len(q))
    return trim([a + b for a, b in zip(p, q)])


def scale(p, factor):
    return trim([factor * a for a in p])


def multiply(p, q):
    if not p or not q:
        return []
    result = [0] * (len(p) + len(q) - 1)
    for i, a in enumerate(p):
        for j, b in enumerate(q):
            result[i + j] += a * b
    return trim(result)


def divide(p, q):
    """(quotient, remainder); the leading coefficient of q must divide without rest."""
    rest, q = trim(p), trim(q)
    if not q:
        raise ZeroDivisionError("division by zero")
    quotient = [0] * max(0, len(rest) - len(q) + 1)
    while len(rest) >= len(q):
        factor, left = divmod(rest[-1], q[-1])
        if left:
            raise ValueError("not divisible")
        place = len(rest) - len(q)
        quotient[place] = factor
        rest = add(rest, [0] * place + scale(q, -factor))
    return trim(quotient), rest


def value(p, x):
    result = 0
    for a in reversed(p):
        result = result * x + a
    return result


def derive(p):
    return trim([i * a for i, a in enumerate(p)][1:])


def compose(p, q):
    """p(q(x))"""
    result = []
    for a in reversed(p):
        result = add(multiply(result, q), [a])
    return result


def show(p):
    """As usual, the highest power first: 3x^2 - x + 1"""
    text = ""
    for i in range(len(p) - 1, -1, -1):
        a = p[i]
        if a == 0:
            continue
        sign = "-" if a < 0 else "+"
        number = str(abs(a)) if abs(a) != 1 or i == 0 else ""
        power = "" if i == 0 else "x" if i == 1 else f"x^{i}"
        if text:
            text += f" {sign} {number}{power}"
        else:
            text = ("-" if a < 0 else "") + number + power
    return text or "0"


def roots(p, low, high):
    """Whole numbers from low to high, both included, at which p is zero."""
    return [x for x in range(low, high + 1) if value(p, x) == 0]
