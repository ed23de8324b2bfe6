"""`report.html`: one file that shows what a run learned and what it paid, alone or beside others.

The page loads nothing: styles, the little script and every drawing are in it, and its content security policy
forbids the rest, so text from a model can neither run nor phone home. Same logs, same bytes.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from pathlib import Path

from snoozing_env.errors import StateError
from snoozing_env.report.charts import (
    Style,
    accuracy_section,
    groups_section,
    health_section,
    pool_section,
    sides_section,
    styles,
    time_section,
)
from snoozing_env.report.compare import Headline, Run, accuracy, count, duration, headline, load_runs, percent
from snoozing_env.report.svg import N_COLOURS
from snoozing_env.report.tables import (
    data_section,
    domains_section,
    events_section,
    headline_table,
    recipes_section,
    samples_section,
)
from snoozing_env.report.timeline import goodput_section


def write_report(runs: Sequence[str | os.PathLike[str]], out: str | os.PathLike[str]) -> Path:
    """Writes the report of one or several run logs (files or directories; the first is the baseline)."""
    page = render(load_runs(runs))
    path = Path(out)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        raise StateError(
            f"cannot write the report {path}: {error.strerror}; choose another place with --out"
        ) from error
    return path


def render(runs: Sequence[Run]) -> str:
    """The whole page."""
    drawn = styles(runs)
    body = [
        _header(runs),
        _cards(runs),
        f"<section>{headline_table(drawn)}{_headline_note(runs)}</section>",
        accuracy_section(drawn),
        sides_section(drawn),
        groups_section(drawn),
        pool_section(drawn),
        events_section(drawn),
        health_section(drawn),
        goodput_section(drawn),
        time_section(drawn),
        domains_section(drawn),
        samples_section(drawn),
        f"<section><h2>Details</h2>{recipes_section(drawn)}{data_section(drawn)}</section>",
        _footer(drawn),
    ]
    return page(_title(runs), "".join(body))


def page(title: str, body: str) -> str:
    """A self-contained page around a body: styles, script and the policy that forbids everything else."""
    assets = files("snoozing_env.report") / "assets"
    css = (assets / "report.css").read_text(encoding="utf-8")
    script = (assets / "report.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{escape(title)}</title><style>{css}</style></head>"
        f"<body><main>{body}</main><script>{script}</script></body></html>\n"
    )


def _title(runs: Sequence[Run]) -> str:
    names = list(dict.fromkeys(run.header.name for run in runs))
    return " · ".join(names[:3])


def _header(runs: Sequence[Run]) -> str:
    header = runs[0].header
    arms = list(dict.fromkeys(run.header.arm for run in runs if run.header.arm))
    seeds = sorted({run.header.seed for run in runs})
    facts = [
        " vs ".join(arms) if len(arms) > 1 else "",
        f"seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}",
        f"{count(header.n_tasks)} tasks" if header.n_tasks is not None else "",
        ", ".join(header.datasets or ()),
        f"{max((s.step for run in runs for s in run.steps), default=0)} steps",
    ]
    line = " · ".join(escape(fact) for fact in facts if fact)
    return f'<header><p class="kicker">Training report</p><h1>{escape(_title(runs))}</h1><p class="facts">{line}</p></header>'


def _cards(runs: Sequence[Run]) -> str:
    """The result in a few large numbers: against the baseline, or of the only run."""
    rows = [headline(run, runs) for run in runs]
    arms = list(dict.fromkeys(run.header.arm for run in runs))
    cards: list[str] = []
    if len(arms) > 1:
        for colour, arm in enumerate(arms[1:3], 1):
            side = [row for run, row in zip(runs, rows, strict=True) if run.header.arm == arm]
            base = [row for run, row in zip(runs, rows, strict=True) if run.header.arm == arms[0]]
            cards += _versus_cards(arm, arms[0], side, base, colour)
    else:
        cards = _single_cards(rows[0])
    return f'<div class="cards">{"".join(cards)}</div>' if cards else ""


def _versus_cards(
    arm: str, baseline: str, side: Sequence[Headline], base: Sequence[Headline], colour: int
) -> list[str]:
    cards: list[str] = []
    ratios = [row.versus for row in side if row.versus is not None]
    seeds = f", mean of {len(ratios)} runs" if len(ratios) > 1 else ""
    if ratios:
        text = f"the groups that {baseline} generated, for the same trained groups{seeds}"
        cards.append(_card(f"{sum(ratios) / len(ratios):.2f} ×", arm, text, colour))
    ours, theirs = _mean_accuracy(side), _mean_accuracy(base)
    if ours is not None and theirs is not None:
        points = 100 * (ours - theirs)
        change = f"{points:+.1f}".replace("-", "−")
        text = f"held-out accuracy, {change} points against {baseline} at {percent(theirs)}"
        cards.append(_card(percent(ours), arm, text, colour))
    spent, before = _mean_seconds(side), _mean_seconds(base)
    if spent is not None and before:
        cards.append(_card(duration(spent), arm, f"wall time; {baseline} took {duration(before)}", colour))
    return cards


def _single_cards(row: Headline) -> list[str]:
    cards: list[str] = []
    if row.final is not None:
        before = f", from {percent(row.first.accuracy)} before training" if row.first else ""
        cards.append(_card(percent(row.final.accuracy), row.label, f"held-out accuracy{before}"))
    if row.per_trained is not None:
        text = f"groups generated per group trained ({count(row.generated_groups)} for {count(row.trained_groups)})"
        cards.append(_card(f"{row.per_trained:.2f}", row.label, text))
    if row.seconds is not None:
        cards.append(_card(duration(row.seconds), row.label, f"wall time; {row.ended}"))
    return cards


def _card(number: str, kicker: str, text: str, colour: int = 0) -> str:
    css = f"card c{colour % N_COLOURS}"
    return f'<div class="{css}"><small>{escape(kicker)}</small><b>{escape(number)}</b><span>{escape(text)}</span></div>'


def _mean_accuracy(rows: Sequence[Headline]) -> float | None:
    known = [row.final.accuracy for row in rows if row.final is not None]
    return sum(known) / len(known) if known else None


def _mean_seconds(rows: Sequence[Headline]) -> float | None:
    known = [row.seconds for row in rows if row.seconds is not None]
    return sum(known) / len(known) if known else None


def _headline_note(runs: Sequence[Run]) -> str:
    if len(runs) < 2:
        return ""
    return (
        f'<p class="note">“vs baseline” is generated groups against {escape(runs[0].header.arm or runs[0].label)}, '
        "both counted up to the same number of trained groups (and at the same seed where there is one).</p>"
    )


def _footer(drawn: Sequence[Style]) -> str:
    """How to get these figures again, from the page alone."""
    seeds = sorted({s.run.header.seed for s in drawn})
    versions = {name: version for s in drawn for name, version in s.run.header.versions.items()}
    pins = " ".join(f"{name}=={version}" for name, version in sorted(versions.items()))
    commands = [
        "# save a recipe from “Details” as recipe.toml, then",
        *(f"snooze train @ recipe.toml --seed {seed}" for seed in seeds[:3]),
        f"snooze report {' '.join('RUN_DIR' if len(drawn) == 1 else f'RUN_DIR_{i}' for i in range(1, len(drawn) + 1))}",
    ]
    used = f"<p>Versions: <code>{escape(pins)}</code></p>" if pins else ""
    ends = "; ".join(f"{s.run.label}: {_ending(s.run)}" for s in drawn)
    return (
        f"<footer><h2>How to reproduce</h2><pre>{escape(chr(10).join(commands))}</pre>{used}"
        f"<p>Every figure on this page is computed from the run logs alone. {escape(ends)}.</p></footer>"
    )


def _ending(run: Run) -> str:
    final = f", last evaluation {accuracy(run.evals[-1])} at step {run.evals[-1].step}" if run.evals else ""
    return (
        "ended: " + run.end.reason if run.end else "no end was logged, it was cut off or still runs"
    ) + final
