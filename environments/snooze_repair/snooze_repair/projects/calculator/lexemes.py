"""A line of arithmetic into its parts."""

SYMBOLS = "+-*/%^(),"


def split(text):
    """(kind, value) pairs: "number", "name" or "symbol"."""
    parts = []
    i = 0
    while i < len(text):
        c = text[i]
        if c.isspace():
            i += 1
        elif c.isdigit() or c == ".":
            start = i
            while i < len(text) and (text[i].isdigit() or text[i] == "."):
                i += 1
            parts.append(("number", to_number(text[start:i])))
        elif c.isalpha() or c == "_":
            start = i
            while i < len(text) and (text[i].isalnum() or text[i] == "_"):
                i += 1
            parts.append(("name", text[start:i]))
        elif c in SYMBOLS:
            parts.append(("symbol", c))
            i += 1
        else:
            raise ValueError(f"unexpected {c!r} at {i}")
    return parts


def to_number(text):
    if text.count(".") > 1 or text == ".":
        raise ValueError(f"{text!r} is no number")
    return float(text) if "." in text else int(text)
