"""Amounts of money as whole cents."""


def parse(text):
    """ "12.50" or "12" as cents. At most two decimals."""
    text = text.strip().replace(",", "")
    sign = 1
    if text.startswith("-"):
        sign = -1
        text = text[1:]
    whole, dot, part = text.partition(".")
    if not whole.isdigit() or (dot and not part.isdigit()) or len(part) > 2:
        raise ValueError(f"{text!r} is no amount")
    return sign * (int(whole) * 100 + int((part + "00")[:2]))


def show(cents):
    """Cents as text with two decimals and commas between thousands."""
    sign = "-" if cents < 0 else ""
    return f"{sign}{abs(cents) // 100:,}.{abs(cents) % 100:02d}"


def split(cents, ways):
    """Shares that differ by at most one cent and add up; the first shares get the extra cents."""
    if ways < 1:
        raise ValueError("ways must be at least 1")
    share, rest = divmod(cents, ways)
    return [share + 1 if number < rest else share for number in range(ways)]
