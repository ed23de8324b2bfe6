"""What `snooze simulate` shows and keeps: a table, two files of JSON lines, and one self-contained page."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path
from types import TracebackType
from typing import TextIO

import numpy as np
from rich.console import Console
from rich.markup import escape as escape_markup
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from snoozing_env.errors import StateError
from snoozing_env.report.charts import GENERATED, STEP, figure, section
from snoozing_env.report.compare import count, percent
from snoozing_env.report.html import page
from snoozing_env.report.scale import share
from snoozing_env.report.svg import Axis, Series, legend, line_chart
from snoozing_env.report.tables import table as html_table
from snoozing_env.sim.compare import SimulatedRun, SimulationConfig, Summary
from snoozing_env.sim.run import StepMetrics

Read = Callable[[Summary], float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One figure of the table, a mean over seeds."""

    title: str
    read: Read
    show: Callable[[float], str]


COLUMNS = (
    Column(title="generated / trained", read=lambda s: s.generated / max(s.trained, 1), show=lambda v: f"{v:.2f}"),
    Column(title="ρ", read=lambda s: s.survival, show=lambda v: f"{v:.3f}"),
    Column(title="regret", read=lambda s: s.regret, show=lambda v: f"{v:.3f}"),
    Column(title="pass rate", read=lambda s: s.final_rate, show=percent),
    Column(title="steps to target", read=lambda s: s.steps_to_target, show=lambda v: count(round(v))),
    Column(title="groups to target", read=lambda s: s.groups_to_target, show=lambda v: count(round(v))),
    Column(title="asleep", read=lambda s: s.asleep_share, show=share),
    Column(title="woken", read=lambda s: s.woken, show=lambda v: count(round(v))),
    Column(title="forgotten", read=lambda s: s.forgotten, show=lambda v: count(round(v))),
    Column(title="fallen back", read=lambda s: s.fallback_share or None, show=share),
    Column(title="dip +1", read=lambda s: s.dips.get("+1"), show=lambda v: f"{v:.2f}"),
    Column(title="dip −1", read=lambda s: s.dips.get("-1"), show=lambda v: f"{v:.2f}"),
)  # fmt: skip


def results_table(summaries: Sequence[Summary], learner: str) -> Table:
    """One learner's schedulers for a terminal: means over seeds. Up to four stand side by side, one measure a line
    and with the range over seeds, which fits 100 columns; more get a line each, without it."""
    lines = _lines(summaries, learner)
    table = Table(title=learner, title_justify="left")
    for i, name in enumerate(lines[0]):
        table.add_column(Text(name), justify="right" if i else "left", overflow="fold")
    for row in lines[1:]:
        table.add_row(*map(Text, row))
    return table


def _lines(summaries: Sequence[Summary], learner: str) -> list[list[str]]:
    """The table with its header line, laid out by how many schedulers there are."""
    wide = len({s.scheduler for s in summaries}) > 4
    headers, rows = _cells(summaries, learner, ranges=not wide)
    return [headers, *rows] if wide else [list(line) for line in zip(headers, *rows, strict=True)]


def _cells(summaries: Sequence[Summary], learner: str, *, ranges: bool) -> tuple[list[str], list[list[str]]]:
    mine = [s for s in summaries if s.learner == learner]
    columns = [c for c in COLUMNS if any(c.read(s) is not None for s in mine)]
    rows: list[list[str]] = []
    for name in dict.fromkeys(s.scheduler for s in mine):
        seeds = [s for s in mine if s.scheduler == name]
        early = sum(s.ended != "finished" for s in seeds)
        ended = f"{early} of {len(seeds)} saturated" if early else "finished"
        rows.append([name, *(_cell(c, seeds, ranges=ranges) for c in columns), ended])
    return ["scheduler", *(c.title for c in columns), "ended"], rows


def _cell(column: Column, seeds: Sequence[Summary], *, ranges: bool) -> str:
    """The mean over seeds, and from which to which; a seed that has no value is counted, never averaged over."""
    values = [v for s in seeds if (v := column.read(s)) is not None]
    if not values:
        return "–"
    text, low, high = (column.show(float(v)) for v in (np.mean(values), min(values), max(values)))
    text += f" [{low}, {high}]" if ranges and low != high else ""
    return text if len(values) == len(seeds) else f"{text} ({len(values)} of {len(seeds)})"


class SimulationProgress:
    """Which run of how many is at which step: a bar in a terminal, a line per run elsewhere."""

    def __init__(self, runs: int, *, steps: int, console: Console) -> None:
        self._runs, self._begun, self._console = runs, 0, console
        columns = (
            TextColumn("{task.description}"),
            BarColumn(bar_width=28),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
        )
        self._bar = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._task = self._bar.add_task("", total=runs * steps)
        self._steps = steps

    def __enter__(self) -> SimulationProgress:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self._bar.stop()

    def begin(self, scheduler: str, learner: str, seed: int) -> None:
        """The next run starts; one that saturated early has its steps counted as done."""
        name = f"run {self._begun + 1}/{self._runs}: {scheduler} on {learner}, seed {seed}"
        self._bar.update(self._task, completed=self._begun * self._steps, description=escape_markup(name))
        self._begun += 1
        if not self._console.is_terminal:
            self._console.print(Text(name), soft_wrap=True)

    @property
    def completed(self) -> int:
        """Steps done or skipped so far."""
        return int(self._bar.tasks[0].completed)

    def update(self, metrics: StepMetrics) -> None:
        """A step is done."""
        self._bar.advance(self._task)


class Files:
    """`runs.jsonl` and `steps.jsonl`, written as runs finish, so that an interrupted comparison keeps what it has."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self._runs = (directory / "runs.jsonl").open("w", encoding="utf-8")
            self._steps = (directory / "steps.jsonl").open("w", encoding="utf-8")
        except OSError as error:
            raise StateError(
                f"cannot write to {directory}: {error.strerror}; choose another place with --output"
            ) from error

    def add(self, run: SimulatedRun) -> None:
        _write(self._runs, asdict(run.summary))
        who = {name: getattr(run.summary, name) for name in ("scheduler", "learner", "seed")}
        for step in run.trace.steps:
            _write(self._steps, {**who, **asdict(step)})
        self._runs.flush()
        self._steps.flush()

    def page(self, runs: Sequence[SimulatedRun], config: SimulationConfig) -> Path:
        """The report of every run."""
        path = self.directory / "report.html"
        try:
            path.write_text(render(runs, config), encoding="utf-8")
        except OSError as error:
            raise StateError(f"cannot write the report {path}: {error.strerror}") from error
        return path

    def close(self) -> None:
        self._runs.close()
        self._steps.close()


def _write(file: TextIO, record: dict[str, object]) -> None:
    file.write(json.dumps(record, allow_nan=False) + "\n")


def render(runs: Sequence[SimulatedRun], config: SimulationConfig) -> str:
    """The whole page; same runs, same bytes."""
    learners = list(dict.fromkeys(run.summary.learner for run in runs))
    seeds = ", ".join(map(str, config.seeds))
    facts = f"{config.loop.steps} steps of {config.loop.batch} groups · {config.loop.rollouts} rollouts · seeds {seeds}"
    head = (
        '<header><p class="kicker">Simulation, no model</p><h1>Schedulers compared</h1>'
        f'<p class="facts">{escape(facts)}</p></header>'
    )
    return page(
        "Schedulers compared", head + "".join(_learner_section(runs, learner) for learner in learners)
    )


def _learner_section(runs: Sequence[SimulatedRun], learner: str) -> str:
    mine = [run for run in runs if run.summary.learner == learner]
    headers, *rows = _lines([run.summary for run in mine], learner)
    shown = html_table(headers, [[escape(cell) for cell in row] for row in rows], css="headline")
    names = list(dict.fromkeys(run.summary.scheduler for run in mine))
    key = legend([(name, colour, 0) for colour, name in enumerate(names)])
    note = "Means over seeds, in brackets the lowest and highest. Curves: the same as far as every seed went."
    return section(learner, note, _figures(mine), key=shown + key)


def _figures(mine: Sequence[SimulatedRun]) -> list[str]:
    rate = Axis(label="pass rate", show=share)
    unit = Axis(label="share", show=share, low=0.0, high=1.0)
    figures = [
        figure("Pass rate by groups generated", "Latent, over every task. The honest efficiency view.",
               line_chart(_curves(mine, lambda s: s.rate, by_groups=True), x=GENERATED, y=rate)),
        figure("Pass rate by step", "The same for each update.", line_chart(_curves(mine, lambda s: s.rate), x=STEP, y=rate)),
        figure("Survival", "Share of the generated groups that could teach something (ρ).",
               line_chart(_curves(mine, lambda s: s.survival), x=STEP, y=unit, smooth=True)),
        figure("Share asleep", "Of the pool.", line_chart(_curves(mine, lambda s: s.asleep_share), x=STEP, y=unit)),
    ]  # fmt: skip
    for side in mine[0].trace.first_side_rates:
        chart = line_chart(_curves(mine, lambda s, side=side: s.side_rates[side]), x=STEP, y=unit)
        figures.append(figure(f"Pass rate, side {side}", "Latent, over the tasks of this side.", chart))
    datasets = list(dict.fromkeys(name for run in mine for name in run.summary.shares))
    for name in datasets if len(datasets) > 1 else ():
        chart = line_chart(_curves(mine, lambda s, name=name: s.shares[name]), x=STEP, y=unit, smooth=True)
        figures.append(figure(f"Share of the batch, {name}", "After filtering.", chart))
    return figures


def _curves(
    mine: Sequence[SimulatedRun], read: Callable[[StepMetrics], float], *, by_groups: bool = False
) -> list[Series]:
    """One curve per scheduler, over the steps that every seed reached."""
    curves: list[Series] = []
    for colour, name in enumerate(dict.fromkeys(run.summary.scheduler for run in mine)):
        seeds = [run.trace.steps for run in mine if run.summary.scheduler == name]
        n = min(map(len, seeds))
        if n == 0:
            continue
        y = np.array([[read(step) for step in steps[:n]] for steps in seeds])
        made = np.cumsum([[step.generated for step in steps[:n]] for steps in seeds], axis=1).mean(axis=0)
        x = made if by_groups else np.arange(1.0, n + 1)
        curves.append(
            Series(
                label=name, x=_list(x), y=_list(y.mean(axis=0)), low=_list(y.min(axis=0)), high=_list(y.max(axis=0)), colour=colour,
            )
        )  # fmt: skip
    return curves


def _list(values: Iterable[float]) -> list[float]:
    return [float(v) for v in values]
