"""A policy that knows the answer: it repairs a bug with the tools that any policy has."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from snooze_repair.bank import Bug


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One tool call."""

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)


def shell(command: str) -> Call:
    return Call(name="shell", arguments={"command": command})


def create(path: str, content: str) -> Call:
    return Call(name="edit", arguments={"command": "create", "path": path, "content": content})


def view(path: str) -> Call:
    return Call(name="edit", arguments={"command": "view", "path": path})


SUBMIT = Call(name="submit")


def repair(bug: Bug) -> Call:
    """The edit that undoes a bug: its lines, with as many before them as make them stand there once."""
    broken, undo = bug.files()[bug.edit.path], bug.edit.inverse()
    start = broken.rfind("\n", 0, undo.at) + 1
    end = undo.at + len(undo.old)
    end = len(broken) if (stop := broken.find("\n", end)) < 0 else stop
    while broken.count(broken[start:end]) != 1 and start:
        start = broken.rfind("\n", 0, start - 1) + 1
    old = broken[start:end]
    new = old[: undo.at - start] + undo.new + old[undo.at - start + len(undo.old) :]
    return Call(
        name="edit", arguments={"command": "str_replace", "path": undo.path, "old_str": old, "new_str": new}
    )


def gold_turns(bug: Bug) -> list[list[Call]]:
    """Look around, repair, try, submit: one list of calls per turn."""
    module = bug.edit.path.removesuffix(".py")
    return [
        [shell("ls -l"), view(bug.edit.path)],
        [repair(bug)],
        [shell(f"python3 -c 'import {module}'")],
        [SUBMIT],
    ]
