"""What a reply puts into its answer field and its evidence field. Linear in the reply; a huge one is cut to its ends.

    <answer>Rollo</answer>        the field; `Answer: Rollo` on a line of its own is read the same
    <evidence>under their leader Rollo</evidence>    optional, `Evidence: "…"` as well

A reply of one short line without any field is its own answer, as in the bare style.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

HEAD, TAIL = 10_000, 30_000
"""Characters kept from both ends of a longer reply: the answer belongs at the end, a contradiction often sits at the start."""
MAX_FIELDS = 20
"""More fields than this are no answer."""
MAX_LINE = 300
"""Characters a reply without a field may have and still be an answer."""

_TAG = re.compile(r"<(/?)(answer|evidence)>", re.I | re.A)
_LINE = re.compile(
    r"^[ \t>*_#-]{0,8}(?:final[ ])?(?P<name>answer|evidence)[*_ ]{0,4}:[*_]{0,3}(?P<text>[^\n]*)",
    re.I | re.M | re.A,
)
_CLAIM = re.compile(r"\banswer(?: to the question)? is:?[ ]+(?P<text>[^\n]{1,300})", re.I | re.A)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A reply taken apart."""

    answers: tuple[str, ...]
    """Contents of the answer fields in order; of a one-line reply without a field, the line."""
    evidence: tuple[str, ...]
    has_field: bool
    prose: str
    """Everything outside the fields."""
    claims: tuple[str, ...]
    """What the prose says the answer is."""


def read_reply(response: str) -> Reply:
    """Takes a reply apart; thinking is left out, and thinking that never ended leaves nothing."""
    text = _window(_after_thinking(response))
    spans = _tagged(text)
    covered = [(start, end) for _, start, end, _ in spans]
    lines = [
        (m["name"].lower(), m.start(), m.end(), m["text"])
        for m in _LINE.finditer(text)
        if not _overlaps(covered, m.start(), m.end())
    ]
    found = sorted([*spans, *lines], key=lambda span: span[1])
    prose = _outside(text, [(start, end) for _, start, end, _ in found])
    answers = tuple(_bare(content) for name, _, _, content in found if name == "answer")
    has_field = bool(answers)
    if not has_field and not found:
        answers = _one_line(text)
    return Reply(
        answers=answers,
        evidence=tuple(content.strip().strip('"“”') for name, _, _, content in found if name == "evidence"),
        has_field=has_field,
        prose=prose,
        claims=tuple(m["text"] for m in _CLAIM.finditer(prose)) if has_field else (),
    )


def _after_thinking(response: str) -> str:
    start, end = response.rfind("<think>"), response.rfind("</think>")
    if start > end:
        return ""
    return response[end + len("</think>") :] if end >= 0 else response


def _window(text: str) -> str:
    return text if len(text) <= HEAD + TAIL else f"{text[:HEAD]}\n{text[-TAIL:]}"


def _tagged(text: str) -> list[tuple[str, int, int, str]]:
    """(name, start, end, content) of each field; the innermost of nested ones, an unclosed last one to its line's end."""
    found: list[tuple[str, int, int, str]] = []
    opened: tuple[str, int, int] | None = None
    for tag in _TAG.finditer(text):
        name = tag[2].lower()
        if not tag[1]:
            if opened is not None and opened[0] != name:
                found.append(_unclosed(text, opened, tag.start()))
            opened = (name, tag.start(), tag.end())
        elif opened is not None and opened[0] == name:
            found.append((name, opened[1], tag.end(), text[opened[2] : tag.start()]))
            opened = None
    if opened is not None:
        found.append(_unclosed(text, opened, len(text)))
    return found


def _unclosed(text: str, opened: tuple[str, int, int], limit: int) -> tuple[str, int, int, str]:
    name, start, inside = opened
    newline = text.find("\n", inside, limit)
    end = limit if newline < 0 else newline
    return name, start, end, text[inside:end]


def _overlaps(spans: list[tuple[int, int]], start: int, end: int) -> bool:
    # A reply with a great many fields is refused anyway; the search must not be quadratic in them.
    return any(s < end and start < e for s, e in spans[:MAX_FIELDS])


def _outside(text: str, spans: list[tuple[int, int]]) -> str:
    parts, at = [], 0
    for start, end in spans:
        parts.append(text[at:start] if start > at else "")
        at = max(at, end)
    return "\n".join([*parts, text[at:]])


def _one_line(text: str) -> tuple[str, ...]:
    line = text.strip()
    if not line or "\n" in line or len(line) > MAX_LINE:
        return ()
    claim = _CLAIM.search(line)
    return (_bare(claim["text"] if claim else line),)


def _bare(content: str) -> str:
    """Without spaces and the markdown around it."""
    text = content.strip()
    for mark in ("**", "__", "`"):
        if len(text) > 2 * len(mark) and text.startswith(mark) and text.endswith(mark):
            text = text[len(mark) : -len(mark)].strip()
    return text
