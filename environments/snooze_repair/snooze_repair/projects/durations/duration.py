"""Lengths of time as text: 1h 30m, 2d, 90s, 1:30:00."""

SECONDS = {"w": 604800, "d": 86400, "h": 3600, "m": 60, "s": 1}


def parse(text):
    """Seconds. Units may come in any order but only once."""
    text = text.strip().lower()
    sign = 1
    if text.startswith("-"):
        sign, text = -1, text[1:].strip()
    if ":" in text:
        return sign * parse_clock(text)
    total, number, seen = 0, "", set()
    for c in text:
        if c.isdigit() or c == ".":
            number += c
        elif c in SECONDS and number:
            if c in seen:
                raise ValueError(f"{c} is given twice")
            seen.add(c)
            total += float(number) * SECONDS[c]
            number = ""
        elif c != " " or number:
            raise ValueError(f"{text!r} is no duration")
    if number or not seen:
        raise ValueError(f"{text!r} is no duration")
    return sign * round(total)


def parse_clock(text):
    """h:mm:ss or m:ss"""
    parts = text.split(":")
    if len(parts) > 3 or not all(part.isdigit() for part in parts):
        raise ValueError(f"{text!r} is no clock")
    if any(int(part) > 59 for part in parts[1:]):
        raise ValueError(f"{text!r} has more than 59")
    total = 0
    for part in parts:
        total = total * 60 + int(part)
    return total


def show(seconds, parts=2):
    """The largest units, at most `parts` of them; the rest is dropped."""
    if seconds < 0:
        return "-" + show(-seconds, parts)
    out = []
    for unit, size in SECONDS.items():
        count, seconds = divmod(seconds, size)
        if count:
            out.append(f"{count}{unit}")
        elif out:
            out.append("")
        if len(out) == parts:
            break
    return " ".join(one for one in out if one) or "0s"


def clock(seconds):
    hours, rest = divmod(abs(seconds), 3600)
    sign = "-" if seconds < 0 else ""
    minutes, rest = divmod(rest, 60)
    return f"{sign}{hours}:{minutes:02d}:{rest:02d}"


def rounded(seconds, step):
    """To the nearest multiple of a step, a half up."""
    return (2 * seconds + step) // (2 * step) * step


def total(texts):
    return show(sum(parse(text) for text in texts), parts=5)


def ago(seconds):
    """In words, for the time since something happened."""
    if seconds < 45:
        return "just now"
    for unit, name in (("w", "week"), ("d", "day"), ("h", "hour"), ("m", "minute")):
        count = rounded(seconds, SECONDS[unit]) // SECONDS[unit]
        if seconds >= SECONDS[unit] or (unit == "m" and count):
            return f"{count} {name}{'s' if count != 1 else ''} ago"
    return "just now"
