"""Addresses of the web."""

SAFE = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~"
PORTS = {"http": 80, "https": 443}


def encode(text, keep=""):
    """Everything but letters, digits and a few signs as %XX."""
    return "".join(c if c in SAFE + keep else "".join(f"%{b:02X}" for b in c.encode()) for c in text)


def decode(text):
    data = bytearray()
    i = 0
    while i < len(text):
        if text[i] == "%" and i + 2 < len(text) and is_hex(text[i + 1 : i + 3]):
            data.append(int(text[i + 1 : i + 3], 16))
            i += 3
        else:
            data += text[i].encode()
            i += 1
    return data.decode("utf-8", "replace")


def is_hex(text):
    return len(text) == 2 and all(c in "0123456789abcdefABCDEF" for c in text)


def parse_query(text):
    """{name: [values]} in order; plus means blank."""
    found = {}
    for part in text.split("&"):
        if not part:
            continue
        name, _, value = part.partition("=")
        found.setdefault(decode(name.replace("+", " ")), []).append(decode(value.replace("+", " ")))
    return found


def build_query(values):
    pairs = [(name, one) for name, many in values.items() for one in many]
    return "&".join(f"{encode(name)}={encode(one)}" for name, one in pairs)


def parse(url):
    """Parts of an address: scheme, host, port, path, query, fragment."""
    rest, _, fragment = url.partition("#")
    rest, _, query = rest.partition("?")
    scheme, sep, rest = rest.partition("://")
    if not sep or not scheme.isalpha():
        raise ValueError(f"{url!r} has no scheme")
    host, slash, path = rest.partition("/")
    host, colon, port = host.partition(":")
    if not host:
        raise ValueError(f"{url!r} has no host")
    if colon and not port.isdigit():
        raise ValueError(f"{port!r} is no port")
    return {
        "scheme": scheme.lower(),
        "host": host.lower(),
        "port": int(port) if colon else PORTS.get(scheme.lower()),
        "path": slash + path or "/",
        "query": parse_query(query),
        "fragment": decode(fragment),
    }


def normal_path(path):
    """Without . and .. and doubled slashes."""
    kept = []
    for part in path.split("/"):
        if part == "..":
            if kept:
                kept.pop()
        elif part not in ("", "."):
            kept.append(part)
    end = "/" if path.endswith(("/", "/.", "/..")) and kept else ""
    return "/" + "/".join(kept) + end


def join(base, link):
    """Where a link on the page `base` leads."""
    if "://" in link:
        return link
    parts = parse(base)
    root = base[: base.index("://") + 3] + base.split("://")[1].split("/")[0].split("?")[0].split("#")[0]
    if link.startswith("/"):
        return root + normal_path(link)
    folder = parts["path"].rpartition("/")[0]
    return root + normal_path(folder + "/" + link)
