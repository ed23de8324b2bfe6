"""What `snooze stratify` found, as a table, a plot and a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Literal

import numpy as np
from rich.table import Table
from rich.text import Text

from snoozing_env.errors import StateError
from snoozing_env.report.compare import count, percent
from snoozing_env.report.evaluation_page import verdict
from snoozing_env.report.html import page
from snoozing_env.report.rollouts import Transcript
from snoozing_env.report.scale import nice_ticks
from snoozing_env.report.svg import Frame, svg
from snoozing_env.report.tables import folded, table
from snoozing_env.schedulers.priors import EDGES, Priors, bucket_label
from snoozing_env.types import Floats

PLOT = "priors.svg"
PAGE = "report.html"
SUSPECTS_SHOWN = 40
INK = "#0072b2"
Why = Literal["never solved", "always solved"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One rollout of a suspect."""

    model: str
    reward: float
    transcript: Transcript


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect:
    """A task that every rollout failed, or none did: broken, leaked, or out of reach either way."""

    key: str
    environment: str
    dataset: str
    domain: str
    why: Why
    k: int
    """Rollouts that agree."""
    said: tuple[Said, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stratified:
    """What a stratification found."""

    directory: Path
    models: tuple[str, ...]
    priors: Priors
    suspects: tuple[Suspect, ...]
    n_invalid: int
    """Rollouts without a verdict; they count nowhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """The tasks whose prior lies between two edges."""

    label: str
    n_tasks: int
    se: float
    """Mean standard error of its tasks' priors; 0 for an empty bucket."""
    spread: float
    """Standard error of `n_tasks`: how many tasks lie so near an edge that another k rollouts would move them."""


def buckets(priors: Priors) -> list[Bucket]:
    """A row per bucket between EDGES."""
    inside_N_B = _inside(priors.prior_N, priors.se_N)
    found: list[Bucket] = []
    for index in range(len(EDGES) - 1):
        mine = priors.bucket_N == index
        p_N = inside_N_B[:, index]
        found.append(
            Bucket(
                label=bucket_label(index),
                n_tasks=int(mine.sum()),
                se=float(priors.se_N[mine].mean()) if mine.any() else 0.0,
                spread=float(np.sqrt(np.sum(p_N * (1 - p_N)))),
            )
        )
    return found


def _inside(prior_N: Floats, se_N: Floats) -> Floats:
    """[N, buckets] chance that a task's rate lies in each bucket: normal around its prior, a point where SE is 0."""
    edges = np.array([-np.inf, *EDGES[1:-1], np.inf])
    with np.errstate(divide="ignore", invalid="ignore"):
        z = (edges[None, :] - prior_N[:, None]) / se_N[:, None]
    # 0/0 is a task on the edge: the bucket above it.
    below: Floats = np.where(np.isnan(z), 0.0, _normal_cdf(np.nan_to_num(z, nan=0.0)))
    return np.subtract(below[:, 1:], below[:, :-1])


def _normal_cdf(z: Floats) -> Floats:
    """Zelen & Severo 1964 (Abramowitz & Stegun 26.2.17): within 7.5e-8."""
    size = np.minimum(np.abs(z), 40.0)
    t = 1 / (1 + 0.2316419 * size)
    poly = t * (0.319381530 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))))
    tail = np.exp(-(size**2) / 2) / np.sqrt(2 * np.pi) * poly
    below = np.asarray(np.where(z >= 0, 1 - tail, tail), np.float64)
    return below


def strata_table(found: Stratified) -> Table:
    """Buckets for a terminal."""
    shown = Table(title=f"priors of {count(len(found.priors.keys))} tasks", title_justify="left")
    for i, name in enumerate(("pass rate", "tasks", "share", "mean SE")):
        shown.add_column(name, justify="right" if i else "left")
    n = max(len(found.priors.keys), 1)
    for row in buckets(found.priors):
        shown.add_row(row.label, count(row.n_tasks), percent(row.n_tasks / n), f"{row.se:.3f}")
    shown.add_section()
    never, always = int(found.priors.postponed_N.sum()), int(found.priors.removable_N.sum())
    shown.add_row("never solved: postponed", count(never), percent(never / n), "")
    shown.add_row("always solved: removable", count(always), percent(always / n), "")
    if len(found.models) > 1:
        shown.add_section()
        for model in found.models:
            rates = found.priors.rates.get(model, np.array([np.nan]))
            known = rates[~np.isnan(rates)]
            shown.add_row(
                Text(model), count(known.size), percent(float(known.mean())) if known.size else "–", ""
            )
    return shown


def histogram(rows: Sequence[Bucket], *, width: int = 460, height: int = 260) -> str:
    """Tasks per bucket with their standard errors, as an `<svg>` that also stands alone."""
    ticks = nice_ticks(0.0, max((row.n_tasks + row.spread for row in rows), default=1.0) or 1.0)
    frame = Frame(width, height, 0.0, float(len(rows)), 0.0, ticks[-1], right=14.0)
    grey = 'fill="#77838f" font-size="11" font-family="system-ui,sans-serif"'
    body: list[str] = []
    for tick in ticks:
        y = frame.y(tick)
        body.append(
            f'<line x1="{frame.left:g}" x2="{width - 14}" y1="{y:.1f}" y2="{y:.1f}" stroke="#77838f" stroke-opacity=".25"/>'
        )
        body.append(f'<text x="{frame.left - 6:g}" y="{y + 4:.1f}" text-anchor="end" {grey}>{tick:g}</text>')
    for i, row in enumerate(rows):
        left, right, top = frame.x(i + 0.08), frame.x(i + 0.92), frame.y(row.n_tasks)
        middle = (left + right) / 2
        body.append(
            f'<rect x="{left:.1f}" y="{top:.1f}" width="{right - left:.1f}" height="{frame.y(0) - top:.1f}" fill="{INK}" fill-opacity=".75">'
            f"<title>{escape(f'{row.label}: {row.n_tasks} tasks ± {row.spread:.1f}, mean SE {row.se:.3f}')}</title></rect>"
        )
        if row.spread > 0:
            low, high = frame.y(max(0.0, row.n_tasks - row.spread)), frame.y(row.n_tasks + row.spread)
            body.append(
                f'<path d="M{middle:.1f} {low:.1f}V{high:.1f}M{middle - 5:.1f} {high:.1f}h10M{middle - 5:.1f} {low:.1f}h10" stroke="#1d2228" fill="none"/>'
            )
        body.append(
            f'<text x="{middle:.1f}" y="{frame.y(0) + 16:.1f}" text-anchor="middle" {grey}>{row.label}</text>'
        )
    body.append(
        f'<text x="{width / 2:g}" y="{height - 4}" text-anchor="middle" {grey}>prior pass rate; bars: tasks ± standard error</text>'
    )
    spoken = "; ".join(f"{row.label} {row.n_tasks}" for row in rows)
    drawn = svg(width, height, f"tasks by prior pass rate: {spoken}", body)
    return drawn.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)


def write_strata(found: Stratified) -> Path:
    """`priors.svg` and `report.html`; returns the page."""
    rows = buckets(found.priors)
    _write(found.directory / PLOT, histogram(rows))
    body = [
        f'<header><p class="kicker">Stratification</p><h1>{escape(" · ".join(found.models))}</h1>'
        f'<p class="facts">{count(len(found.priors.keys))} tasks, {count(int(found.priors.k_N.sum()))} rollouts'
        f"{f', {count(found.n_invalid)} invalid' if found.n_invalid else ''}</p></header>",
        f'<section><h2>How hard</h2><div class="grid two"><figure>{histogram(rows)}</figure><div>{_bucket_table(rows)}</div></div></section>',
        _suspects(found),
    ]
    return _write(found.directory / PAGE, page("Stratification", "".join(body)))


def _bucket_table(rows: Sequence[Bucket]) -> str:
    cells = [[row.label, count(row.n_tasks), f"± {row.spread:.1f}", f"{row.se:.3f}"] for row in rows]
    return table(["pass rate", "tasks", "of which unsure", "mean SE"], cells, css="data")


def _suspects(found: Stratified) -> str:
    if not found.suspects:
        return ""
    rows = [
        [
            escape(f"{s.why}, {s.k} of {s.k}"),
            escape(" · ".join(filter(None, (s.environment, s.dataset, s.domain)))),
            folded(s.said[0].transcript.prompt) if s.said else "",
            "<hr>".join(
                f"{escape(one.model)}: {folded(one.transcript.reply)} {verdict(one.reward)}" for one in s.said
            ),
            folded(s.said[0].transcript.gold) if s.said else "",
        ]
        for s in _mixed(found.suspects)
    ]
    more = len(found.suspects) - len(rows)
    rest = f'<p class="note">{count(more)} more in suspects.jsonl.</p>' if more else ""
    shown = table(["why", "where", "prompt", "answers", "gold"], rows)
    return (
        '<section><h2>Suspects</h2><p class="note">Tasks on which all rollouts agree: a wrong gold, a broken test or a '
        f"leaked answer hides among them, and so do the honestly hard and the honestly easy.</p>{shown}{rest}</section>"
    )


def _mixed(suspects: Sequence[Suspect]) -> list[Suspect]:
    """Both kinds, half of the page each where there are that many."""
    never = [s for s in suspects if s.why == "never solved"]
    always = [s for s in suspects if s.why == "always solved"]
    room = max(SUSPECTS_SHOWN // 2, SUSPECTS_SHOWN - len(always))
    first = never[:room]
    return [*first, *always[: SUSPECTS_SHOWN - len(first)]]


def _write(path: Path, text: str) -> Path:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StateError(f"cannot write {path}: {error.strerror}; choose another output") from error
    return path
