"""Words into lines of limited width."""


def words_of(text, width):
    """Words, those longer than a line cut into pieces that fit."""
    found = []
    for word in text.split():
        while len(word) > width:
            found.append(word[:width])
            word = word[width:]
        if word:
            found.append(word)
    return found


def wrap(text, width, first="", rest=""):
    """Lines of at most `width` characters. `first` starts the first line and `rest` every other."""
    if width < 1:
        raise ValueError("width must be at least 1")
    lines, line = [], ""
    for word in words_of(text, width - max(len(first), len(rest))):
        start = rest if lines else first
        if not line:
            line = start + word
        elif len(line) + 1 + len(word) <= width:
            line += " " + word
        else:
            lines.append(line)
            line = rest + word
    if line:
        lines.append(line)
    return lines


def justify(line, width):
    """Spread the blanks of a line so that it fills the width; extra blanks go to the left."""
    words = line.split()
    if len(words) < 2:
        return line
    blanks = width - sum(len(word) for word in words)
    share, extra = divmod(blanks, len(words) - 1)
    text = words[0]
    for number, word in enumerate(words[1:]):
        text += " " * (share + (1 if number < extra else 0)) + word
    return text


def align(line, width, how="left"):
    room = max(0, width - len(line))
    if how == "left":
        return line + " " * room
    if how == "right":
        return " " * room + line
    if how == "center":
        left = room // 2
        return " " * left + line + " " * (room - left)
    raise ValueError(f"unknown alignment {how!r}")


def paragraphs(text, width, full=False):
    """Wrap each paragraph; an empty line stays between them. `full` justifies all but the last lines."""
    blocks = []
    for part in text.split("\n\n"):
        lines = wrap(part, width)
        if full:
            lines = [justify(line, width) for line in lines[:-1]] + lines[-1:]
        if lines:
            blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def shorten(text, width, mark="..."):
    """The words that fit, and a mark where some were left out."""
    text = " ".join(text.split())
    if len(text) <= width:
        return text
    kept = ""
    for word in text.split():
        longer = f"{kept} {word}" if kept else word
        if len(longer) + len(mark) > width:
            break
        kept = longer
    return kept + mark
