"""The three tools: a shell, a plain editor, and `submit`. What a tool cannot do it says in words; nothing raises."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from snooze_repair.workspace import ToolError, Workspace


def _tool(name: str, description: str, properties: Mapping[str, Any], required: list[str]) -> dict[str, Any]:
    parameters = {"type": "object", "properties": dict(properties), "required": required}
    return {
        "type": "function",
        "function": {"name": name, "description": description, "parameters": parameters},
    }


TOOLS: tuple[dict[str, Any], ...] = (
    _tool(
        "shell",
        "Run a command with sh in the project's folder; python3 and the usual text tools are there, no network. "
        "Gives stdout and stderr.",
        {"command": {"type": "string"}},
        ["command"],
    ),
    _tool(
        "edit",
        "view: show a file with line numbers (first_line and last_line are optional). "
        "str_replace: replace old_str, which must stand in the file exactly once, by new_str. "
        "create: write a file with the text content.",
        {
            "command": {"type": "string", "enum": ["view", "str_replace", "create"]},
            "path": {"type": "string"},
            "old_str": {"type": "string"},
            "new_str": {"type": "string"},
            "content": {"type": "string"},
            "first_line": {"type": "integer"},
            "last_line": {"type": "integer"},
        },
        ["command", "path"],
    ),
    _tool("submit", "Hand in the project's files as they are now. Ends the work.", {}, []),
)
"""As an OpenAI chat request lists them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a tool call gave."""

    text: str
    submitted: bool = False


class Tools:
    """The tools of one episode."""

    def __init__(self, workspace: Workspace, *, output_chars: int) -> None:
        self._workspace = workspace
        self._output_chars = output_chars

    async def call(self, name: str, arguments: str) -> Outcome:
        """Raises vf.SandboxError when the box is lost, and nothing else."""
        try:
            if name == "submit":
                return Outcome(text="Submitted.", submitted=True)
            given = _arguments(arguments)
            if name == "shell":
                text = await self._shell(given)
            elif name == "edit":
                text = await self._edit(given)
            else:
                raise ToolError(f"there is no tool {name!r}; use shell, edit or submit")
        except ToolError as error:
            text = f"error: {error}"
        return Outcome(text=self._cut(text))

    async def _shell(self, given: Mapping[str, Any]) -> str:
        ran = await self._workspace.shell(_text(given, "command"))
        notes = []
        if ran.timed_out:
            notes.append("[stopped: the command took too long]")
        elif ran.exit_code:
            notes.append(f"[exit code {ran.exit_code}]")
        return (
            "\n".join([part for part in (self._cut(ran.output.rstrip("\n")), *notes) if part])
            or "[no output]"
        )

    async def _edit(self, given: Mapping[str, Any]) -> str:
        command, path = _text(given, "command"), _text(given, "path")
        if command == "view":
            return _numbered(await self._workspace.read(path), given)
        if command == "create":
            await self._workspace.write(path, _text(given, "content"))
            return f"wrote {path}"
        if command != "str_replace":
            raise ToolError(f"edit has no command {command!r}; use view, str_replace or create")
        old, new = _text(given, "old_str"), _text(given, "new_str")
        text = await self._workspace.read(path)
        count = text.count(old) if old else 0
        if count != 1:
            raise ToolError(f"old_str must stand in {path} exactly once, it is there {count} times")
        await self._workspace.write(path, text.replace(old, new))
        return f"changed {path}"

    def _cut(self, text: str) -> str:
        """Head and tail of what is too long, with a note on how much is missing."""
        limit = self._output_chars
        if len(text) <= limit:
            return text
        head, tail = text[: limit * 2 // 3], text[len(text) - limit // 3 :]
        return f"{head}\n[... {len(text) - len(head) - len(tail)} characters left out ...]\n{tail}"


def _arguments(text: str) -> Mapping[str, Any]:
    try:
        given = json.loads(text or "{}")
    except (ValueError, RecursionError) as error:
        raise ToolError(f"the arguments are not JSON: {error}") from None
    if not isinstance(given, dict):
        raise ToolError("the arguments must be a JSON object")
    return given


def _text(given: Mapping[str, Any], name: str) -> str:
    value = given.get(name)
    if not isinstance(value, str):
        raise ToolError(f"{name} must be given, as a string")
    return value


def _numbered(text: str, given: Mapping[str, Any]) -> str:
    lines = text.splitlines()
    first, last = _line(given, "first_line", 1), _line(given, "last_line", len(lines))
    shown = list(enumerate(lines, start=1))[max(first, 1) - 1 : max(last, 0)]
    return "\n".join(f"{number:>4}  {line}" for number, line in shown) or "[no lines there]"


def _line(given: Mapping[str, Any], name: str, default: int) -> int:
    value = given.get(name, default)
    if value is None:
        return default
    if not isinstance(value, int) or isinstance(value, bool):
        raise ToolError(f"{name} must be a whole number")
    return value
