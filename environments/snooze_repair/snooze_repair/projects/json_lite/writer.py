"""Values as JSON text."""

from reader import ESCAPES

CODES = {value: "\\" + name for name, value in ESCAPES.items() if name != "/"}


def write(value, indent=0, level=0):
    """Text of a value; with an indent, one entry per line."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, dict):
        entries = [f"{quote(key)}: {write(one, indent, level + 1)}" for key, one in value.items()]
        return enclose("{", entries, "}", indent, level)
    entries = [write(one, indent, level + 1) for one in value]
    return enclose("[", entries, "]", indent, level)


def quote(text):
    return '"' + "".join(CODES.get(sign, sign) for sign in text) + '"'


def enclose(opening, entries, closing, indent, level):
    if not entries:
        return opening + closing
    if not indent:
        return opening + ", ".join(entries) + closing
    inner, outer = "\n" + " " * (indent * (level + 1)), "\n" + " " * (indent * level)
    return opening + inner + ("," + inner).join(entries) + outer + closing
