"""`python -m snooze_repair.inject`: find bugs that the tests can see, in sandboxes, and write the bank.

project ─ operators ─▶ candidate edits ─ drawn in turns over the kinds ─▶ graded by the hidden tests in a box
                                               │ all pass: equivalent, dropped
                                               │ no test passes, or none ends: too plain, or slow, dropped
                                               └ at least two promises broken, most of the rest kept: a bug
"""

from __future__ import annotations

import argparse
import asyncio
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

from snoozing_sandboxes import Pool, open_pool

from snooze_repair.authored import Project, projects
from snooze_repair.bank import Bug, write_bank
from snooze_repair.edits import Edit, applied
from snooze_repair.grading import failures, grade
from snooze_repair.operators import edits
from snooze_repair.prompt import task_prompt

PER_PROJECT = 15
"""Bugs verified per project; of those that read the same, one is kept."""
BATCH = 24
"""Graded at once; the slowest holds up the rest, so few large ones. The outcome does not depend on it."""
_KEPT_SHARE = 0.34
"""Promises that must still hold: a program in which nothing works is no puzzle."""

_CPU_S = 1.0
"""A quarter of what a submission gets: a program that is merely slow would be judged by the machine's mood."""
_PLAIN = ("raises NameError", "raises UnboundLocalError", "raises SyntaxError")
"""What a linter sees without running anything."""


async def verify(pool: Pool, project: Project, edit: Edit) -> Bug | None:
    """The edit as a bug, None where it is none or no good one."""
    graded = await grade(pool, project, applied(project.files, edit), cpu_s=_CPU_S)
    seen = failures(graded)
    total = len(project.checks.blocks)
    if seen is None or len(seen) < 2 or graded.passed + len(seen) != total:
        return None
    if graded.passed < _KEPT_SHARE * total or any(one.what.startswith(_PLAIN) for one in seen):
        return None
    # The shortest example is the clearest; ties go to the first promise.
    shown = min(seen, key=lambda one: (one.step, len(one.what), one.block))
    return Bug(project=project.name, edit=edit, fails=tuple(one.block for one in seen), shown=shown)


def in_turns(candidates: Iterable[Edit], draw: random.Random) -> Iterator[Edit]:
    """Shuffled, one kind after the other, so that no kind crowds out the rest."""
    kinds: dict[str, list[Edit]] = defaultdict(list)
    for edit in candidates:
        kinds[edit.kind].append(edit)
    for group in kinds.values():
        draw.shuffle(group)
    order = sorted(kinds)
    draw.shuffle(order)
    while order:
        for kind in list(order):
            yield kinds[kind].pop()
            if not kinds[kind]:
                order.remove(kind)


async def bugs_of(pool: Pool, project: Project, *, seed: int, keep: int = PER_PROJECT) -> list[Bug]:
    """Up to `keep` verified bugs. Raises ValueError where the working program fails its own tests."""
    if not (await grade(pool, project, project.files)).ok:
        raise ValueError(f"{project.name} fails its own tests as it stands")
    candidates = [edit for path, text in project.files.items() for edit in edits(path, text)]
    queue = list(in_turns(candidates, random.Random(f"{seed}/{project.name}")))
    found: dict[str, Bug] = {}
    while queue and len(found) < keep:
        batch, queue = queue[:BATCH], queue[BATCH:]
        verified = await asyncio.gather(*(verify(pool, project, edit) for edit in batch))
        for bug in verified:
            if bug is not None and len(found) < keep:
                found.setdefault(_program(bug), bug)
    # Two tasks that read the same would be taken for duplicates: the first stays.
    told: dict[str, Bug] = {}
    for bug in found.values():
        told.setdefault(task_prompt(bug, 0), bug)
    return list(told.values())


def _program(bug: Bug) -> str:
    """Two edits may give one program."""
    return "\0".join(bug.files().values())


async def inject(names: Sequence[str], *, seed: int, boxes: int) -> list[Bug]:
    """Bugs of the named projects, in a fixed order whatever the order of gradings."""
    bugs: list[Bug] = []
    async with open_pool(boxes=boxes, spares=0) as pool:
        for name in names:
            found = await bugs_of(pool, projects()[name], seed=seed)
            print(f"{name}: {len(found)} bugs, {dict(Counter(bug.edit.kind for bug in found))}", flush=True)
            bugs += found
    return bugs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--boxes", type=int, default=2)
    parser.add_argument("--only", nargs="*", default=[], help="try these projects and write nothing")
    options = parser.parse_args()
    bugs = asyncio.run(inject(options.only or sorted(projects()), seed=options.seed, boxes=options.boxes))
    if not options.only:
        write_bank(bugs, seed=options.seed)
        print(f"{len(bugs)} bugs written, levels {dict(sorted(Counter(bug.level for bug in bugs).items()))}")


if __name__ == "__main__":
    main()
