"""Plain SVG line charts that live inside an HTML page: nice ticks, a legend, bands, and a hover column per step.

Colours are CSS variables (`--s0` …), so that light, dark and print share one drawing; series also differ by marker
and dash, so that no one needs to tell colours apart. Hover text is a `<title>` per column: it works without
JavaScript, and the page's script turns it into a crosshair.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

import numpy as np

from snoozing_env.report.scale import nice_ticks, spread

N_COLOURS = 6
DASHES = ("", "7 4", "2 4")
MAX_POINTS = 240
"""Longer series are drawn as means of equal buckets; nobody sees more on 460 pixels."""
MAX_COLUMNS = 120
MAX_DETAILED = 4
"""With more curves, bands turn to mud and end labels to a heap; hovering still tells both."""
SMOOTH_FROM = 40
"""From this many points on a noisy series gets a moving mean, with the raw line faint behind it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One curve."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] | None = None
    """Lower edge of the band, as long as y; drawn only together with `high`."""
    high: Sequence[float] | None = None
    colour: int = 0
    dash: int = 0
    area: bool = False
    """Filled down to zero."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """What a chart measures on one axis and how its values are written."""

    label: str
    show: Callable[[float], str]
    low: float | None = None
    """A bound the axis must include, None = from the data."""
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Frame:
    """The plot area in pixels and the value range it stands for."""

    width: float
    height: float
    x0: float
    x1: float
    y0: float
    y1: float
    left: float = 46.0
    right: float = 54.0
    top: float = 12.0
    bottom: float = 38.0

    def x(self, value: float) -> float:
        return self.left + (value - self.x0) / (self.x1 - self.x0) * (self.width - self.left - self.right)

    def y(self, value: float) -> float:
        return self.height - self.bottom - (value - self.y0) / (self.y1 - self.y0) * self.inner_height

    @property
    def inner_height(self) -> float:
        return self.height - self.top - self.bottom


def line_chart(
    series: Sequence[Series], *, x: Axis, y: Axis, width: int = 460, height: int = 260, smooth: bool = False
) -> str:
    """The chart as an `<svg>`, or an empty string when no series has a point."""
    drawn = [s for s in series if len(s.x)]
    if not drawn:
        return ""
    x_ticks, y_ticks = _ticks(drawn, x, y, small=height < 200)
    x_range = _bounds([v for s in drawn for v in s.x])
    frame = Frame(width, height, *x_range, y_ticks[0], y_ticks[-1])
    inner = [v for v in x_ticks if x_range[0] <= v <= x_range[1]]
    body = [
        _grid(frame, inner, y_ticks, x, y),
        *(_band(frame, s) for s in drawn if len(drawn) <= MAX_DETAILED),
    ]
    body += [_curve(frame, s, smooth) for s in drawn]
    body += [_end_labels(frame, drawn, y), _hover(frame, drawn, x, y)]
    named = "; ".join(f"{s.label} ends at {y.show(s.y[-1])}" for s in drawn)
    return svg(width, height, f"{y.label} by {x.label}: {named}", body)


def svg(width: float, height: float, label: str, body: Sequence[str]) -> str:
    """The element around a drawing, named for screen readers."""
    return (
        f'<svg class="chart{" large" if width > 400 else ""}" viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{escape(label)}">'
        f"{''.join(body)}</svg>"
    )


def legend(series: Sequence[tuple[str, int, int]]) -> str:
    """An HTML legend of (label, colour, dash); empty for fewer than two entries."""
    if len(series) < 2:
        return ""
    items = "".join(
        f'<li><svg viewBox="0 0 30 12" aria-hidden="true"><line x1="1" x2="29" y1="6" y2="6" class="line c{c % N_COLOURS}"'
        f"{_dash(d)}/>{_marker(15, 6, c)}</svg>{escape(label)}</li>"
        for label, c, d in series
    )
    return f'<ul class="legend">{items}</ul>'


def _bounds(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _ticks(drawn: Sequence[Series], x: Axis, y: Axis, *, small: bool) -> tuple[list[float], list[float]]:
    xs = [v for s in drawn for v in s.x]
    ys = [v for s in drawn for part in (s.y, s.low or (), s.high or ()) for v in part]
    ys += [v for v in (y.low, y.high) if v is not None]
    if any(s.area for s in drawn):
        ys.append(0.0)
    x_ticks = nice_ticks(*_bounds(xs), target=4 if small else 6)
    if all(v == round(v) for v in xs):
        x_ticks = [v for v in x_ticks if v == round(v)]
    return x_ticks, nice_ticks(min(ys), max(ys), target=4 if small else 5)


def _grid(frame: Frame, x_ticks: Sequence[float], y_ticks: Sequence[float], x: Axis, y: Axis) -> str:
    x1, floor = frame.width - frame.right, frame.height - frame.bottom
    lines = [
        f'<line class="rule" x1="{frame.left:g}" x2="{x1:g}" y1="{frame.y(v):.1f}" y2="{frame.y(v):.1f}"/>'
        f'<text x="{frame.left - 6:g}" y="{frame.y(v) + 4:.1f}" text-anchor="end">{escape(y.show(v))}</text>'
        for v in y_ticks
    ]
    lines += [
        f'<line class="tick" x1="{frame.x(v):.1f}" x2="{frame.x(v):.1f}" y1="{floor:g}" y2="{floor + 4:g}"/>'
        f'<text x="{frame.x(v):.1f}" y="{floor + 16:g}" text-anchor="middle">{escape(x.show(v))}</text>'
        for v in x_ticks
    ]
    lines.append(f'<line class="base" x1="{frame.left:g}" x2="{x1:g}" y1="{floor:g}" y2="{floor:g}"/>')
    centre = (frame.left + x1) / 2
    lines.append(
        f'<text class="axis" x="{centre:g}" y="{frame.height - 4:g}" text-anchor="middle">{escape(x.label)}</text>'
    )
    return "".join(lines)


def _band(frame: Frame, s: Series) -> str:
    if s.low is None or s.high is None or len(s.low) < 2:
        return ""
    up = [f"{frame.x(a):.1f},{frame.y(b):.1f}" for a, b in zip(s.x, s.high, strict=True)]
    down = [f"{frame.x(a):.1f},{frame.y(b):.1f}" for a, b in zip(s.x, s.low, strict=True)]
    return f'<polygon class="band c{s.colour % N_COLOURS}" points="{" ".join(up + down[::-1])}"/>'


def _curve(frame: Frame, s: Series, smooth: bool) -> str:
    colour = f"c{s.colour % N_COLOURS}"
    points = buckets(s.x, s.y)
    if s.area:
        floor = frame.y(0.0)
        first, last = frame.x(points[0][0]), frame.x(points[-1][0])
        path = f"M{first:.1f} {floor:.1f}L{_path(frame, points)}L{last:.1f} {floor:.1f}Z"
        return f'<path class="area {colour}" d="{path}"/>'
    drawn = ""
    if smooth and len(points) >= SMOOTH_FROM:
        drawn = f'<path class="line raw {colour}" d="M{_path(frame, points)}"/>'
        points = moving_mean(points, max(3, len(points) // 12))
    drawn += f'<path class="line {colour}"{_dash(s.dash)} d="M{_path(frame, points)}"/>'
    if len(s.x) <= 30:
        drawn += "".join(_marker(frame.x(a), frame.y(b), s.colour) for a, b in points)
    return drawn


def _path(frame: Frame, points: Sequence[tuple[float, float]]) -> str:
    return "L".join(f"{frame.x(a):.1f} {frame.y(b):.1f}" for a, b in points)


def _dash(index: int) -> str:
    pattern = DASHES[index % len(DASHES)]
    return f' stroke-dasharray="{pattern}"' if pattern else ""


def _marker(x: float, y: float, colour: int) -> str:
    """Circle, square, triangle or diamond: the second way to tell series apart."""
    css = f'class="dot c{colour % N_COLOURS}"'
    match colour % 4:
        case 0:
            return f'<circle {css} cx="{x:.1f}" cy="{y:.1f}" r="3.2"/>'
        case 1:
            return f'<rect {css} x="{x - 3:.1f}" y="{y - 3:.1f}" width="6" height="6"/>'
        case 2:
            return f'<path {css} d="M{x:.1f} {y - 4:.1f}l4 7h-8z"/>'
        case _:
            return f'<path {css} d="M{x:.1f} {y - 4.2:.1f}l4.2 4.2-4.2 4.2-4.2-4.2z"/>'


def _end_labels(frame: Frame, drawn: Sequence[Series], y: Axis) -> str:
    """The last value beside each curve's end, pushed apart where they would overlap."""
    if len(drawn) > MAX_DETAILED:
        return ""
    order = sorted(drawn, key=lambda s: -s.y[-1])
    heights = [frame.y(s.y[-1]) + 4 for s in order]
    for i in range(1, len(heights)):
        heights[i] = max(heights[i], heights[i - 1] + 12)
    excess = max(0.0, heights[-1] - (frame.height - frame.bottom + 4))
    x = frame.width - frame.right + 6
    return "".join(
        f'<text class="end c{s.colour % N_COLOURS}" x="{x:g}" y="{h - excess:.1f}">{escape(y.show(s.y[-1]))}</text>'
        for s, h in zip(order, heights, strict=True)
    )


def _hover(frame: Frame, drawn: Sequence[Series], x: Axis, y: Axis) -> str:
    """A transparent column per x with everything worth saying there; curves without that x say their nearest."""
    all_x = sorted({v for s in drawn for v in s.x})
    columns = [all_x[i] for i in spread(len(all_x), MAX_COLUMNS)]
    texts: list[str] = []
    for value in columns:
        lines = [f"{x.label} {x.show(value)}"]
        for s in drawn:
            if min(s.x) <= value <= max(s.x):
                i = nearest(s.x, value)
                band = f" [{y.show(s.low[i])}, {y.show(s.high[i])}]" if s.low and s.high else ""
                lines.append(f"{s.label}: {y.show(s.y[i])}{band}")
        texts.append("\n".join(lines))
    return hover_columns(frame, [frame.x(v) for v in columns], texts)


def hover_columns(frame: Frame, centres: Sequence[float], texts: Sequence[str]) -> str:
    """Columns that meet half-way between their centres."""
    edges = [
        frame.left,
        *((a + b) / 2 for a, b in pairwise(centres)),
        frame.width - frame.right,
    ]
    rects = "".join(
        f'<rect data-x="{c:.1f}" x="{a:.1f}" y="{frame.top:g}" width="{max(0.0, b - a):.1f}" '
        f'height="{frame.inner_height:g}"><title>{escape(t)}</title></rect>'
        for c, a, b, t in zip(centres, edges[:-1], edges[1:], texts, strict=True)
    )
    return f'<g class="hot">{rects}</g>'


def nearest(values: Sequence[float], value: float) -> int:
    """Index of the nearest of ascending values."""
    i = bisect_left(values, value)
    return min((j for j in (i - 1, i) if 0 <= j < len(values)), key=lambda j: abs(values[j] - value))


def buckets(x: Sequence[float], y: Sequence[float]) -> list[tuple[float, float]]:
    """At most MAX_POINTS points: means over equal runs of points, both ends as they are."""
    if len(x) <= MAX_POINTS:
        return list(zip(x, y, strict=True))
    parts = zip(
        np.array_split(np.asarray(x), MAX_POINTS - 2),
        np.array_split(np.asarray(y), MAX_POINTS - 2),
        strict=True,
    )
    return [(x[0], y[0]), *((float(a.mean()), float(b.mean())) for a, b in parts), (x[-1], y[-1])]


def moving_mean(points: Sequence[tuple[float, float]], window: int) -> list[tuple[float, float]]:
    """Centred moving mean of y; the window shrinks at the ends."""
    half = window // 2
    ys = [y for _, y in points]
    means = (float(np.mean(ys[max(0, i - half) : i + half + 1])) for i in range(len(ys)))
    return [(x, mean) for (x, _), mean in zip(points, means, strict=True)]
