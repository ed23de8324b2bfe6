"""Marks inside a line: emphasis, code, links."""

SPECIAL = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


def escape(text):
    return "".join(SPECIAL.get(c, c) for c in text)


def inline(text):
    """A line as HTML. Marks without a partner stay as they are."""
    out, i = "", 0
    while i < len(text):
        c = text[i]
        if c == "\\" and i + 1 < len(text):
            out += escape(text[i + 1])
            i += 2
            continue
        if c == "`":
            end = text.find("`", i + 1)
            if end > i:
                out += f"<code>{escape(text[i + 1 : end])}</code>"
                i = end + 1
                continue
        if text.startswith("**", i):
            end = text.find("**", i + 2)
            if end > i + 2:
                out += f"<b>{inline(text[i + 2 : end])}</b>"
                i = end + 2
                continue
        elif c == "*":
            end = text.find("*", i + 1)
            if end > i + 1:
                out += f"<i>{inline(text[i + 1 : end])}</i>"
                i = end + 1
                continue
        if c == "[":
            close = text.find("](", i)
            end = text.find(")", close)
            if close > i and end > close:
                out += f'<a href="{escape(text[close + 2 : end])}">{inline(text[i + 1 : close])}</a>'
                i = end + 1
                continue
        out += escape(c)
        i += 1
    return out
