"""Matrices as lists of rows."""


def shape(m):
    """(rows, columns); every row must be as long as the first."""
    columns = len(m[0]) if m else 0
    for row in m:
        if len(row) != columns:
            raise ValueError("rows differ in length")
    return (len(m), columns)


def transpose(m):
    rows, columns = shape(m)
    return [[m[r][c] for r in range(rows)] for c in range(columns)]


def add(a, b):
    if shape(a) != shape(b):
        raise ValueError("shapes differ")
    return [[x + y for x, y in zip(p, q)] for p, q in zip(a, b)]


def scale(m, factor):
    return [[factor * x for x in row] for row in m]


def multiply(a, b):
    rows, inner = shape(a)
    other, columns = shape(b)
    if inner != other:
        raise ValueError("inner sizes differ")
    return [[sum(a[r][k] * b[k][c] for k in range(inner)) for c in range(columns)] for r in range(rows)]


def identity(n):
    return [[1 if r == c else 0 for c in range(n)] for r in range(n)]


def power(m, n):
    """m times itself, n times, by squaring."""
    rows, columns = shape(m)
    if rows != columns:
        raise ValueError("not square")
    if n < 0:
        raise ValueError("negative power")
    result = identity(rows)
    while n > 0:
        if n % 2 == 1:
            result = multiply(result, m)
        m = multiply(m, m)
        n //= 2
    return result


def minor(m, row, column):
    """Without one row and one column."""
    return [
        [x for c, x in enumerate(values) if c != column] for r, values in enumerate(m) if r != row
    ]


def determinant(m):
    rows, columns = shape(m)
    if rows != columns:
        raise ValueError("not square")
    if rows == 0:
        return 1
    total = 0
    for c in range(columns):
        sign = 1 if c % 2 == 0 else -1
        total += sign * m[0][c] * determinant(minor(m, 0, c))
    return total


def trace(m):
    rows, columns = shape(m)
    return sum(m[i][i] for i in range(min(rows, columns)))


def spiral(m):
    """Values from the outside in, clockwise from the top left."""
    rows = [list(row) for row in m]
    values = []
    while rows:
        values += rows.pop(0)
        rows = transpose(rows)[::-1]
    return values


def rotate(m, turns=1):
    """Quarter turns clockwise."""
    for _ in range(turns % 4):
        m = [row[::-1] for row in transpose(m)]
    return m
