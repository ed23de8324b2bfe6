"""The final answer of a reply, as text: the last box, a later "the answer is", `####`, `<answer>`, a final number.

Everything here is linear in the reply and looks only at its end, so a reply of any length costs the same.
"""

from __future__ import annotations

import re

TAIL = 30_000
"""Characters from the end that may hold the final answer."""

_BOX = re.compile(r"\\(?:boxed|fbox)(?:\s*(\{)|\s*([-+]?[\w.]+))")
_JOINED = re.compile(
    r"(?:[\s$()\[\]]|\\[()\[\]])*(?:\\text\{\s*)?(?:or|and|,\s*or|,\s*and|,|;|/)\s*\}?(?:[\s$()\[\]]|\\[()\[\]])*",
    re.I,
)
_MORE_AFTER = re.compile(r"[\s$]*(?:=|,?\s*\bor\b)[\s$]*(?P<more>[-+−]?[\d.][\w./^]{0,40})", re.I)
_MORE_BEFORE = re.compile(r"(?P<more>[-+−]?\d[\d.,/]{0,20})[\s$]*\bor[\s$]*$", re.I)
_MARKER = re.compile(
    r"(?:\banswer(?:[ ]+(?:to|for|of)[ ][^\n.:]{1,80}?)?[*_`]*[ ]*(?:\bis\b|:|=|\bwould be\b|\bmust be\b)[ ]*[:=]?[*_`]*"
    r"|^[ \t]*[*_`]*A[*_`]*:[*_`]*|\#\#\#\#)[ \t]*(?P<text>[^\n]*)",
    re.I | re.M,
)
_TAG = re.compile(r"<answer>(?P<text>[^<]{0,2000})</answer>", re.I)
_SENTENCE_END = re.compile(r"[.!?。](?=\s|$)")
_ASIDE = re.compile(r",?\s+(?:because|since|which|so that|not|but|hence|therefore)\b.*$", re.I | re.S)
_DOUBT = re.compile(r"\b(?:not|cannot|never|neither|nor|or|unsure|maybe|perhaps|wrong|\w+n't)\b", re.I)
_PROSE = re.compile(r"(?<![\\A-Za-z{])[A-Za-z]{2,}")
_NUMBER = re.compile(
    r"(?<![\w.,^_/{\\])[-+−]?(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+)(?:/\d+)?(?:[eE][-+]?\d+)?%?(?![\d^_!/{(]|[,.]\d)"
)
_ABBREVIATION = re.compile(r"\b[a-z]\.[a-z]\.$", re.I)
_LETTER = re.compile(r"[A-Za-z]")


def final_answer(response: str) -> str | None:
    """The text the reply commits to, None where it commits to nothing."""
    text = _after_thinking(response)
    if text is None:
        return None
    text = text[-TAIL:]
    box_end, boxed = _last_box(text)
    marked = _last_marked(text, box_end)
    if boxed is None:
        return marked if marked is not None else _bare(text)
    # A claim after the box replaces it, but only if it names a value: "the answer is correct" does not.
    return marked if marked is not None and re.search(r"\d", marked) else boxed


def stated(text: str) -> str | None:
    """The value in prose that states one, like a box holding "The answer is 460"."""
    return _last_marked(text, 0)


def _after_thinking(response: str) -> str | None:
    # What was thought aloud is not an answer, and thinking that never ended has none.
    start, end = response.rfind("<think>"), response.rfind("</think>")
    if start > end:
        return None
    return response[end + len("</think>") :] if end >= 0 else response


def _last_box(text: str) -> tuple[int, str | None]:
    boxes = _boxes(text)
    if not boxes:
        return 0, None
    start, end, content = boxes[-1]
    values = [content]
    for earlier_start, earlier_end, earlier in reversed(boxes[:-1]):
        if not _JOINED.fullmatch(text[earlier_end:start]):
            break
        values.insert(0, earlier)
        start = earlier_start
    # "7 or \boxed{5}" and "\boxed{7} = 5" are not one answer: keep every value, a list equals no single gold.
    if after := _MORE_AFTER.match(text, end):
        values.append(after["more"].rstrip("."))
    if before := _MORE_BEFORE.search(text[max(0, start - 40) : start]):
        values.insert(0, before["more"])
    return end, values[0] if len(set(values)) == 1 else " , ".join(values)


def _boxes(text: str) -> list[tuple[int, int, str]]:
    """Start, end and content of each outermost closed box, nested boxes unwrapped; an unclosed one is no box."""
    closes = _matching_braces(text)
    found: list[tuple[int, int, str]] = []
    for match in _BOX.finditer(text):
        if found and match.start() < found[-1][1]:
            continue
        if match[1] is None:
            found.append((match.start(), match.end(), match[2].rstrip(".")))
        elif (close := closes.get(match.end() - 1)) is not None:
            found.append((match.start(), close + 1, _unwrap(text, match.end(), close, closes)))
    return found


def _unwrap(text: str, start: int, end: int, closes: dict[int, int]) -> str:
    while inner := _BOX.match(text, start, end):
        if inner[1] is None or closes.get(inner.end() - 1) != end - 1:
            break
        start, end = inner.end(), end - 1
    return text[start:end]


def _matching_braces(text: str) -> dict[int, int]:
    pairs: dict[int, int] = {}
    stack: list[int] = []
    for match in re.finditer(r"\\.|[{}]", text, re.S):
        if match[0] == "{":
            stack.append(match.start())
        elif match[0] == "}" and stack:
            pairs[stack.pop()] = match.start()
    return pairs


def _last_marked(text: str, after: int) -> str | None:
    found = [(m.start("text"), m["text"]) for m in _MARKER.finditer(text, after)]
    found = [(at, tail) for at, tail in found if tail.strip(" *_`$.:")]
    found += [(m.start("text"), m["text"]) for m in _TAG.finditer(text, after)]
    if not found:
        return None
    _, tail = max(found)
    boxed = _boxes(tail)
    return boxed[-1][2] if boxed else _trim(tail)


def _trim(tail: str) -> str | None:
    """The first sentence of what follows a marker, without reasons and markdown."""
    tail = tail.strip().lstrip("*_`: ")
    end = _SENTENCE_END.search(tail)
    # The last dot of "4:30 p.m." and the mark of "5!" belong to the answer.
    if end and end[0] != "!" and not (end.end() == len(tail) and _ABBREVIATION.search(tail)):
        tail = tail[: end.start()]
    tail = _ASIDE.sub("", " " + tail).strip().strip("*_`").strip()
    return tail if tail and not re.match(r"(?:not|unknown|unclear)\b", tail, re.I) else None


def _bare(text: str) -> str | None:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines or "\\boxed" in lines[-1]:
        return None
    last = lines[-1].strip("*_`").strip()
    if not _PROSE.search(last):
        return last if len(lines) == 1 or not _LETTER.search(last) else None
    if len(lines) == 1 and re.fullmatch(r"\w+(?: \w+)?[.!]?", last) and not re.search(r"\d", last):
        return last  # "Yes.", "no solution"
    sentence = [part for part in _SENTENCE_END.split(last) if part.strip()][-1]
    numbers = _NUMBER.findall(sentence)
    if len(numbers) > 1 and (tail := re.fullmatch(r".*=\s*([^=]+)", sentence, re.S)):
        sentence, numbers = tail[1], _NUMBER.findall(tail[1])
    if (
        len(numbers) != 1
        or _DOUBT.search(last)
        or len(re.findall(r"\d+", sentence)) > len(re.findall(r"\d+", numbers[0]))
    ):
        return None
    return numbers[0]
