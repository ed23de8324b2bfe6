"""`snooze stratify`: measure how hard each task is before training on it."""

from __future__ import annotations

from collections.abc import Sequence

from snoozing_env.cli.options import parse_options, take_flags
from snoozing_env.errors import SnoozingError

DESCRIPTION = """Roll out every task k times with one or several models, and write what that says of its difficulty.

flags: --dry-run (load the tasks, print what would run), --resume (go on after an interruption), --overwrite"""


def main(arguments: Sequence[str]) -> None:
    """`snooze stratify`: roll out, then measure what is on disk."""
    from rich.console import Console

    flags, rest = take_flags(arguments, ("dry_run", "resume", "overwrite"))
    from snoozing_env.evaluate.config import StratifyConfig
    from snoozing_env.evaluate.run import Options, Tick, plan

    config = parse_options(
        StratifyConfig, rest, prog="snooze stratify", description=DESCRIPTION, where="stratification"
    )
    if {"resume", "overwrite"} <= flags:
        raise SnoozingError("--resume and --overwrite exclude each other")
    console, planned = Console(), plan(config)
    if "dry_run" in flags:
        from snoozing_env.evaluate.describe import describe

        console.print(describe(config, config.models, planned))
        return
    from snoozing_env.evaluate.stratify import PRIORS, SUSPECTS, stratify
    from snoozing_env.report.evaluation_console import RolloutProgress
    from snoozing_env.report.stratification import strata_table, write_strata

    options = Options(resume="resume" in flags, overwrite="overwrite" in flags)
    with RolloutProgress([m.label for m in config.models], console=console) as progress:

        def report(label: str, tick: Tick) -> None:
            progress.update(label, done=tick.done, total=tick.total, invalid=tick.invalid, note=tick.note)

        found = stratify(config, planned, options, report)
    console.print(strata_table(found))
    page = write_strata(found)
    console.print(
        f"priors: {found.directory / PRIORS} (train with --environment.priors)\n"
        f"suspects: {found.directory / SUSPECTS}, {len(found.suspects)} tasks\nreport: {page}",
        soft_wrap=True,
        markup=False,
    )
