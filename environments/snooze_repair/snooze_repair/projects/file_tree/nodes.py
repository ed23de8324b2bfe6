"""Files are texts, folders are dicts."""

from names import PathError


def size(node):
    """Letters in a file, or in all files below a folder."""
    if isinstance(node, str):
        return len(node)
    return sum(size(child) for child in node.values())


def walk(node, prefix=""):
    """(path, text) of all files below, sorted."""
    for name in sorted(node):
        child = node[name]
        if isinstance(child, str):
            yield prefix + "/" + name, child
        else:
            yield from walk(child, prefix + "/" + name)


def copy(node):
    if isinstance(node, str):
        return node
    return {name: copy(child) for name, child in node.items()}


def step(node, name):
    if isinstance(node, str) or name not in node:
        raise PathError(f"no {name}")
    return node[name]
