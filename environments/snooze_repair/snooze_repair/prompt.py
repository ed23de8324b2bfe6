"""What the policy is told: the symptom in words and one example, never the cause."""

from __future__ import annotations

from snooze_repair.bank import Bug
from snooze_repair.checks import Block

SYSTEM = """\
You repair programs. You work in a folder with a shell and an editor.
Find out why the program misbehaves, change its source so that it does what it promises, and call `submit`.
Only the project's own files count: they are tested elsewhere, with tests that you do not see."""


def task_prompt(bug: Bug, turns: int) -> str:
    home = bug.home()
    block = home.checks.blocks[bug.shown.block]
    sizes = [f"  {path} ({text.count(chr(10))} lines)" for path, text in sorted(bug.files().items())]
    return "\n".join(
        [
            f"{home.checks.about}",
            "",
            "Its files, in the current folder:",
            *sizes,
            "",
            "It has a bug. This promise does not hold:",
            f"  {block.words}.",
            "",
            "For example:",
            "```python",
            *_shown_lines(home.checks.imports, block, bug.shown.step),
            "```",
            _what_happened(block, bug),
            "",
            "The bug may show elsewhere too; all of the program's promises are tested. "
            f"You have {turns} turns. Call `submit` when you are done: without it nothing is tested.",
        ]
    )


def _shown_lines(imports: str, block: Block, step: int) -> list[str]:
    return [*imports.splitlines(), *(one.source for one in block.steps[: step + 1])]


def _what_happened(block: Block, bug: Bug) -> str:
    step = block.steps[bug.shown.step]
    if not step.wanted:
        return f"The last line {bug.shown.what}; it should run."
    return f"The last line {bug.shown.what}; it should {_infinitive(step.wanted)}."


def _infinitive(wanted: str) -> str:
    return (
        "give" + wanted.removeprefix("gives")
        if wanted.startswith("gives")
        else "raise" + wanted.removeprefix("raises")
    )
