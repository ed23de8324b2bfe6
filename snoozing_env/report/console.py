"""The terminal side of the report: a live line while a run trains, the headline table when it is done."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from snoozing_env.report.compare import HEADERS, accuracy, cells, count, duration, headline, load_runs
from snoozing_env.report.goodput import MAIN, lines
from snoozing_env.report.runlog import EvalRecord, StepRecord
from snoozing_env.report.scale import share

PLAIN_STEPS, PLAIN_SECONDS = 10, 15.0
"""Without a terminal: a line after that many steps or that long, whichever comes first."""


def run_tables(runs: Sequence[str | os.PathLike[str]]) -> Iterator[Table]:
    """What there is to say of runs: the headlines, then goodput where an account was kept."""
    yield compare_table(runs)
    if (shares := goodput_table(runs)) is not None:
        yield shares


def compare_table(runs: Sequence[str | os.PathLike[str]]) -> Table:
    """The headline table of the report for a terminal; paths as in `write_report`, the first is the baseline.

    Up to four runs stand side by side, one measure a line, which fits 80 columns; more get a line each.
    """
    loaded = load_runs(runs)
    rows = [cells(headline(run, loaded)) for run in loaded]
    keep = [i for i in range(len(HEADERS)) if any(row[i] != "–" for row in rows)]
    grid = [[HEADERS[i] for i in keep], *([row[i] for i in keep] for row in rows)]
    return _grid_table(grid, title=" · ".join(dict.fromkeys(run.header.name for run in loaded)))


def goodput_table(runs: Sequence[str | os.PathLike[str]]) -> Table | None:
    """Shares of useful, waiting and lost time and tokens, laid out as `compare_table`; None where no run kept an account."""
    loaded = load_runs(runs)
    measures = [line for line in lines(loaded) if line.title in MAIN]
    if not measures:
        return None
    cells_by_run = zip(*(line.cells for line in measures), strict=True)
    grid = [
        ["arm", *(line.title for line in measures)],
        *([run.label, *row] for run, row in zip(loaded, cells_by_run, strict=True)),
    ]
    return _grid_table(grid, title="where time and tokens went")


def _grid_table(grid: list[list[str]], *, title: str) -> Table:
    """A header and a line per run, on its side for up to four runs."""
    if len(grid) <= 5:
        grid = [list(line) for line in zip(*grid, strict=True)]
    table = Table(title=title, title_justify="left")
    for i, name in enumerate(grid[0]):
        table.add_column(Text(name), justify="right" if i else "left", overflow="fold")
    for line in grid[1:]:
        # Text, not str: an arm called "[red]" is a name, not markup.
        table.add_row(*map(Text, line))
    return table


class TrainProgress:
    """Shows a run's state: live in a terminal, a plain line now and then elsewhere.

    `first_step` is the step a resumed run starts after, so that rate and time left count only what was run here.
    """

    def __init__(
        self,
        total_steps: int,
        *,
        title: str = "",
        first_step: int = 0,
        console: Console | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if total_steps < 1 or not 0 <= first_step <= total_steps:
            raise ValueError(
                f"got {total_steps} steps from step {first_step}; wanted 0 ≤ first_step ≤ total_steps ≥ 1"
            )
        self._total, self._first, self._title = total_steps, first_step, title
        self._console = console or Console()
        self._clock = clock
        self._started = clock()
        self._last: StepRecord | None = None
        self._eval: EvalRecord | None = None
        self._generated = self._trained = 0
        self._printed_step, self._printed_at = first_step, self._started
        self._live = Live(console=self._console, auto_refresh=False) if self._console.is_terminal else None

    def __enter__(self) -> TrainProgress:
        self._started = self._printed_at = self._clock()
        if self._live is not None:
            self._live.start()
            self._live.update(self._panel(), refresh=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()
        elif self._last is not None and self._last.step != self._printed_step:
            self._print_line()

    def update(self, record: StepRecord) -> None:
        """A step is done."""
        self._last = record
        self._generated += record.generated_groups or 0
        self._trained += record.trained_groups or 0
        if self._live is not None:
            self._live.update(self._panel(), refresh=True)
        elif self._is_due(record.step):
            self._print_line()

    def eval(self, record: EvalRecord) -> None:
        """A held-out evaluation is done."""
        self._eval = record
        if self._live is not None:
            self._live.update(self._panel(), refresh=True)
        else:
            self._write(f"step {record.step}/{self._total} · held-out {accuracy(record)}")

    def say(self, text: str) -> None:
        """A line of news, above the live display."""
        self._write(text)

    def _is_due(self, step: int) -> bool:
        overdue = self._clock() - self._printed_at >= PLAIN_SECONDS
        return overdue or step - self._printed_step >= PLAIN_STEPS or step >= self._total

    def _print_line(self) -> None:
        self._printed_step, self._printed_at = self._step, self._clock()
        self._write(" · ".join([f"step {self._step}/{self._total}", *(f"{k} {v}" for k, v in self._facts())]))

    def _write(self, line: str) -> None:
        prefix = f"{self._title}: " if self._title else ""
        self._console.print(Text(prefix + line), soft_wrap=True)

    @property
    def _step(self) -> int:
        return self._last.step if self._last is not None else self._first

    def _facts(self) -> list[tuple[str, str]]:
        """(name, value) of what is known by now, most wanted first."""
        facts: list[tuple[str, str]] = []
        done, elapsed = self._step - self._first, self._clock() - self._started
        if done > 0 and elapsed > 0:
            rate = done / elapsed
            facts.append(("speed", f"{rate:.2f} steps/s" if rate >= 1 else f"{1 / rate:.1f} s/step"))
            facts.append(("left", duration((self._total - self._step) / rate)))
        if (last := self._last) is not None:
            shares = (
                ("reward", last.reward_mean),
                ("survival", last.survival),
                ("asleep", last.asleep_share),
            )
            facts += [(name, share(value)) for name, value in shares if value is not None]
            facts.append(("generated/trained", f"{count(self._generated)}/{count(self._trained)}"))
        if self._eval is not None:
            facts.append(("held-out", f"{accuracy(self._eval)} at step {self._eval.step}"))
        return facts

    def _panel(self) -> Table:
        head = Table.grid(padding=(0, 1))
        bar = ProgressBar(total=self._total, completed=self._step, width=28)
        head.add_row(
            Text(self._title or "train", style="bold"), bar, Text(f"step {self._step}/{self._total}")
        )
        line = Text()
        for name, value in self._facts():
            line.append(f"{'  ' if line else ''}{name} ", style="dim").append(value)
        whole = Table.grid()
        whole.add_row(head)
        whole.add_row(line)
        return whole
