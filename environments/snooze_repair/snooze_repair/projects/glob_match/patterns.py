"""Patterns for file names."""


def match(pattern, name):
    """* any letters, ? one letter, [a-z] one of a set, [!a-z] one that is not in it, \\ takes a meaning away."""
    p = n = 0
    star, mark = -1, 0
    while n < len(name):
        step = one(pattern, p, name[n])
        if p < len(pattern) and pattern[p] == "*":
            star, mark = p, n
            p += 1
        elif step:
            p += step
            n += 1
        elif star >= 0:
            mark += 1
            p, n = star + 1, mark
        else:
            return False
    while p < len(pattern) and pattern[p] == "*":
        p += 1
    return p == len(pattern)


def one(pattern, p, letter):
    """Length of the piece of the pattern at p that stands for the letter, 0 if it does not."""
    if p >= len(pattern):
        return 0
    c = pattern[p]
    if c == "?":
        return 1
    if c == "\\" and p + 1 < len(pattern):
        return 2 if pattern[p + 1] == letter else 0
    if c == "[":
        end = pattern.find("]", p + 2)
        if end > 0:
            return end - p + 1 if in_set(pattern[p + 1 : end], letter) else 0
    return 1 if c == letter else 0


def in_set(text, letter):
    negative = text[0] == "!"
    if negative:
        text = text[1:]
    found, i = False, 0
    while i < len(text):
        if text[i + 1 : i + 2] == "-" and i + 2 < len(text):
            if text[i] <= letter <= text[i + 2]:
                found = True
            i += 3
        else:
            if text[i] == letter:
                found = True
            i += 1
    return found != negative


def choices(pattern):
    """Patterns without {a,b}: one for each choice."""
    start = pattern.find("{")
    end = pattern.find("}", start)
    if start < 0 or end < 0:
        return [pattern]
    found = []
    for part in pattern[start + 1 : end].split(","):
        found += choices(pattern[:start] + part + pattern[end + 1 :])
    return found


def select(patterns, names):
    """Names that a pattern takes; a pattern that starts with ! takes names out again."""
    chosen = []
    for pattern in patterns:
        out = pattern.startswith("!")
        wanted = choices(pattern[1:] if out else pattern)
        hits = [name for name in names if any(match(one_pattern, name) for one_pattern in wanted)]
        if out:
            chosen = [name for name in chosen if name not in hits]
        else:
            chosen += [name for name in hits if name not in chosen]
    return chosen
