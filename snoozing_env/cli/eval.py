"""`snooze eval`: a model on environments, with intervals; two such runs compared."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from snoozing_env.cli.options import parse_options, take_flags
from snoozing_env.errors import SnoozingError

if TYPE_CHECKING:
    from rich.console import Console

DESCRIPTION = """Evaluate a model on environments through an OpenAI-compatible endpoint.

flags: --dry-run (load the tasks, print what would run), --resume (go on after an interruption), --overwrite,
       --compare RUN_A RUN_B (a paired test of two runs; nothing is rolled out)"""


def main(arguments: Sequence[str]) -> None:
    """`snooze eval`: roll out, then score what is on disk."""
    from rich.console import Console

    console, words = Console(), list(arguments)
    if "--compare" in words:
        _compare(words, console)
        return
    flags, rest = take_flags(words, ("dry_run", "resume", "overwrite"))
    from snoozing_env.evaluate.config import EvalConfig
    from snoozing_env.evaluate.run import Options, Tick, evaluate, plan

    config = parse_options(EvalConfig, rest, prog="snooze eval", description=DESCRIPTION, where="evaluation")
    if {"resume", "overwrite"} <= flags:
        raise SnoozingError("--resume and --overwrite exclude each other")
    planned = plan(config)
    if "dry_run" in flags:
        from snoozing_env.evaluate.describe import describe

        console.print(describe(config, [config.endpoint], planned))
        return
    from snoozing_env.report.evaluation_console import RolloutProgress

    label = config.endpoint.label
    with RolloutProgress([label], console=console) as progress:

        def report(tick: Tick) -> None:
            progress.update(label, done=tick.done, total=tick.total, invalid=tick.invalid, note=tick.note)

        options = Options(resume="resume" in flags, overwrite="overwrite" in flags)
        evaluate(config, config.endpoint, planned, Path(config.output), options, report)
    _show(Path(config.output), config.samples, console)


def _show(directory: Path, samples: int, console: Console) -> None:
    from rich.text import Text

    from snoozing_env.report import evaluation_console as tables
    from snoozing_env.report.evaluation import load_evaluation, write_summary
    from snoozing_env.report.evaluation_page import write_evaluation_page

    run = load_evaluation(directory)
    summary, page = write_summary(run), write_evaluation_page(run, samples=samples)
    for table in (tables.scores_table(run), tables.two_sided_table(run), tables.cost_table(run)):
        if table is not None:
            console.print(table)
    for line in tables.error_lines(run):
        console.print(Text(line, style="yellow"), soft_wrap=True)
    console.print(f"summary: {summary}\nreport: {page}", soft_wrap=True, markup=False)
    if run.mean is None:
        raise SnoozingError("no rollout got a verdict; the reasons are above, and --resume tries again")


def _compare(words: Sequence[str], console: Console) -> None:
    from snoozing_env.report.evaluation import compare, load_evaluation
    from snoozing_env.report.evaluation_console import paired_table
    from snoozing_env.report.evaluation_page import write_comparison_page

    rest = [w for w in words if w != "--compare"]
    out = Path("comparison.html")
    if "--out" in rest and rest.index("--out") + 1 < len(rest):
        at = rest.index("--out")
        out = Path(rest[at + 1])
        del rest[at : at + 2]
    if len(rest) != 2 or any(w.startswith("-") for w in rest):
        raise SnoozingError(
            "usage: snooze eval --compare RUN_A RUN_B [--out FILE]; a run is an output directory"
        )
    a, b = (load_evaluation(run) for run in rest)
    found = compare(a, b)
    console.print(paired_table(rest[0], rest[1], found))
    console.print(f"report: {write_comparison_page(a, b, found, out)}", soft_wrap=True, markup=False)
