"""Which versions are allowed."""

from version import bump, key, parse

SIGNS = (">=", "<=", ">", "<", "=", "^", "~")


def bounds(rule):
    """(sign, version) pairs that must all hold."""
    sign = next((one for one in SIGNS if rule.startswith(one)), "=")
    version = rule.removeprefix(sign).strip()
    parse(version)
    if sign == "^":
        return [(">=", version), ("<", caret_end(version))]
    if sign == "~":
        return [(">=", version), ("<", bump(version, "minor"))]
    return [(sign, version)]


def caret_end(version):
    """The first version in which the leftmost number that is not zero differs."""
    (major, minor, _), _ = parse(version)
    if major > 0:
        return bump(version, "major")
    if minor > 0:
        return bump(version, "minor")
    numbers = parse(version)[0]
    return f"0.0.{numbers[2] + 1}"


def holds(sign, version, limit):
    a, b = key(version), key(limit)
    if sign == ">=":
        return a >= b
    if sign == "<=":
        return a <= b
    if sign == ">":
        return a > b
    if sign == "<":
        return a < b
    return a == b


def allows(text, version):
    """Rules separated by commas must all hold; sets of rules separated by || are alternatives."""
    for group in text.split("||"):
        rules = [rule.strip() for rule in group.split(",") if rule.strip()]
        if all(holds(sign, version, limit) for rule in rules for sign, limit in bounds(rule)):
            if not parse(version)[1] or any("-" in rule for rule in rules):
                return True
    return False


def best(text, versions):
    """The newest version that is allowed, None if none is. Pre-releases must be named in a rule."""
    allowed = [version for version in versions if allows(text, version)]
    return max(allowed, key=key, default=None)
