"""A template with values filled in."""

from scan import TemplateError, parse, scan

FILTERS = {
    "upper": lambda value: str(value).upper(),
    "title": lambda value: str(value).title(),
    "length": len,
    "join": lambda value: ", ".join(str(one) for one in value),
    "escape": lambda value: str(value).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;"),
}


def render(template, **values):
    return fill(parse(scan(template)), values)


def fill(nodes, values):
    out = []
    for node in nodes:
        if node[0] == "text":
            out.append(node[1])
        elif node[0] == "value":
            result = evaluate(node[1], values)
            out.append("" if result is None else str(result))
        elif node[0] == "for":
            out.append(loop(node, values))
        else:
            _, expression, body, other = node
            out.append(fill(body if evaluate(expression, values) else other, values))
    return "".join(out)


def loop(node, values):
    """The body once per item; `loop` in it counts from 1."""
    _, name, expression, body = node
    items = evaluate(expression, values) or []
    return "".join(fill(body, {**values, name: item, "loop": count}) for count, item in enumerate(items, 1))


def evaluate(expression, values):
    """ "user.name|upper|default": a dotted name and filters; a missing name gives None."""
    path, *filters = [part.strip() for part in expression.split("|")]
    result = lookup(path, values)
    for name in filters:
        if name not in FILTERS:
            raise TemplateError(f"unknown filter {name}")
        if result is not None:
            result = FILTERS[name](result)
    return result


def lookup(path, values):
    if path.startswith("not "):
        return not lookup(path[4:].strip(), values)
    result = values
    for part in path.split("."):
        if isinstance(result, dict) and part in result:
            result = result[part]
        elif isinstance(result, list) and part.isdigit() and int(part) < len(result):
            result = result[int(part)]
        else:
            return None
    return result
