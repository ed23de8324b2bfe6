"""Paths."""


class PathError(Exception):
    pass


def parts(path, here="/"):
    """Names on the way from the root; . and .. are resolved."""
    if not path.startswith("/"):
        path = here + "/" + path
    found = []
    for name in path.split("/"):
        if name == "..":
            if found:
                found.pop()
        elif name not in ("", "."):
            found.append(name)
    return found


def full(path, here="/"):
    return "/" + "/".join(parts(path, here))


def matches(name, pattern):
    """* stands for any letters; everything else for itself."""
    first, *rest = pattern.split("*")
    if not rest:
        return name == pattern
    if not name.startswith(first):
        return False
    place = len(first)
    for piece in rest[:-1]:
        place = name.find(piece, place)
        if place < 0:
            return False
        place += len(piece)
    return len(name) - place >= len(rest[-1]) and name.endswith(rest[-1])
