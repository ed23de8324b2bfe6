"""The difference of two lists of lines."""


def common(a, b):
    """Table of the lengths of longest common subsequences of a[i:] and b[j:]."""
    table = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i in range(len(a) - 1, -1, -1):
        for j in range(len(b) - 1, -1, -1):
            if a[i] == b[j]:
                table[i][j] = table[i + 1][j + 1] + 1
            else:
                table[i][j] = max(table[i + 1][j], table[i][j + 1])
    return table


def diff(a, b):
    """(mark, line) pairs: " " kept, "-" only in a, "+" only in b. Removals come before additions."""
    table = common(a, b)
    i = j = 0
    steps = []
    while i < len(a) or j < len(b):
        if i < len(a) and j < len(b) and a[i] == b[j]:
            steps.append((" ", a[i]))
            i += 1
            j += 1
        elif j == len(b) or (i < len(a) and table[i + 1][j] >= table[i][j + 1]):
            steps.append(("-", a[i]))
            i += 1
        else:
            steps.append(("+", b[j]))
            j += 1
    return steps


def patch(a, steps):
    """Apply a difference to a; refuses one that was made for another list."""
    result, i = [], 0
    for mark, line in steps:
        if mark == "+":
            result.append(line)
            continue
        if i >= len(a) or a[i] != line:
            raise ValueError(f"line {i} is not {line!r}")
        if mark == " ":
            result.append(line)
        i += 1
    if i != len(a):
        raise ValueError("the difference is too short")
    return result


def reverse(steps):
    """The difference from b back to a."""
    other = {"+": "-", "-": "+", " ": " "}
    return [(other[mark], line) for mark, line in steps]


def similarity(a, b):
    """Share of lines in common, 1.0 for two empty lists."""
    if not a and not b:
        return 1.0
    return 2 * common(a, b)[0][0] / (len(a) + len(b))


def hunks(steps, context=1):
    """Changes with a few kept lines around them; near ones together."""
    changed = [n for n, (mark, _) in enumerate(steps) if mark != " "]
    found = []
    for n in changed:
        low, high = max(0, n - context), min(len(steps), n + context + 1)
        if found and low <= found[-1][1]:
            found[-1] = (found[-1][0], high)
        else:
            found.append((low, high))
    return [steps[low:high] for low, high in found]
