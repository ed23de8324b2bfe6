"""`snooze train`: one run, or the arms of a recipe in processes of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from snoozing_env.errors import SnoozingError

STOPPED_CODE = 143
"""What a shell reports for a program that SIGTERM ended: the run is not done, and can go on."""


@dataclass(slots=True)
class _Flags:
    """Flags of `train` that are no recipe keys."""

    dry_run: bool = False
    resume: bool = False
    overwrite: bool = False
    merge_state: bool = False
    arm: str = ""


def main(arguments: Sequence[str]) -> None:
    """`snooze train`: one arm here, several in processes of their own."""
    from rich.console import Console

    from snoozing_env.train.recipe import load_recipe

    flags, rest = _split_flags(arguments)
    recipe = load_recipe(rest)
    if flags.resume and flags.overwrite:
        raise SnoozingError("--resume and --overwrite exclude each other")
    console = Console()
    if flags.dry_run:
        from snoozing_env.train.dry_run import describe

        console.print(describe(recipe))
        return
    from snoozing_env.report.console import run_tables
    from snoozing_env.train.arms import train_arms
    from snoozing_env.train.run import STOPPED, RunOptions, end_of
    from snoozing_env.train.run import train as train_one

    if recipe.arms and not flags.arm:
        report = train_arms(recipe, arguments, console=console)
    else:
        one = recipe.for_arm(flags.arm) if flags.arm else recipe
        options = RunOptions(
            resume=flags.resume, overwrite=flags.overwrite, merge_state=flags.merge_state, arm=flags.arm
        )
        report = train_one(one, options, console=console)
        console.print(*run_tables([one.directory]), sep="\n")
        if (reason := end_of(one.directory)).startswith(STOPPED):
            console.print(reason, soft_wrap=True, markup=False)
            raise SystemExit(STOPPED_CODE)
    console.print(f"report: {report}", soft_wrap=True)


def _split_flags(arguments: Sequence[str]) -> tuple[_Flags, list[str]]:
    flags, rest = _Flags(), list[str]()
    queue = list(arguments)
    while queue:
        word = queue.pop(0)
        name = word.removeprefix("--").replace("-", "_")
        if word == "--arm":
            if not queue:
                raise SnoozingError("--arm needs the name of an arm")
            flags.arm = queue.pop(0)
        elif word.startswith("--") and name in ("dry_run", "resume", "overwrite", "merge_state"):
            setattr(flags, name, True)
        else:
            rest.append(word)
    return flags, rest
