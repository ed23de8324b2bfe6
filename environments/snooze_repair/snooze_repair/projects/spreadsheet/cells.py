"""Names of cells."""


def parse_name(name):
    """ "B3" as (1, 2): column and row from zero."""
    letters = ""
    while len(letters) < len(name) and name[len(letters)].isalpha():
        letters += name[len(letters)].upper()
    digits = name[len(letters) :]
    if not letters or not digits.isdigit() or int(digits) < 1:
        raise ValueError(f"{name!r} is no cell")
    column = 0
    for letter in letters:
        column = column * 26 + ord(letter) - ord("A") + 1
    return (column - 1, int(digits) - 1)


def make_name(column, row):
    text = ""
    column += 1
    while column > 0:
        column, rest = divmod(column - 1, 26)
        text = chr(ord("A") + rest) + text
    return f"{text}{row + 1}"


def area(first, last):
    """Names from one corner to the other, row by row."""
    (c1, r1), (c2, r2) = parse_name(first), parse_name(last)
    columns = range(min(c1, c2), max(c1, c2) + 1)
    rows = range(min(r1, r2), max(r1, r2) + 1)
    return [make_name(c, r) for r in rows for c in columns]
