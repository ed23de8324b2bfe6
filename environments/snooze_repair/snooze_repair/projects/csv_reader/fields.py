"""Text of comma-separated values into rows of text."""


class CsvError(ValueError):
    """Text that is no CSV; says in which line."""


def split_rows(text, comma=","):
    """Rows of fields. A quoted field may hold commas, line ends and doubled quotes."""
    rows, row, field = [], [], ""
    quoted = False
    closed = False
    line = 1
    i = 0
    while i < len(text):
        c = text[i]
        if quoted:
            if c == '"' and text[i + 1 : i + 2] == '"':
                field += '"'
                i += 1
            elif c == '"':
                quoted = False
                closed = True
            else:
                if c == "\n":
                    line += 1
                field += c
        elif c == '"' and not field and not closed:
            quoted = True
        elif c == comma:
            row.append(field)
            field = ""
            closed = False
        elif c == "\n":
            row.append(field)
            rows.append(row)
            row, field = [], ""
            closed = False
            line += 1
        elif closed:
            raise CsvError(f"line {line}: text after a closing quote")
        else:
            field += c
        i += 1
    if quoted:
        raise CsvError(f"line {line}: a quote is not closed")
    if field or row or closed:
        row.append(field)
        rows.append(row)
    return rows
