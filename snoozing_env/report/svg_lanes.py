"""Stacked lanes over time: how each of several workers divided every moment among the same few activities."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

import numpy as np

from snoozing_env.report.scale import nice_ticks, share
from snoozing_env.report.svg import Axis, Frame, svg
from snoozing_env.types import Floats

MAX_BINS = 120
"""Longer runs are drawn in bins of equal time; each keeps exactly what falls into it."""
LANE, GAP, FOOT = 88.0, 26.0, 40.0
"""Pixels: height of a lane, the space above it for its name, and the time axis below the last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """One activity of a worker."""

    name: str
    colour: str
    """CSS class."""
    spent: Sequence[float]
    """[steps] time for it, in the unit of the axis."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """One worker; its bands are stacked in order, the first at the bottom."""

    name: str
    bands: Sequence[Band]


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """What the time is divided into."""

    numbers: Sequence[int]
    ends: Sequence[float]
    """[steps] when each ended, ascending from 0, in the unit of the axis."""


def stacked_lanes(steps: Steps, lanes: Sequence[Lane], *, x: Axis, label: str, width: int = 460) -> str:
    """The lanes as an `<svg>` on one time axis; empty where no time has passed. `x.high` may be that of several charts."""
    if not len(steps.ends) or steps.ends[-1] <= 0:
        return ""
    edges = bin_edges(steps.ends)
    frame = Frame(
        width,
        len(lanes) * (LANE + GAP) + FOOT,
        0.0,
        max(x.high or 0.0, steps.ends[-1]),
        0.0,
        1.0,
        right=14.0,
        top=GAP,
        bottom=FOOT,
    )
    shares = [[_shares(edges, steps.ends, band.spent) for band in lane.bands] for lane in lanes]
    body = [_lane(frame, i, lane, edges, shares[i]) for i, lane in enumerate(lanes)]
    body += [_time_axis(frame, x), _hover(frame, steps, edges, lanes, shares, x)]
    return svg(frame.width, frame.height, label, body)


def bin_edges(ends: Sequence[float]) -> Floats:
    """[bins + 1] times: every step is a bin, or in a long run every equal part of the time."""
    if len(ends) <= MAX_BINS:
        return np.concatenate(([0.0], np.asarray(ends, np.float64)))
    return np.linspace(0.0, ends[-1], MAX_BINS + 1)


def _shares(edges: Floats, ends: Sequence[float], spent: Sequence[float]) -> Floats:
    """[bins] share of each bin's time; a step that spans several bins is spread evenly."""
    total = np.concatenate(([0.0], np.cumsum(np.asarray(spent, np.float64))))
    at = np.interp(edges, np.concatenate(([0.0], np.asarray(ends, np.float64))), total)
    return np.clip(np.diff(at) / np.maximum(np.diff(edges), 1e-9), 0.0, 1.0)


def _lane(frame: Frame, place: int, lane: Lane, edges: Floats, shares: Sequence[Floats]) -> str:
    floor = (place + 1) * (LANE + GAP)
    parts = [f'<text class="lane" x="{frame.left:g}" y="{floor - LANE - 7:g}">{escape(lane.name)}</text>']
    base = np.zeros(len(edges) - 1)
    for band, height in zip(lane.bands, shares, strict=True):
        roof = np.minimum(base + height, 1.0)
        path = "".join(
            f"M{frame.x(a):.1f} {floor - LANE * low:.1f}V{floor - LANE * high:.1f}H{frame.x(b):.1f}V{floor - LANE * low:.1f}Z"
            for a, b, low, high in zip(edges[:-1], edges[1:], base, roof, strict=True)
            if high - low > 1e-4
        )
        parts.append(f'<path class="share {band.colour}" d="{path}"/>' if path else "")
        base = roof
    for value in (0.0, 0.5, 1.0):
        y = floor - LANE * value
        parts.append(
            f'<line class="over" x1="{frame.left:g}" x2="{frame.width - frame.right:g}" y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<text x="{frame.left - 6:g}" y="{y + 4:.1f}" text-anchor="end">{share(value)}</text>'
        )
    return "".join(parts)


def _time_axis(frame: Frame, x: Axis) -> str:
    floor = frame.height - FOOT
    parts = [
        f'<line class="tick" x1="{frame.x(v):.1f}" x2="{frame.x(v):.1f}" y1="{floor:g}" y2="{floor + 4:g}"/>'
        f'<text x="{frame.x(v):.1f}" y="{floor + 17:g}" text-anchor="middle">{escape(x.show(v))}</text>'
        for v in nice_ticks(0.0, frame.x1, 9 if frame.width > 600 else 5)
        if v <= frame.x1
    ]
    middle = (frame.left + frame.width - frame.right) / 2
    parts.append(
        f'<text class="axis" x="{middle:g}" y="{frame.height - 4:g}" text-anchor="middle">{escape(x.label)}</text>'
    )
    return "".join(parts)


def _hover(
    frame: Frame,
    steps: Steps,
    edges: Floats,
    lanes: Sequence[Lane],
    shares: Sequence[Sequence[Floats]],
    x: Axis,
) -> str:
    """A transparent column per bin that says its time, its steps and what each worker did."""
    columns: list[str] = []
    for i, (a, b) in enumerate(pairwise(edges.tolist())):
        first = min(bisect_right(steps.ends, a), len(steps.ends) - 1)
        last = min(bisect_left(steps.ends, b), len(steps.ends) - 1)
        numbers = list(dict.fromkeys((steps.numbers[first], steps.numbers[last])))
        lines = [
            f"step{'s' if len(numbers) > 1 else ''} {' to '.join(map(str, numbers))}, {x.label} {x.show(b)}"
        ]
        for lane, parts in zip(lanes, shares, strict=True):
            done = [(band.name, part[i]) for band, part in zip(lane.bands, parts, strict=True)]
            lines.append(f"{lane.name}: " + ", ".join(f"{name} {v:.0%}" for name, v in done if v >= 0.005))
        text = escape("\n".join(lines))
        columns.append(
            f'<rect data-x="{frame.x((a + b) / 2):.1f}" x="{frame.x(a):.1f}" y="{frame.top:g}" '
            f'width="{frame.x(b) - frame.x(a):.1f}" height="{frame.inner_height:g}"><title>{text}</title></rect>'
        )
    return f'<g class="hot">{"".join(columns)}</g>'
