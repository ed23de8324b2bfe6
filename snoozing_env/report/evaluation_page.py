"""`report.html` of an evaluation: scores, both sides, cost and what was actually said, in one self-contained file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import cast

from snoozing_env.errors import StateError
from snoozing_env.report.compare import count, percent
from snoozing_env.report.evaluation import REPORT, EvalRun, shown
from snoozing_env.report.evaluation_console import PAIRED_ROWS, cost_cells, error_lines, paired_cells
from snoozing_env.report.html import page
from snoozing_env.report.paired import Paired
from snoozing_env.report.redact import to_toml
from snoozing_env.report.rollouts import Json, Rollout, Rollouts, read_transcript
from snoozing_env.report.scale import short, spread
from snoozing_env.report.scores import Score, Scored
from snoozing_env.report.tables import folded, table


def write_evaluation_page(run: EvalRun, *, samples: int = 12) -> Path:
    """The page beside the traces it was computed from; `samples` transcripts per environment."""
    body = [
        _header(run),
        _cards(run.scored),
        f"<section><h2>Scores</h2>{_scores(run)}{_note(run.ks)}</section>",
        _sides(run.scored),
        f"<section><h2>Cost</h2>{_costs(run.scored)}</section>",
        _invalid(run),
        *(_samples(one, samples) for one in run.rollouts),
        _footer(run),
    ]
    return _write(run.directory / REPORT, page(f"{run.model} · evaluation", "".join(body)))


def write_comparison_page(a: EvalRun, b: EvalRun, found: Mapping[str, Paired], path: Path) -> Path:
    """Two runs, paired by task."""
    columns = [paired_cells(p) for p in found.values()]
    rows = [[escape(label), *map(escape, cells)] for label, *cells in zip(PAIRED_ROWS, *columns, strict=True)]
    body = (
        '<header><p class="kicker">Paired comparison</p>'
        f"<h1>{escape(_named(b))} against {escape(_named(a))}</h1>"
        f'<p class="facts">A is {escape(str(a.directory))}, B is {escape(str(b.directory))}</p></header>'
        f'<section>{table(["", *found], rows, css="data")}<p class="note">Tasks are the unit: means per task over its valid '
        "rollouts, interval by bootstrap over tasks, p by swapping the runs within tasks. The sign test asks only which run "
        "did better on a task; with one binary rollout per task it is McNemar’s exact test.</p></section>"
    )
    return _write(path, page("Paired comparison", body))


def _write(path: Path, text: str) -> Path:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StateError(f"cannot write {path}: {error.strerror}; choose another place") from error
    return path


def _named(run: EvalRun) -> str:
    return f"{run.model} ({run.name})" if run.model else run.name


def _header(run: EvalRun) -> str:
    config = cast(Json, run.manifest.get("config", {}))
    facts = [
        f"{len(run.scored)} environment{'s' if len(run.scored) > 1 else ''}",
        f"{count(sum(s.score.n_tasks for s in run.scored))} tasks",
        f"{count(sum(s.score.n_rollouts for s in run.scored))} rollouts",
        f"{count(run.n_invalid)} invalid" if run.n_invalid else "",
        f"seed {config['seed']}" if "seed" in config else "",
    ]
    line = " · ".join(escape(f) for f in facts if f)
    title = escape(run.model or run.name)
    return f'<header><p class="kicker">Evaluation</p><h1>{title}</h1><p class="facts">{line}</p></header>'


def _cards(scored: Sequence[Scored]) -> str:
    cards: list[str] = []
    for one in scored[:6]:
        if (mean := one.score.mean) is None:
            continue
        text = f"mean reward, 95 % interval over {count(mean.n_tasks)} tasks: {percent(mean.low)} to {percent(mean.high)}"
        cards.append(
            f'<div class="card c0"><small>{escape(one.name)}</small><b>{percent(mean.value)}</b><span>{escape(text)}</span></div>'
        )
    return f'<div class="cards">{"".join(cards)}</div>' if cards else ""


def _scores(run: EvalRun) -> str:
    passes = [f"pass@{k} (95 %)" for k in run.ks]
    headers = ["", "of", "tasks", "rollouts", "invalid", "cut off", f"{run.mean_title} (95 %)", *passes]
    rows: list[list[str]] = []
    for one in run.scored:
        rows.append([f"<b>{escape(one.name)}</b>", "all", *_cells(one.score, run.ks)])
        for slicing, values in one.by.items():
            rows += [
                [escape(one.name), escape(f"{slicing} {value or '(none)'}"), *_cells(score, run.ks)]
                for value, score in values.items()
            ]
    return table(headers, rows, css="data")


def _cells(score: Score, ks: Sequence[int]) -> list[str]:
    counts = (score.n_tasks, score.n_rollouts, score.n_invalid, score.truncated)
    means = [score.mean, *(score.pass_at.get(k) for k in ks)]
    return [*map(count, counts), *(shown(found).replace(" ", "\u00a0") for found in means)]


def _note(ks: Sequence[int]) -> str:
    several = (
        "" if max(ks, default=1) == 1 else " pass@k is the unbiased estimate from all of a task’s rollouts."
    )
    return (
        '<p class="note">avg@k is the mean reward per task, then over tasks; intervals take the task as the unit.'
        f"{several} Invalid rollouts (infrastructure, deadlines, no verdict) enter no mean.</p>"
    )


def _sides(scored: Sequence[Scored]) -> str:
    rows = [
        [
            escape(one.name),
            escape(name.replace("_", "-")),
            shown(found),
            "–" if found is None else count(found.n_tasks),
        ]
        for one in scored
        for name, found in one.two_sided.items()
    ]
    if not rows:
        return ""
    note = "How often the policy errs in each direction, on the tasks where that is an error: read the two together."
    shown_table = table(["environment", "errs by", "share (95 %)", "tasks"], rows)
    return f'<section><h2>Both sides</h2><p class="note">{note}</p>{shown_table}</section>'


def _costs(scored: Sequence[Scored]) -> str:
    headers = [
        "environment",
        "prompt tokens",
        "generated tokens",
        "generated per rollout",
        "seconds per rollout",
        "money",
    ]
    return table(headers, [[escape(one.name), *map(escape, cost_cells(one))] for one in scored], css="data")


def _invalid(run: EvalRun) -> str:
    lines = error_lines(run)
    if not lines:
        return ""
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return f"<section><h2>Invalid rollouts</h2><ul>{items}</ul></section>"


def _samples(one: Rollouts, n: int) -> str:
    valid = [row for row in one.rows if row.reward is not None]
    picked = [valid[i] for i in spread(len(valid), n)] if n else []
    if not picked:
        return ""
    rows = [[*_said(one, row), verdict(row.reward)] for row in picked]
    return f"<section><h2>{escape(one.part.name)}</h2>{table(('prompt', 'answer', 'gold', 'reward'), rows, css='samples')}</section>"


def _said(one: Rollouts, row: Rollout) -> list[str]:
    said = read_transcript(one.part, row)
    return [folded(said.prompt), folded(said.reply), folded(said.gold)]


def verdict(reward: float | None) -> str:
    """A reward with its sign, as HTML."""
    if reward is None:
        return '<span class="verdict">invalid</span>'
    css, sign = ("good", "✓") if reward >= 1 else ("bad", "✗") if reward <= 0 else ("", "~")
    return f'<span class="verdict {css}">{sign} {short(reward)}</span>'


def _footer(run: EvalRun) -> str:
    config = run.manifest.get("config")
    if not config:
        return "<footer><p>Every figure on this page is computed from the traces alone.</p></footer>"
    pins = " ".join(f"{name}=={v}" for name, v in sorted(run.manifest.get("versions", {}).items()))
    return (
        "<footer><h2>How to reproduce</h2><pre># save the settings below as eval.toml, then\nsnooze eval @ eval.toml</pre>"
        f'<details class="fold"><summary>Settings</summary><pre>{escape(to_toml(config))}</pre></details>'
        f"<p>Versions: <code>{escape(pins)}</code></p><p>Every figure on this page is computed from the traces alone.</p></footer>"
    )
