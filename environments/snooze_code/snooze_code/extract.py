"""From a reply to the program in it."""

from __future__ import annotations

import ast
import re
import textwrap
import warnings
from collections.abc import Sequence

_THINK = re.compile(r"<think>.*?</think>", re.DOTALL)
_FENCE = re.compile(r"^(?P<indent>[ \t]*(?:[-*>] ?)?)(?P<mark>`{3,}|~{3,})[ \t]*(?P<tag>[\w+#.-]*)[^\n`]*$")
_PYTHON_TAGS = frozenset({"", "py", "python", "python3", "py3", "python3.11"})
_STARTS = ("def ", "import ", "from ", "class ", "@", "async def ", "for ", "while ", "print(", "n = ", "if ")


def extract(reply: str, entry: str = "") -> str:
    """The program a reply commits to, "" where there is none.

    The last fenced block counts that is Python (tagged so, or untagged and parsable); with `entry`, the last that
    defines it. A fence that never closes runs to the end of the reply. Without any fence it is the reply itself, or
    the longest run of its lines that is a program. What stands in `<think>` is not part of the reply.
    """
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
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an odd escape in a reply is the reply's business
            return ast.parse(code)
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
    """The longest run of lines that is a program, from a line that looks like the first of one."""
    lines = text.split("\n")
    starts = [i for i, line in enumerate(lines) if line.startswith(_STARTS)]
    for start in starts[:20]:
        for end in range(len(lines), start, -1):
            if end < len(lines) and lines[end].startswith((" ", "\t")):
                continue  # would cut a block in two
            code = "\n".join(lines[start:end])
            if len(lines) - end < 200 and parses(code):
                return code.strip("\n")
    return ""
