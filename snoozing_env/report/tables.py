"""The tables of the report: headline, samples, domains, events, the numbers behind the charts, recipes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape

from snoozing_env.report.charts import HEALTH, POOL, Measure, Style, evaluated, measured
from snoozing_env.report.compare import HEADERS, Run, cells, count, headline, percent
from snoozing_env.report.redact import flat, to_toml
from snoozing_env.report.runlog import EvalRecord, Sample
from snoozing_env.report.scale import short
from snoozing_env.report.svg import N_COLOURS

FOLD_FROM = 160
"""Longer texts are folded behind their first words."""
MAX_SAMPLES = 12

OTHERS = tuple(
    Measure(name=name, title=title, note="")
    for name, title in (
        ("generated_groups", "Generated groups"), ("trained_groups", "Trained groups"),
        ("replayed_groups", "Replayed groups"),
        ("generated_tokens", "Generated tokens"), ("trained_tokens", "Trained tokens"),
        ("snoozed", "Snoozed"), ("woken", "Woken"), ("passes", "Passes"), ("invalid_rollouts", "Invalid rollouts"),
        ("version", "Policy version"), ("seconds", "Seconds"), ("seconds_rollout", "Seconds rollout"),
        ("outside_clip", "Outside the clip range"),
        ("seconds_train", "Seconds train"), ("seconds_sync", "Seconds sync"),
    )
)  # fmt: skip


def table(headers: Sequence[str], rows: Sequence[Sequence[str]], *, css: str = "") -> str:
    """A table of cells that are HTML already; on a phone each row becomes a card with the headers as labels."""
    head = "".join(f'<th scope="col">{escape(h)}</th>' for h in headers)
    body = "".join(
        "<tr>"
        + "".join(f'<td data-h="{escape(h)}">{c}</td>' for h, c in zip(headers, row, strict=True))
        + "</tr>"
        for row in rows
    )
    return f'<div class="scroll"><table class="{css}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def headline_table(drawn: Sequence[Style]) -> str:
    runs = [s.run for s in drawn]
    rows: list[list[str]] = []
    for style in drawn:
        name, *rest = cells(headline(style.run, runs))
        rows.append([f'<i class="swatch c{style.colour % N_COLOURS}"></i>{escape(name)}', *map(escape, rest)])
    keep = [i for i in range(len(HEADERS)) if any(row[i] != "–" for row in rows)]
    return table([HEADERS[i] for i in keep], [[row[i] for i in keep] for row in rows], css="headline")


def folded(text: str) -> str:
    """The text, long ones behind their beginning; escaped."""
    if len(text) <= FOLD_FROM and text.count("\n") < 5:
        return f'<span class="text">{escape(text)}</span>'
    beginning = escape(" ".join(text.split())[:90])
    return f'<details><summary>{beginning}…</summary><span class="text">{escape(text)}</span></details>'


def samples_section(drawn: Sequence[Style]) -> str:
    """Prompt, answer, gold and reward from the last evaluation that kept some."""
    parts = [part for style in drawn if (part := _samples_of(style))]
    if not parts:
        return ""
    return f'<section><h2>What the policy says</h2><p class="note">Samples of the last evaluation, as they came.</p>{"".join(parts)}</section>'


def _samples_of(style: Style) -> str:
    last: EvalRecord | None = next((e for e in reversed(style.run.evals) if e.samples), None)
    if last is None or not last.samples:
        return ""
    rows = [
        [folded(s.prompt), folded(s.completion), folded(s.gold), _verdict(s)]
        for s in last.samples[:MAX_SAMPLES]
    ]
    hidden = len(last.samples) - len(rows)
    more = f'<p class="note">{hidden} more in the run log.</p>' if hidden else ""
    title = f'<h3><i class="swatch c{style.colour % N_COLOURS}"></i>{escape(style.run.label)}, step {last.step}</h3>'
    return title + table(("prompt", "answer", "gold", "reward"), rows, css="samples") + more


def _verdict(sample: Sample) -> str:
    if sample.reward is None:
        return '<span class="verdict">unknown</span>'
    css, sign = ("good", "✓") if sample.reward >= 1 else ("bad", "✗") if sample.reward <= 0 else ("", "~")
    return f'<span class="verdict {css}">{sign} {short(sample.reward)}</span>'


def domains_section(drawn: Sequence[Style]) -> str:
    """Final accuracy per domain, when there is more than one."""
    finals = [(s, s.run.evals[-1].by_domain or {}) for s in drawn if s.run.evals]
    names = list(dict.fromkeys(name for _, by in finals for name in by))
    if len(names) < 2:
        return ""
    rows = [[escape(name), *(percent(by[name]) if name in by else "–" for _, by in finals)] for name in names]
    return (
        "<section><h2>Accuracy by domain</h2>"
        + table(["domain", *(s.run.label for s, _ in finals)], rows)
        + "</section>"
    )


def events_section(drawn: Sequence[Style]) -> str:
    """What the scheduler did, in all."""
    counted: tuple[tuple[str, Callable[[Run], str]], ...] = (
        ("snoozed", lambda r: count(r.total("snoozed"))),
        ("woken", lambda r: count(r.total("woken"))),
        ("forgotten", lambda r: count(r.total("forgotten"))),
        ("invalid rollouts", lambda r: count(r.total("invalid_rollouts"))),
        (
            "saturation ladder",
            lambda r: ", ".join(f"{name} {n}×" for name, n in r.rungs.most_common()) or "–",
        ),
        ("fell back to uniform", fallbacks),
        ("alarms", alarms),
        ("warnings", notices),
    )
    rows = [[escape(s.run.label), *(escape(say(s.run)) for _, say in counted)] for s in drawn]
    keep = [0, *(i for i in range(1, len(counted) + 1) if any(row[i] != "–" for row in rows))]
    if len(keep) == 1:
        return ""
    headers = ["arm", *(name for name, _ in counted)]
    shown = table([headers[i] for i in keep], [[row[i] for i in keep] for row in rows])
    return (
        f'<section><h2>What the scheduler did</h2><p class="note">Totals over the run.</p>{shown}</section>'
    )


def fallbacks(run: Run) -> str:
    """When the evaluation sent the scheduler back to uniform draws, and when it returned."""
    words = {"fall_back": "fell back", "recover": "returned"}
    return (
        "; ".join(
            f"{words.get(r.action, r.action)} at step {r.step} ({percent(r.accuracy)}, best {percent(r.best)})"
            for r in run.fallbacks
        )
        or "–"
    )


def alarms(run: Run) -> str:
    """Signals of collapse that were past their limit, each where it started (A7)."""
    return (
        "; ".join(f"{r.signal} {r.value:.3g} past {r.limit:.3g} at step {r.step}" for r in run.alarms) or "–"
    )


def notices(run: Run) -> str:
    """What the scheduler warned of (M4)."""
    return "; ".join(f"step {r.step}: {r.text}" for r in run.notices) or "–"


def data_section(drawn: Sequence[Style]) -> str:
    """Every series of the report in numbers."""
    rows: list[list[str]] = []
    for style in drawn:
        series = [("Held-out accuracy", evaluated(style))]
        series += [(m.title, measured(style, m.name)) for m in (*POOL, *HEALTH, *OTHERS)]
        for title, s in series:
            if s.x:
                numbers = (s.x[-1], s.y[0], s.y[-1], min(s.y), max(s.y))
                rows.append([escape(title), escape(s.label), str(len(s.x)), *(f"{v:.6g}" for v in numbers)])
    headers = ("measure", "arm", "points", "last step", "first", "last", "lowest", "highest")
    rows.sort(key=lambda row: row[0])
    return f'<details class="fold"><summary>The numbers behind the charts</summary>{table(headers, rows, css="data")}</details>'


def recipes_section(drawn: Sequence[Style]) -> str:
    """What differs between the recipes, then each whole one, folded; secrets masked."""
    shown = [s for s in drawn if s.run.header.recipe]
    blocks = "".join(
        f'<details class="fold"><summary>Recipe of {escape(s.run.label)}</summary><pre>{escape(to_toml(s.run.header.recipe))}</pre></details>'
        for s in shown
    )
    return _differences(shown) + blocks


def _differences(shown: Sequence[Style]) -> str:
    recipes = [flat(s.run.header.recipe) for s in shown]
    keys = list(dict.fromkeys(key for recipe in recipes for key in recipe))
    rows = [
        [
            f"<code>{escape(key)}</code>",
            *(f"<code>{escape(recipe.get(key, '–'))}</code>" for recipe in recipes),
        ]
        for key in keys
        if len({recipe.get(key) for recipe in recipes}) > 1
    ]
    if not rows:
        return ""
    return "<h3>Where the recipes differ</h3>" + table(["setting", *(s.run.label for s in shown)], rows)
