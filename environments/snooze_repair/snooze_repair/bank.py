"""The verified bugs: which change of which project, which promises it breaks, and what was seen.

Verifying takes a sandbox and minutes, loading takes neither: the bank holds what `python -m snooze_repair.inject`
found, the seed it drew with, and a digest of every project. A project whose text has changed since is refused.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from snooze_repair.authored import Project, projects
from snooze_repair.checks import Seen
from snooze_repair.edits import Edit, applied
from snooze_repair.operators import HARDNESS

BANK = Path(__file__).parent / "bank.jsonl"
LEVELS = (1, 2, 3, 4, 5)
_POINTS = (2, 3, 4, 6)
"""Points from which a bug is of level 2, 3, 4, 5: chosen so that no level is rare."""


class BankError(RuntimeError):
    """The bank does not belong to the installed projects."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bug:
    """One verified bug."""

    project: str
    edit: Edit
    """From the working program to the broken one."""
    fails: tuple[int, ...]
    """Blocks of the project's checks that it breaks, at least two: one is shown, the others stay hidden."""
    shown: Seen
    """The failure that the prompt describes."""

    @property
    def id(self) -> str:
        """Durable name, from the change itself."""
        content = json.dumps([self.project, asdict(self.edit)], sort_keys=True)
        return f"{self.project}-{hashlib.sha256(content.encode()).hexdigest()[:10]}"

    def home(self) -> Project:
        return projects()[self.project]

    def files(self) -> dict[str, str]:
        """The broken program."""
        return applied(self.home().files, self.edit)

    @property
    def level(self) -> int:
        """1 (easy) to 5: size, number of files, how far the symptom lies from the cause, how much is broken."""
        home = self.home()
        points = HARDNESS[self.edit.kind] + (len(home.files) - 1)
        points += sum(home.lines > bound for bound in (60, 90, 130))
        points += len(self.fails) <= 3
        return 1 + sum(points >= bound for bound in _POINTS)

    def line(self) -> str:
        """As it stands in the bank."""
        edit = self.edit
        row = [self.project, edit.path, edit.at, edit.old, edit.new, edit.kind, list(self.fails)]
        return json.dumps([*row, self.shown.block, self.shown.step, self.shown.what])


def _read(line: str) -> Bug:
    project, path, at, old, new, kind, fails, block, step, what = json.loads(line)
    return Bug(
        project=project,
        edit=Edit(path=path, at=at, old=old, new=new, kind=kind),
        fails=tuple(fails),
        shown=Seen(block=block, step=step, what=what),
    )


def write_bank(bugs: list[Bug], *, seed: int, path: Path = BANK) -> None:
    digests = {name: project.digest()[:16] for name, project in projects().items()}
    head = json.dumps({"seed": seed, "bugs": len(bugs), "projects": digests}, sort_keys=True)
    path.write_text("\n".join([head, *(bug.line() for bug in bugs)]) + "\n", encoding="utf-8")


@cache
def bank() -> Mapping[str, Bug]:
    """All verified bugs by id. Raises BankError where a project is not the one that was verified."""
    head, *lines = BANK.read_text(encoding="utf-8").splitlines()
    verified = json.loads(head)["projects"]
    now = {name: project.digest()[:16] for name, project in projects().items()}
    if changed := sorted(
        name for name in verified.keys() | now.keys() if verified.get(name) != now.get(name)
    ):
        raise BankError(
            f"the bank was verified against another text of {', '.join(changed)}; "
            "verify it again with `python -m snooze_repair.inject`"
        )
    bugs = [_read(line) for line in lines]
    return {bug.id: bug for bug in bugs}
