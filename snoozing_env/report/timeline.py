"""The timelines of a run's two sides, trainer and engine, and the table of shares below them (A9)."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from snoozing_env.goodput import LOST
from snoozing_env.goodput.account import goodput
from snoozing_env.report.charts import Style, figure
from snoozing_env.report.compare import Run
from snoozing_env.report.goodput import lines, totals, wall
from snoozing_env.report.scale import share, short
from snoozing_env.report.svg import Axis
from snoozing_env.report.svg_lanes import Band, Lane, Steps, stacked_lanes
from snoozing_env.report.tables import table
from snoozing_env.types import Floats

ACTIVITIES = (
    ("generating", "generating what is trained"),
    ("training", "training"),
    ("waiting", "waiting for the other side"),
    ("syncing", "syncing weights"),
    ("lost", "lost: generated for nothing, failed, undone"),
    ("other", "evaluating, saving, starting"),
)
"""(activity, legend); the activity is the CSS class, too."""
UNITS = ((7200.0, 3600.0, "h"), (180.0, 60.0, "min"), (0.0, 1.0, "s"))
"""From so many seconds on: seconds of the unit, and its name."""


def goodput_section(drawn: Sequence[Style]) -> str:
    """Every run that kept an account, and what it adds up to; empty where none did."""
    drawn = [style for style in drawn if totals(style.run)]
    if not drawn:
        return ""
    longest = max(float(ends(style.run)[-1]) for style in drawn)
    wide = len(drawn) == 1
    figures = [
        figure(s.run.label, spoken(s.run), timeline(s.run, longest, width=920 if wide else 460))
        for s in drawn
    ]
    key = "".join(f'<li><i class="do {name}"></i>{escape(text)}</li>' for name, text in ACTIVITIES)
    note = (
        "Each side does one thing at a time; heights are shares of the time. Goodput is the useful part: training on "
        "one side, generating what was trained on the other. A run whose sides take turns cannot pass 50 % in time."
    )
    return (
        f'<section><h2>Where time and tokens went</h2><p class="note">{note}</p><ul class="legend">{key}</ul>'
        f'<div class="grid {"one" if wide else "two"}">{"".join(figures)}</div>{shares_tables(drawn)}</section>'
    )


def spoken(run: Run) -> str:
    """A run's goodput in one sentence."""
    found = goodput(totals(run))
    tokens = f", {share(found['goodput/tokens'])} of the tokens" if "goodput/tokens" in found else ""
    return f"Useful: {share(found['goodput/time'])} of both sides' time{tokens}."


def timeline(run: Run, longest: float, *, width: int) -> str:
    """Both lanes of a run on a time axis of `longest` seconds."""
    per_unit, unit = next((size, name) for least, size, name in UNITS if longest >= least)
    lanes = [
        Lane(
            name=name, bands=[Band(name=b, colour=b, spent=(v / per_unit).tolist()) for b, v in spent.items()]
        )
        for name, spent in (("trainer", trainer_activities(run)), ("engine", engine_activities(run)))
    ]
    return stacked_lanes(
        Steps(
            numbers=[step.step for step in run.steps if step.goodput],
            ends=(ends(run) / per_unit).tolist(),
        ),
        lanes,
        x=Axis(label=f"wall time ({unit})", show=short, high=longest / per_unit),
        label=f"Timeline of trainer and engine, {run.label}. {spoken(run)}",
        width=width,
    )


def ends(run: Run) -> Floats:
    """[steps] wall seconds at the end of each step that has an account."""
    return np.cumsum([wall(step.goodput) for step in run.steps if step.goodput])


def trainer_activities(run: Run) -> dict[str, Floats]:
    """[steps] seconds by activity; they add up to the step's."""
    return {
        "training": _seconds(run, "time/training_s"),
        "syncing": _seconds(run, "time/syncing_s"),
        "other": _seconds(run, "time/evaluating_s", "time/saving_s", "time/starting_s"),
        "lost": _seconds(run, "time/undone_s"),
        "waiting": _seconds(run, "time/waiting_s"),
    }


def engine_activities(run: Run) -> dict[str, Floats]:
    """[steps] seconds by activity. Lost is the generating for groups that were not trained, where it took place."""
    generating = _seconds(run, "engine/generating_s")
    wasted = backdated(_seconds(run, *(f"work/lost_{family}_s" for family in LOST)), generating)
    return {
        "generating": generating - wasted,
        "lost": wasted + _seconds(run, "engine/failed_s", "engine/undone_s"),
        "syncing": _seconds(run, "engine/paused_s"),
        "other": _seconds(run, "engine/evaluating_s"),
        "waiting": _seconds(run, "engine/waiting_s"),
    }


def backdated(lost: Floats, generating: Floats) -> Floats:
    """[steps] A loss is booked when it is known; what exceeds that step's generating was spent in the steps before."""
    placed, carried = np.zeros_like(lost), 0.0
    for i in range(len(lost) - 1, -1, -1):
        placed[i] = min(lost[i] + carried, generating[i])
        carried += lost[i] - placed[i]
    return placed


def _seconds(run: Run, *names: str) -> Floats:
    return np.array(
        [sum(step.goodput.get(name, 0.0) for name in names) for step in run.steps if step.goodput]
    )


def shares_tables(drawn: Sequence[Style]) -> str:
    """A small table each for goodput, trainer, engine and tokens: measures down, arms across."""
    measures = lines([style.run for style in drawn])
    sides = dict.fromkeys(line.side for line in measures)
    tables = [
        table(
            [side, *(style.run.label for style in drawn)],
            [[escape(cell) for cell in (line.name, *line.cells)] for line in measures if line.side == side],
            css="shares",
        )
        for side in sides
    ]
    css = "four" if len(drawn) < 2 else "two" if len(drawn) < 5 else "one"
    return f'<div class="grid {css}">{"".join(tables)}</div>'
