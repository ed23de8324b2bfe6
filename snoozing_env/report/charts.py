"""The chart sections of the report: which curves are drawn from which fields of the run log.

A chart whose fields nobody logged is left out; nothing here draws an empty frame.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from html import escape

import numpy as np

from snoozing_env.report.compare import Run, duration
from snoozing_env.report.runlog import StepRecord
from snoozing_env.report.scale import share, short
from snoozing_env.report.svg import MAX_DETAILED, Axis, Series, legend, line_chart
from snoozing_env.report.svg_blocks import heat_map, stacked_bars, top_share

STEP = Axis(label="step", show=lambda v: f"{v:.0f}")
LARGE, SMALL = (460, 260), (340, 200)
"""Pixels of a chart in a grid of two or three columns; three only where they fill their rows."""
GENERATED = Axis(label="groups generated so far", show=short, low=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """How every chart draws one run: arms have colours, seeds of an arm have dashes."""

    run: Run
    colour: int
    dash: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """A per-step number that gets a chart of its own."""

    name: str
    """Field of `StepRecord`."""
    title: str
    note: str
    show: Callable[[float], str] = short
    low: float | None = None
    high: float | None = None


POOL = (
    Measure(name="asleep_share", title="Share asleep", show=share, low=0.0,
            note="Tasks of the pool that are snoozed because every rollout solved them."),
    Measure(name="survival", title="Survival", show=share, low=0.0, high=1.0,
            note="Share of the generated groups that could teach something (ρ)."),
)  # fmt: skip
HEALTH = (
    Measure(name="reward_mean", title="Mean reward", show=share, note="All generated rollouts, before filtering."),
    Measure(name="loss", title="Loss", note="As the trainer reports it."),
    Measure(name="entropy", title="Entropy", low=0.0, note="Nats per token; a fall to zero is a collapse."),
    Measure(name="clip_fraction", title="Clip fraction", show=share, low=0.0, note="Tokens held back by the clip."),
    Measure(name="grad_norm", title="Gradient norm", low=0.0, note="Before clipping."),
    Measure(name="ratio_mean", title="Importance ratio", show=lambda v: f"{v:.3f}", note="Against the policy that sampled; 1 = on-policy."),
    Measure(name="ess_sequence", title="Effective sample size", show=share, low=0.0, high=1.0,
            note="Of the trained rollouts' importance ratios; 1 = all count, below .3 is mostly noise."),
    Measure(name="ess_token", title="Effective sample size, tokens", show=share, low=0.0, high=1.0, note="Of single tokens' ratios."),
    Measure(name="rate_factor", title="Learning-rate factor", low=0.0, high=1.0, note="What the effective sample size left of the learning rate."),
    Measure(name="truncated", title="Truncated", show=share, low=0.0, high=1.0, note="Trained rollouts that hit the token limit."),
    Measure(name="lag_mean", title="Lag", low=0.0, note="Policy versions between sampling and training."),
    Measure(name="forgotten", title="Forgotten", low=0.0, note="Woken tasks that were no longer mastered."),
    Measure(name="fallback", title="Fallen back", low=0.0, high=1.0, note="1 while draws are uniform because the held-out accuracy fell."),
    Measure(name="carried_groups", title="Carried groups", low=0.0, note="Informative groups kept for the next step."),
)  # fmt: skip


def styles(runs: Sequence[Run]) -> list[Style]:
    arms = list(dict.fromkeys(run.header.arm or run.label for run in runs))
    places = [arms.index(run.header.arm or run.label) for run in runs]
    return [Style(run=run, colour=p, dash=places[:i].count(p)) for i, (run, p) in enumerate(zip(runs, places, strict=True))]  # fmt: skip


def measured(style: Style, name: str) -> Series:
    """A step field of a run as a curve; steps that did not measure it are left out."""
    points = [(s.step, float(v)) for s in style.run.steps if (v := getattr(s, name)) is not None]
    return _series(style, [x for x, _ in points], [y for _, y in points])


def evaluated(style: Style, *, by_groups: bool = False) -> Series:
    """Held-out accuracy, by step or by groups generated."""
    evals = style.run.evals
    x = [float(style.run.generated_by_step(e.step)) if by_groups else float(e.step) for e in evals]
    series = _series(style, x, [e.accuracy for e in evals])
    if not all(e.low is not None and e.high is not None for e in evals):
        return series
    return replace(series, low=[e.low or 0.0 for e in evals], high=[e.high or 0.0 for e in evals])


def cost(style: Style) -> Series:
    """Groups generated for the groups trained so far."""
    if style.run.total("generated_groups") is None or style.run.total("trained_groups") is None:
        return _series(style, [], [])
    used, made = style.run.cumulative("trained_groups"), style.run.cumulative("generated_groups")
    return _series(style, [0.0, *used.tolist()], [0.0, *made.tolist()])


def _series(style: Style, x: Sequence[float], y: Sequence[float]) -> Series:
    return Series(label=style.run.label, x=x, y=y, colour=style.colour, dash=style.dash)


def figure(title: str, note: str, drawing: str, css: str = "") -> str:
    """A captioned chart, or nothing around no drawing."""
    if not drawing:
        return ""
    return f'<figure class="{css}"><figcaption><h3>{escape(title)}</h3><p>{escape(note)}</p></figcaption>{drawing}</figure>'


def section(title: str, note: str, figures: Sequence[str], *, css: str = "two", key: str = "") -> str:
    """A titled grid of figures, or nothing when none has data."""
    shown = "".join(figures)
    if not shown:
        return ""
    return f'<section><h2>{escape(title)}</h2><p class="note">{escape(note)}</p>{key}<div class="grid {css}">{shown}</div></section>'


def key_of(drawn: Sequence[Style]) -> str:
    return legend([(s.run.label, s.colour, s.dash) for s in drawn])


def accuracy_section(drawn: Sequence[Style]) -> str:
    accuracy = Axis(label="held-out accuracy", show=share)
    by_step, by_groups = [evaluated(s) for s in drawn], [evaluated(s, by_groups=True) for s in drawn]
    bands = any(s.low for s in by_step) and len(drawn) <= MAX_DETAILED
    shaded = " The band is the 95 % interval." if bands else ""
    has_groups = any(s.run.total("generated_groups") for s in drawn)
    return section(
        "Held-out accuracy",
        f"A fixed, unfiltered evaluation set: the only curve on which arms with different filters compare.{shaded}",
        [
            figure("By groups generated", "What the rollouts bought. The honest efficiency view.",
                   line_chart(by_groups, x=GENERATED, y=accuracy) if has_groups else ""),
            figure("By step", "The usual view; a step of one arm may cost more than a step of another.", line_chart(by_step, x=STEP, y=accuracy)),
        ],
        key=key_of(drawn),
    )  # fmt: skip


def sides_section(drawn: Sequence[Style]) -> str:
    """Held-out accuracy of every side of a conflict in one chart, colours for arms and dashes for sides."""
    names = sorted({name for style in drawn for e in style.run.evals for name in e.by_side or {}})
    if len(names) < 2:
        return ""
    series = [sided(style, name, dash) for style in drawn for dash, name in enumerate(names)]
    accuracy = Axis(label="held-out accuracy", show=share, low=0.0, high=1.0)
    chart = line_chart(series, x=STEP, y=accuracy, width=2 * LARGE[0], height=LARGE[1] + 40)
    key = legend([(one.label, one.colour, one.dash) for one in series])
    note = "One side rising while the other falls is a policy that unlearns one behaviour for its opposite."
    return section("Both sides", note, [figure(" and ".join(names), "", chart, "wide")], css="one", key=key)


def sided(style: Style, name: str, dash: int) -> Series:
    """Held-out accuracy of one side of a run by step."""
    points = [(float(e.step), by[name]) for e in style.run.evals if name in (by := e.by_side or {})]
    label = f"{style.run.label}, {name}"
    return Series(
        label=label, x=[x for x, _ in points], y=[y for _, y in points], colour=style.colour, dash=dash
    )


def groups_section(drawn: Sequence[Style]) -> str:
    """Generated against trained, one panel per run on a common scale, and the running cost."""
    top = max((s.generated_groups or 0 for style in drawn for s in style.run.steps), default=0)
    groups = Axis(label="groups", show=short, low=0.0, high=float(top))
    small = (len(drawn) + 1) % 3 == 0
    width, height = SMALL if small else LARGE
    figures: list[str] = []
    for style in drawn:
        made = replace(measured(style, "generated_groups"), label="generated", area=True)
        used = replace(measured(style, "trained_groups"), label="trained")
        waste = (
            f" In all {100 * w:.0f} % were generated for nothing."
            if (w := wasted(style.run)) is not None
            else ""
        )
        note = f"Filled: generated. Line: trained.{waste}"
        figures.append(
            figure(
                style.run.label,
                note,
                line_chart([made, used], x=STEP, y=groups, width=width, height=height) if made.x else "",
            )
        )
    axis = Axis(label="groups generated so far", show=short, low=0.0)
    trained = Axis(label="groups trained so far", show=short, low=0.0)
    figures.append(
        figure("Price of a trained group", "Lower is cheaper; the diagonal would be no waste at all.",
               line_chart([cost(s) for s in drawn], x=trained, y=axis, width=width, height=height))
    )  # fmt: skip
    return section("Generated and trained groups", "A group whose rollouts all earn the same teaches nothing: it is paid for and dropped.", figures, css="three" if small else "two", key=key_of(drawn))  # fmt: skip


def wasted(run: Run) -> float | None:
    """Share of the generated groups that were neither trained on nor carried to a later step."""
    made, used = run.total("generated_groups"), run.total("trained_groups")
    if not made or used is None:
        return None
    carried = next((s.carried_groups or 0 for s in reversed(run.steps)), 0)
    return max(0.0, 1 - (used + carried) / made)


def pool_section(drawn: Sequence[Style]) -> str:
    maps = [histograms(s.run.steps) for s in drawn]
    top = top_share(maps)
    small = (len(drawn) + len(POOL)) % 3 == 0
    width, height = SMALL if small else LARGE
    figures = [_measure_figure(m, drawn, small=small) for m in POOL]
    for style, columns in zip(drawn, maps, strict=True):
        chart = heat_map(
            columns,
            x=STEP,
            label=f"Pass rates, {style.run.label}",
            top=top,
            colour=style.colour,
            width=width,
            height=height - (0 if small else 40),
        )
        note = f"Stronger colour = more of the tasks seen so far, full at {share(round(top, 2))}. Line: the mean."
        figures.append(figure(f"Pass rates over time, {style.run.label}", note, chart))
    return section("The task pool", "How hard the tasks are for the policy, as the scheduler estimates it.", figures, css="three" if small else "two", key=key_of(drawn))  # fmt: skip


def histograms(steps: Sequence[StepRecord]) -> list[tuple[float, Sequence[int]]]:
    return [(float(s.step), s.pass_rate_histogram) for s in steps if s.pass_rate_histogram]


def _measure_figure(measure: Measure, drawn: Sequence[Style], *, small: bool = False) -> str:
    series = [measured(s, measure.name) for s in drawn]
    axis = Axis(label=measure.title.lower(), show=measure.show, low=measure.low, high=measure.high)
    width, height = SMALL if small else LARGE
    drawing = line_chart(series, x=STEP, y=axis, width=width, height=height, smooth=True)
    return figure(measure.title, measure.note, drawing)


def health_section(drawn: Sequence[Style]) -> str:
    figures = [_measure_figure(m, drawn, small=True) for m in HEALTH if _says_something(m, drawn)]
    figures += [_ess_by_lag(style) for style in drawn]
    return section(
        "Training health",
        "Faint: the steps, in a long run means of a few. Strong: moving mean.",
        figures,
        css="three",
        key=key_of(drawn),
    )


def _ess_by_lag(style: Style) -> str:
    """One curve per lag; nothing where every rollout was fresh."""
    points: dict[int, list[tuple[int, float]]] = {}
    for record in style.run.steps:
        for lag, ess in (record.ess_by_lag or {}).items():
            points.setdefault(int(lag), []).append((record.step, ess))
    if not points or set(points) == {0}:
        return ""
    curves = [
        Series(label=f"lag {lag}", x=[x for x, _ in line], y=[y for _, y in line], colour=place, dash=0)
        for place, (lag, line) in enumerate(sorted(points.items()))
    ]
    width, height = SMALL
    axis = Axis(label="effective sample size", show=share, low=0.0, high=1.0)
    key = legend([(c.label, c.colour, c.dash) for c in curves])
    return figure(
        f"Effective sample size by lag, {style.run.label}",
        "Of the rollouts, by policy versions between sampling and training.",
        key + line_chart(curves, x=STEP, y=axis, width=width, height=height),
    )


def _says_something(measure: Measure, drawn: Sequence[Style]) -> bool:
    """A count that was zero at every step of every run needs no picture; it still is in the data table."""
    return any(np.any(np.asarray(measured(s, measure.name).y) != 0) for s in drawn)


def time_section(drawn: Sequence[Style]) -> str:
    """Seconds by part, of logs from before runs kept an account of their time."""
    rows = [(s.run.label, time_parts(s.run)) for s in drawn if not any(step.goodput for step in s.run.steps)]
    bars = stacked_bars([(label, parts) for label, parts in rows if parts])
    note = "Wall time on one scale. “Other” is evaluation, checkpoints and waiting."
    return section(
        "Where the time went",
        note,
        [figure("Time split", "Hover a part for its seconds.", bars, "wide")],
        css="one",
    )


def time_parts(run: Run) -> list[tuple[str, float, str]]:
    """(rollout, train, sync, other) seconds; empty when no part was measured."""
    parts: list[tuple[str, float]] = [
        (name, sum(v for s in run.steps if (v := getattr(s, f"seconds_{name}")) is not None))
        for name in ("rollout", "train", "sync")
    ]
    known = sum(seconds for _, seconds in parts)
    if known <= 0:
        return []
    parts.append(("other", max(0.0, (run.seconds or 0.0) - known)))
    return [(name, seconds, duration(seconds)) for name, seconds in parts]
