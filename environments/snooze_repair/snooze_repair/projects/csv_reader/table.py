"""Rows of fields as records with named columns."""

from fields import CsvError, split_rows


def convert(field):
    """Whole numbers, decimals, yes and no as values; an empty field as None; the rest as text."""
    if field == "":
        return None
    if field in ("yes", "no"):
        return field == "yes"
    for kind in (int, float):
        try:
            return kind(field)
        except ValueError:
            continue
    return field


def read_table(text, comma=","):
    """A list of dicts. Every row must have as many fields as the first."""
    rows = split_rows(text, comma)
    if not rows:
        return []
    names = [name.strip() for name in rows[0]]
    if len(set(names)) != len(names):
        raise CsvError("line 1: a column name is used twice")
    records = []
    for number, row in enumerate(rows[1:], start=2):
        if len(row) != len(names):
            raise CsvError(f"row {number}: {len(row)} fields, wanted {len(names)}")
        records.append({name: convert(field) for name, field in zip(names, row)})
    return records


def column_sum(records, name):
    """Sum of a column, empty fields left out."""
    return sum(record[name] for record in records if record[name] is not None)


def group_by(records, name):
    """Records by the value they have in a column, in order of appearance."""
    groups = {}
    for record in records:
        groups.setdefault(record[name], []).append(record)
    return groups


def write_table(records, comma=","):
    """The opposite of read_table for text without special values."""
    if not records:
        return ""
    lines = [list(records[0])]
    lines += [[quote(value, comma) for value in record.values()] for record in records]
    return "\n".join(comma.join(line) for line in lines) + "\n"


def quote(value, comma=","):
    """A value as a field, in quotes where it needs them."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = str(value)
    if comma in text or '"' in text or "\n" in text:
        return '"' + text.replace('"', '""') + '"'
    return text
