"""Headings, lists, quotes, code and paragraphs."""

from inline import escape, inline


def heading(line):
    """(level, text), or None: one to six # and a blank."""
    level = len(line) - len(line.lstrip("#"))
    if 1 <= level <= 6 and line[level : level + 1] == " ":
        return level, line[level:].strip().rstrip("#").strip()
    return None


def item(line):
    """(kind, text) of a list item, or None."""
    if line[:2] in ("- ", "* "):
        return "ul", line[2:].strip()
    number, dot, text = line.partition(". ")
    if dot and number.isdigit():
        return "ol", text.strip()
    return None


def convert(text):
    lines = text.splitlines()
    out, i = [], 0
    while i < len(lines):
        line = lines[i]
        if not line.strip():
            i += 1
        elif line.startswith("```"):
            end = i + 1
            while end < len(lines) and not lines[end].startswith("```"):
                end += 1
            out.append("<pre>" + escape("\n".join(lines[i + 1 : end])) + "</pre>")
            i = end + 1
        elif heading(line):
            level, title = heading(line)
            out.append(f"<h{level}>{inline(title)}</h{level}>")
            i += 1
        elif item(line):
            kind, items = item(line)[0], []
            while i < len(lines) and item(lines[i]) and item(lines[i])[0] == kind:
                items.append(f"<li>{inline(item(lines[i])[1])}</li>")
                i += 1
            out.append(f"<{kind}>{''.join(items)}</{kind}>")
        elif line.startswith(">"):
            quoted = []
            while i < len(lines) and lines[i].startswith(">"):
                quoted.append(lines[i][1:].removeprefix(" "))
                i += 1
            out.append("<blockquote>" + convert("\n".join(quoted)) + "</blockquote>")
        else:
            paragraph = []
            while i < len(lines) and lines[i].strip() and not starts_block(lines[i]):
                paragraph.append(inline(lines[i].strip()))
                i += 1
            out.append("<p>" + " ".join(paragraph) + "</p>")
    return "\n".join(out)


def starts_block(line):
    return bool(line.startswith(("```", ">")) or heading(line) or item(line))
