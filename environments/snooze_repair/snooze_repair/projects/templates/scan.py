"""A template into its pieces."""


class TemplateError(ValueError):
    """A template that cannot be read."""


def scan(text):
    """("text", t), ("value", expression) and ("tag", words) pieces from {{ }} and {% %}."""
    pieces = []
    at = 0
    while at < len(text):
        value, tag = text.find("{{", at), text.find("{%", at)
        starts = [place for place in (value, tag) if place >= 0]
        if not starts:
            pieces.append(("text", text[at:]))
            break
        start = min(starts)
        if start > at:
            pieces.append(("text", text[at:start]))
        closing = "}}" if start == value else "%}"
        end = text.find(closing, start)
        if end < 0:
            raise TemplateError(f"{text[start:start + 2]} is not closed")
        inside = text[start + 2 : end].strip()
        if start == value:
            pieces.append(("value", inside))
        else:
            pieces.append(("tag", inside.split()))
        at = end + 2
    return pieces


def parse(pieces):
    """Nested lists of nodes: pieces, ("for", name, expression, body) and ("if", expression, body, other)."""
    nodes, rest = _parse(list(pieces), ())
    if rest:
        raise TemplateError(f"unexpected {rest[0][1][0]}")
    return nodes


def _parse(pieces, ends):
    nodes = []
    while pieces:
        kind, content = pieces[0]
        if kind != "tag":
            nodes.append(pieces[0])
            pieces = pieces[1:]
        elif content and content[0] in ends:
            return nodes, pieces
        elif len(content) == 4 and content[0] == "for" and content[2] == "in":
            body, rest = _parse(pieces[1:], ("end",))
            pieces = _closed(rest)
            nodes.append(("for", content[1], content[3], body))
        elif len(content) > 1 and content[0] == "if":
            body, rest = _parse(pieces[1:], ("else", "end"))
            other = []
            if rest and rest[0][1][0] == "else":
                other, rest = _parse(rest[1:], ("end",))
            pieces = _closed(rest)
            nodes.append(("if", " ".join(content[1:]), body, other))
        else:
            return nodes, pieces
    return nodes, pieces


def _closed(rest):
    if not rest:
        raise TemplateError("a block is not closed")
    return rest[1:]
