"""Versions such as 1.4.0-beta.2"""


def parse(text):
    """((major, minor, patch), [parts of the pre-release])"""
    text = text.removeprefix("v").partition("+")[0]
    core, _, pre = text.partition("-")
    numbers = core.split(".")
    if len(numbers) != 3 or not all(n.isdigit() and (n == "0" or n[0] != "0") for n in numbers):
        raise ValueError(f"{text!r} is no version")
    parts = pre.split(".") if pre else []
    if not all(parts):
        raise ValueError(f"{text!r} has an empty part")
    return tuple(int(n) for n in numbers), [int(p) if p.isdigit() else p for p in parts]


def key(text):
    """Something to sort by: a pre-release comes before its release, numbers before words."""
    numbers, parts = parse(text)
    ranked = [(0, part, "") if isinstance(part, int) else (1, 0, part) for part in parts]
    return (numbers, 0 if parts else 1, ranked)


def compare(a, b):
    """-1, 0 or 1"""
    first, second = key(a), key(b)
    return (first > second) - (first < second)


def bump(text, part):
    """The next major, minor or patch version; the patch of a pre-release is its release."""
    (major, minor, patch), pre = parse(text)
    if part == "major":
        return f"{major + 1}.0.0"
    if part == "minor":
        return f"{major}.{minor + 1}.0"
    if part != "patch":
        raise ValueError(f"unknown part {part}")
    return f"{major}.{minor}.{patch if pre else patch + 1}"
