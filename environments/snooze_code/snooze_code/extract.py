"""From a reply to the program in it."""

from __future__ import annotations

import ast
import re
import textwrap
import warnings
from collections.abc import Sequence

_THINK = re.compile(r"<think>.*?</think>", re.DOTALL)
_FENCE = re.compile(r"^(?P<indent>[ \t]*(?:[-*>] ?)?)(?P<mark>`{3,}|~{3,})[ \t]*(?P<tag>[\w+#.-]*)[^\n`]*$")
_LONGEST = 50_000
"""Characters of text that is looked at as a program; a fenced block may be longer and is run as it is."""
_LONGEST_EXPRESSION = 200
_TRIES = 8
_PYTHON_TAGS = frozenset({"", "py", "python", "python3", "py3", "python3.11"})
_STARTS = ("def ", "import ", "from ", "class ", "@", "async def ", "for ", "while ", "print(", "n = ", "if ")


def extract(reply: str, entry: str = "") -> str:
    """The program a reply commits to, "" where there is none.

    The last fenced block counts that is Python (tagged so, or untagged and parsable); with `entry`, the last that
    defines it. A fence that never closes runs to the end of the reply. Without any fence it is the reply itself, or
    the longest run of its lines that is a program. What stands in `<think>` is not part of the reply.
    """
    reply = reply.encode("utf-8", "replace").decode(
        "utf-8"
    )  # half a surrogate pair is no text to send to a box
    reply = _THINK.sub("", reply.replace("\r\n", "\n"))
    if "<think>" in reply:  # thought until the tokens ran out
        reply = reply.partition("<think>")[0]
    reply = reply.rpartition("</think>")[2]
    blocks = _blocks(reply)
    if blocks is not None:
        return _chosen(blocks, entry)
    text = textwrap.dedent(reply).strip("\n")
    return text if text.strip() and parses(text) else _longest_program(text)


def parses(code: str) -> bool:
    """Whether it is Python syntax."""
    return _tree(code) is not None


def is_expression(text: str) -> bool:
    """Whether it is one expression on one line, without spaces around it."""
    if len(text) > _LONGEST_EXPRESSION:
        return False
    try:
        ast.parse(f"({text})", mode="eval")
        ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return len(text.splitlines()) == 1 and text == text.strip() and "#" not in text


def defines(code: str, entry: str) -> bool:
    """Whether the program binds the first part of the dotted name at its top level."""
    tree = _tree(code)
    wanted = entry.partition(".")[0]
    if tree is None:
        return False
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.name == wanted:
            return True
        targets = node.targets if isinstance(node, ast.Assign) else []
        if any(isinstance(target, ast.Name) and target.id == wanted for target in targets):
            return True
    return False


def _tree(code: str) -> ast.Module | None:
    """The syntax tree, None where there is none or the text is longer than any solution."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an odd escape in a reply is the reply's business
            return ast.parse(code) if len(code) <= _LONGEST else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _blocks(reply: str) -> list[tuple[str, str]] | None:
    """(tag, code) of the fenced blocks in order; None where nothing is fenced."""
    found: list[tuple[str, str]] = []
    lines: list[str] = []
    opened: re.Match[str] | None = None
    for line in reply.split("\n"):
        fence = _FENCE.match(line)
        if opened is None:
            if fence:
                opened, lines = fence, []
        elif fence and not fence["tag"] and fence["mark"].startswith(opened["mark"]):
            found.append((opened["tag"].lower(), _dedented(lines)))
            opened = None
        else:
            lines.append(line)
    if opened is not None:
        found.append((opened["tag"].lower(), _dedented(lines)))
    return found or None


def _dedented(lines: Sequence[str]) -> str:
    return textwrap.dedent("\n".join(lines)).strip("\n")


def _chosen(blocks: Sequence[tuple[str, str]], entry: str) -> str:
    python = [code for tag, code in blocks if tag in _PYTHON_TAGS and (tag or parses(code))]
    if entry:
        python = [code for code in python if defines(code, entry)] or python
    return python[-1] if python else ""


def _longest_program(text: str) -> str:
    """The lines from the first that looks like code to the last before a syntax error."""
    lines = text.split("\n") if len(text) <= _LONGEST else []
    starts = [i for i, line in enumerate(lines) if line.startswith(_STARTS)]
    for start in starts[:_TRIES]:
        end = len(lines)
        for _ in range(_TRIES):
            code = "\n".join(lines[start:end]).strip("\n")
            if not code:
                break
            broken = _broken_line(code)
            if broken is None:
                return code
            end = start + broken - 1
    return ""


def _broken_line(code: str) -> int | None:
    """Number of the line at which Python gives up, from 1; None where the code is a program."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(code)
    except SyntaxError as error:
        return max(error.lineno or 1, 1)
    except (ValueError, RecursionError, MemoryError):
        return 1
    return None
