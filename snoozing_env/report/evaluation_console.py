"""The terminal side of an evaluation: a bar with the time left while it runs, tables when it is done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from snoozing_env.report.compare import count
from snoozing_env.report.evaluation import EvalRun, money, shown
from snoozing_env.report.paired import Paired
from snoozing_env.report.scores import Estimate, Score, Scored

ERRORS_SHOWN = 3


class RolloutProgress:
    """Rollouts done and the time left, a row per model: live in a terminal, silent elsewhere but for news."""

    def __init__(self, names: Sequence[str], *, console: Console) -> None:
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=28),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[invalid]}", style="yellow"),
        )
        self._console = console
        self._bar = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._rows = {name: self._bar.add_task(name, total=None, invalid="") for name in names}

    def __enter__(self) -> RolloutProgress:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self._bar.stop()

    def update(self, name: str, *, done: int, total: int, invalid: int, note: str = "") -> None:
        """A rollout of `name` is done."""
        row = self._rows[name]
        if self._bar.tasks[row].total is None:
            # Where a resumed run starts: earlier rollouts must not make the rate look faster than it is.
            self._bar.reset(row, total=total, completed=done, invalid="")
        told = f"{invalid} invalid" if invalid else ""
        self._bar.update(row, total=total, completed=done, invalid=told)
        if note:
            self._console.print(Text(f"{name}: {note}"), soft_wrap=True)


def scores_table(run: EvalRun) -> Table:
    """A row per environment, with the rows of its slices below; 95 % intervals in brackets, everything in per cent."""
    ks = run.ks
    table = Table(title=f"{run.model or run.name}, % [95 % interval over tasks]", title_justify="left")
    table.add_column("environment", overflow="fold")
    for name in ("tasks", "rollouts", run.mean_title, *(f"pass@{k}" for k in ks)):
        table.add_column(name, justify="right", no_wrap=True)
    for one in run.scored:
        table.add_row(Text(one.name, style="bold"), *_cells(one.score, ks))
        for slicing, values in one.by.items():
            for value, score in values.items():
                table.add_row(Text(f"  {slicing} {value or '(none)'}"), *_cells(score, ks), style="dim")
        table.add_section()
    return table


def _cells(score: Score, ks: Sequence[int]) -> list[str]:
    means = [score.mean, *(score.pass_at.get(k) for k in ks)]
    rollouts = count(score.n_rollouts) + (f" (+{count(score.n_invalid)} invalid)" if score.n_invalid else "")
    return [count(score.n_tasks), rollouts, *map(_short, means)]


def _short(found: Estimate | None) -> str:
    """`62.5 [47, 78]`, in per cent: three such columns fit a terminal of 80."""
    if found is None:
        return "–"
    return f"{100 * found.value:.1f} [{100 * found.low:.0f}, {100 * found.high:.0f}]"


def two_sided_table(run: EvalRun) -> Table | None:
    """How often the policy errs in each direction; None where no environment has sides."""
    rows = [(one.name, name, found) for one in run.scored for name, found in one.two_sided.items()]
    if not rows:
        return None
    table = Table(
        "environment", "errs by", "share of tasks' rollouts", "tasks", title="two sides", title_justify="left"
    )
    for environment, name, found in rows:
        tasks = "–" if found is None else count(found.n_tasks)
        table.add_row(Text(environment), Text(name.replace("_", "-")), shown(found), tasks)
    return table


def cost_table(run: EvalRun) -> Table:
    """Tokens, seconds and money."""
    table = Table(title="cost", title_justify="left")
    for i, name in enumerate(
        ("environment", "prompt tokens", "generated", "per rollout", "s / rollout", "money")
    ):
        table.add_column(name, justify="right" if i else "left")
    for one in run.scored:
        table.add_row(Text(one.name), *cost_cells(one))
    return table


def cost_cells(one: Scored) -> list[str]:
    n = max(one.score.n_rollouts + one.score.n_invalid, 1)
    cost = one.cost
    return [
        count(cost.input_tokens),
        count(cost.output_tokens),
        f"{cost.output_tokens / n:.0f}",
        f"{cost.seconds / n:.2f}",
        money(cost),
    ]


def error_lines(run: EvalRun) -> list[str]:
    """Why rollouts are invalid, the commonest reasons first."""
    lines: list[str] = []
    for one in run.scored:
        for reason, n in list(one.errors.items())[:ERRORS_SHOWN]:
            lines.append(f"{one.name}: {n} invalid, {reason}")
    return lines


def paired_table(a: str, b: str, found: Mapping[str, Paired]) -> Table:
    """B against A, one measure a line, one environment a column."""
    table = Table(title=f"{b} against {a}", title_justify="left")
    table.add_column("")
    for name in found:
        table.add_column(Text(name), justify="right")
    for label, *cells in zip(PAIRED_ROWS, *(paired_cells(p) for p in found.values()), strict=True):
        table.add_row(label, *cells)
    return table


PAIRED_ROWS = (
    "shared tasks", "only in A / only in B", "A", "B", "B − A (95 %)", "permutation p", "A better / B better", "sign test p",
)  # fmt: skip


def paired_cells(p: Paired) -> list[str]:
    """One cell per PAIRED_ROWS."""
    points = [f"{100 * v:+.1f}".replace("-", "−") for v in (p.difference, p.low, p.high)]
    return [
        count(p.n_shared),
        f"{count(p.only_a)} / {count(p.only_b)}",
        f"{100 * p.mean_a:.1f} %",
        f"{100 * p.mean_b:.1f} %",
        f"{points[0]} [{points[1]}, {points[2]}]",
        f"{p.p:.4f}",
        f"{p.better_a} / {p.better_b}",
        f"{p.sign_p:.4f}",
    ]
