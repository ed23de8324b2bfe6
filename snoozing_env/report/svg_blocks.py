"""Charts made of blocks: a heat map over steps, and stacked bars."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from snoozing_env.report.scale import nice_ticks, share, spread
from snoozing_env.report.svg import N_COLOURS, Axis, Frame, hover_columns, svg
from snoozing_env.types import Floats

MAX_STRIPES = 80


def heat_map(
    columns: Sequence[tuple[float, Sequence[int]]],
    *,
    x: Axis,
    label: str,
    top: float,
    colour: int,
    width: int = 460,
    height: int = 220,
) -> str:
    """Share of tasks per bin of pass rate (0 at the bottom), one stripe per step; empty without data.

    `top` is the share that gets full colour: give several maps the same one and they compare.
    """
    filled = [(step, np.asarray(counts, np.float64)) for step, counts in columns if sum(counts) > 0]
    if not filled:
        return ""
    picked = [filled[i] for i in spread(len(filled), MAX_STRIPES)]
    shares = [(step, counts / counts.sum()) for step, counts in picked]
    frame = Frame(width, height, picked[0][0], max(picked[-1][0], picked[0][0] + 1e-9), 0.0, 1.0, right=14.0)
    n = len(shares)
    wide = (frame.width - frame.left - frame.right) / n
    centres = [frame.left + wide * (i + 0.5) for i in range(n)]
    body = [f'<g class="heat c{colour % N_COLOURS}">', *(_stripe(frame, c, wide, s, top) for c, (_, s) in zip(centres, shares, strict=True)), "</g>"]  # fmt: skip
    body += [
        _mean_line(frame, centres, [s for _, s in shares]),
        _heat_axes(frame, [s for s, _ in shares], centres, x),
    ]
    texts = [f"{x.label} {x.show(step)}\n" + _spoken(s) for step, s in shares]
    body.append(hover_columns(frame, centres, texts))
    return svg(frame.width, frame.height, f"{label}: {_spoken(shares[-1][1])} at the end", body)


def top_share(maps: Sequence[Sequence[tuple[float, Sequence[int]]]]) -> float:
    """The largest share that any bin of any map holds, 1 when there is none."""
    shares = [max(counts) / sum(counts) for columns in maps for _, counts in columns if sum(counts) > 0]
    return max(shares, default=1.0)


def _stripe(frame: Frame, centre: float, wide: float, shares_10: Floats, top: float) -> str:
    high = frame.inner_height / shares_10.size
    return "".join(
        f'<rect x="{centre - wide / 2:.2f}" y="{frame.y((i + 1) / shares_10.size):.1f}" width="{wide + 0.3:.2f}" '
        f'height="{high:.1f}" fill-opacity="{min(1.0, (value / top) ** 0.6):.2f}"/>'
        for i, value in enumerate(shares_10.tolist())
        if value > 0
    )


def _mean(shares_10: Floats) -> float:
    """Mean pass rate as the bin centres tell it."""
    return float(shares_10 @ (np.arange(shares_10.size) + 0.5) / shares_10.size)


def _spoken(shares_10: Floats) -> str:
    n = shares_10.size
    low, high = float(shares_10[: n // 5].sum()), float(shares_10[-n // 5 :].sum())
    return (
        f"pass rate under 20 %: {share(low)}\n20–80 %: {share(max(0.0, 1 - low - high))}\n"
        f"over 80 %: {share(high)}\nmean: {share(_mean(shares_10))}"
    )


def _mean_line(frame: Frame, centres: Sequence[float], shares: Sequence[Floats]) -> str:
    points = " ".join(f"{c:.1f},{frame.y(_mean(s)):.1f}" for c, s in zip(centres, shares, strict=True))
    return f'<polyline class="mean-under" points="{points}"/><polyline class="mean" points="{points}"/>'


def _heat_axes(frame: Frame, steps: Sequence[float], centres: Sequence[float], x: Axis) -> str:
    floor = frame.height - frame.bottom
    parts = [
        f'<text x="{frame.left - 6:g}" y="{frame.y(v) + 4:.1f}" text-anchor="end">{share(v)}</text>'
        for v in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
    ]
    # Stripes are equally wide, so a tick stands at the stripe of its step.
    ticks = [t for t in nice_ticks(steps[0], max(steps[-1], steps[0] + 1), 6) if steps[0] <= t <= steps[-1]]
    for tick in ticks:
        at = float(np.interp(tick, steps, centres))
        parts.append(
            f'<text x="{at:.1f}" y="{floor + 16:g}" text-anchor="middle">{escape(x.show(tick))}</text>'
        )
    middle = (frame.left + frame.width - frame.right) / 2
    parts.append(f'<rect class="edge" x="{frame.left:g}" y="{frame.top:g}" width="{frame.width - frame.left - frame.right:g}" height="{frame.inner_height:g}"/>')  # fmt: skip
    parts.append(f'<text class="axis" x="{middle:g}" y="{frame.height - 4:g}" text-anchor="middle">{escape(x.label)}</text>')  # fmt: skip
    return "".join(parts)


def stacked_bars(rows: Sequence[tuple[str, Sequence[tuple[str, float, str]]]]) -> str:
    """HTML bars of (row label, [(part, size, size as text)]), all on one scale; empty without data.

    HTML and not SVG: bars reflow with the page, and text in them keeps its size on a phone.
    """
    longest = max((sum(size for _, size, _ in parts) for _, parts in rows), default=0.0)
    if longest <= 0:
        return ""
    drawn: list[str] = []
    for label, parts in rows:
        whole = sum(size for _, size, _ in parts)
        bars = "".join(
            f'<span class="p{i}" style="width:{100 * size / longest:.2f}%" title="{escape(f"{name}: {text}, {share(size / whole)}")}">'
            f"{share(round(size / whole, 2)) if size / longest > 0.09 else ''}</span>"
            for i, (name, size, text) in enumerate(parts)
            if size > 0
        )
        drawn.append(f'<div class="bar"><b>{escape(label)}</b><div>{bars}</div></div>')
    names = list(dict.fromkeys(name for _, parts in rows for name, size, _ in parts if size > 0))
    order = [name for name, _, _ in rows[0][1]]
    key = "".join(f'<li><i class="p{order.index(name)}"></i>{escape(name)}</li>' for name in names)
    return f'<ul class="legend">{key}</ul><div class="bars">{"".join(drawn)}</div>'
