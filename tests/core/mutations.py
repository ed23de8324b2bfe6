"""The contract suite against the package with one promise taken out of its source (must-show 9).

Each mutant is a copy of the package in which one expression is replaced; the suite runs over it in a process of its own.
The expression must stand there exactly once, so a change of the source that a mutant no longer fits is an error here.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutation:
    """One promise, taken out."""

    file: str
    """Below snoozing_env/schedulers, or wherever its suite looks."""
    old: str
    """Regular expression."""
    new: str
    law: str
    """Law that must be broken by it; others may be too."""
    passes: bool = True
    """Whether `uniform` has this code."""
    selectors: bool = True
    """Whether the kinds with a selector have it."""


MUTATIONS = {
    "the snooze cap": Mutation(
        file="snooze.py",
        old=r"self\.config\.too_hard_cap(?=\b)",
        new="2.0**31",
        law="a_failing_task_is_checked_again_within_the_cap",
    ),
    "the floor": Mutation(
        file="source.py",
        old=r"self\._credit \+= self\._epsilon \* n",
        new="self._credit += 0.0",
        law="no_starvation",
        passes=False,
    ),
    "the busy check of selection": Mutation(
        file="source.py",
        old=r"open_N = awake_N & ~busy_N",
        new="open_N = awake_N.copy()",
        law="any_history",
        passes=False,
    ),
    "the busy check of the pass walk": Mutation(
        file="passes.py",
        old=r"np\.flatnonzero\(awake & ~busy\)\[:n\]",
        new="np.flatnonzero(awake)[:n]",
        law="any_history",
    ),
    "the decay": Mutation(
        file="difficulty.py",
        old=r"np\.float32\(self\.config\.decay\)",
        new="np.float32(1.0)",
        law="estimates_follow_the_policy",
    ),
    "the save of the selector's generator": Mutation(
        file="curriculum.py",
        old=r'self\._selector_rng\.bit_generator\.state = meta\["selector_rng"\]',
        new="pass",
        law="a_restored_twin_goes_on_alike",
        passes=False,
    ),
    "the save of the snooze generator": Mutation(
        file="snooze.py",
        old=r'self\._rng\.bit_generator\.state = state\["rng"\]',
        new="pass",
        law="a_restored_twin_goes_on_alike",
    ),
    "the save of the pass generator": Mutation(
        file="curriculum.py",
        old=r'self\._pass_rng\.bit_generator\.state = meta\["pass_rng"\]',
        new="pass",
        law="a_restored_twin_goes_on_alike",
    ),
}
"""What must-show 9 names: the cap, the floor, the busy check, the decay and the generators, by the place they live."""

SUITE = """
import json, sys, warnings
from dataclasses import replace
from snoozing_env import build_scheduler
from snoozing_env.testing import LAWS, Subject

kinds, laws, examples = json.loads(sys.argv[1])
broken = {}
for kind in kinds:
    def build(tasks, seed, snooze, kind=kind):
        told = [replace(task, text=f"What is {i % 7} plus {i // 7}?") for i, task in enumerate(tasks)]
        return build_scheduler({"kind": kind, "snooze": dict(snooze)}, told, seed)
    subject = Subject(build=build, floor=1.0 if kind == "uniform" else 0.02, examples=examples)
    broken[kind] = []
    for law in laws or LAWS:
        try:
            LAWS[law](subject)
        except AssertionError:
            broken[kind].append(law)
print(json.dumps(broken))
"""


def broken_laws(
    mutation: Mutation | None,
    folder: Path,
    kinds: Sequence[str],
    *,
    laws: Sequence[str] = (),
    examples: int = 25,
) -> dict[str, list[str]]:
    """Laws that each kind breaks in a copy of the package, mutated or (None) as it is; all laws, or those named."""
    change = None if mutation is None else (f"schedulers/{mutation.file}", mutation.old, mutation.new)
    return run_over_a_copy(SUITE, [list(kinds), list(laws), examples], folder, change)


def run_over_a_copy(
    suite: str, argument: object, folder: Path, change: tuple[str, str, str] | None
) -> dict[str, list[str]]:
    """What a suite prints, run over a copy of the package; `change`: file below it, expression, what replaces it."""
    package = folder / "snoozing_env"
    shutil.copytree(ROOT / "snoozing_env", package, ignore=shutil.ignore_patterns("__pycache__"))
    if change is not None:
        file, old, new = change
        text, count = re.subn(old, lambda _: new, (package / file).read_text())
        if count != 1:
            raise ValueError(f"{old!r} stands {count} times in {file}; once is wanted")
        (package / file).write_text(text)
    done = subprocess.run(
        [sys.executable, "-c", suite, json.dumps(argument)],
        cwd=folder,  # `-c` puts it first on the path
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"the suite did not run: {done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])
