"""`snooze report`: one page over finished or running runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from snoozing_env.errors import SnoozingError


def main(arguments: Sequence[str]) -> None:
    from rich.console import Console

    from snoozing_env.report.console import run_tables
    from snoozing_env.report.html import write_report

    runs, out = list(arguments), Path("report.html")
    if "--out" in runs:
        at = runs.index("--out")
        if at + 1 == len(runs):
            raise SnoozingError("--out needs a file name")
        out = Path(runs[at + 1])
        del runs[at : at + 2]
    if not runs or any(r.startswith("-") for r in runs):
        raise SnoozingError(
            "usage: snooze report RUN [RUN ...] [--out FILE]; a run is a directory or its metrics.jsonl"
        )
    console = Console()
    console.print(*run_tables(runs), sep="\n")
    console.print(f"report: {write_report(runs, out)}", soft_wrap=True)
