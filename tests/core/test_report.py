"""The report: computed from the log alone, self-contained, safe to open, and complete in numbers."""

from __future__ import annotations

import base64
import hashlib
import re
import tomllib
from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from snoozing_env.errors import StateError
from snoozing_env.intervals import wilson
from snoozing_env.report.charts import HEALTH, POOL, evaluated, measured, styles
from snoozing_env.report.compare import Headline, headline, load_runs
from snoozing_env.report.html import write_report
from snoozing_env.report.redact import MASK, to_toml
from snoozing_env.report.runlog import EndRecord, EvalRecord, Record, RunLog, RunRecord, Sample, StepRecord

EVIL = '<script>alert("x")</script><img src=x onerror=alert(1)> & "quotes"'
VOID = {"meta", "br", "img", "link", "input"}


def synthetic_run(
    directory: Path,
    *,
    arm: str,
    asleep: float = 0.0,
    seed: int = 0,
    n_steps: int = 60,
    recipe: Mapping[str, object] | None = None,
) -> Path:
    """A made-up but plausible run: a pool of 600 tasks that the policy slowly masters. Never shipped as a result."""
    rng = np.random.default_rng(np.random.SeedSequence([seed, len(arm)]))
    skill_N = rng.normal(-0.5, 1.6, 600)
    path = directory / arm / f"seed{seed}" / "metrics.jsonl"
    with RunLog(path) as log:
        scheduler = {"kind": arm, "skip_passes": float("inf") if asleep else 0}
        log.append(
            RunRecord(
                name="demo", arm=arm, seed=seed, n_tasks=600, datasets=("arithmetic",),
                recipe=recipe or {"group_size": 8, "model": {"max_tokens": 48, "api_key": "sk-very-secret"}, "scheduler": scheduler},
                versions={"trl": "1.16.0", "torch": "2.13.0"},
            )
        )  # fmt: skip
        seconds = 0.0
        for step in range(1, n_steps + 1):
            rates_N = 1 / (1 + np.exp(-(skill_N + 3.2 * (1 - np.exp(-step / 25)))))
            if step == 1 or step % 10 == 0:
                log.append(
                    _eval(0 if step == 1 else step, float(rates_N.mean()) - (0.25 if step == 1 else 0.2), arm)
                )
            awake_N = rates_N < (0.97 if asleep else 1.1)
            survival = float((1 - rates_N[awake_N] ** 8 - (1 - rates_N[awake_N]) ** 8).mean())
            generated = int(np.ceil(16 / survival)) + int(rng.integers(0, 3))
            parts = generated * 0.11, 1.2 + 0.1 * float(rng.random()), 0.15
            seconds += sum(parts) + (2.0 if step % 10 == 0 else 0.1)
            log.append(
                StepRecord(
                    step=step, version=step, seconds=seconds, generated_groups=generated, trained_groups=16,
                    generated_tokens=generated * 8 * 21, trained_tokens=16 * 8 * 21, survival=16 / generated,
                    asleep_share=float(1 - awake_N.mean()), snoozed=int(rng.integers(0, 9)), woken=int(rng.integers(0, 5)),
                    forgotten=int(rng.integers(0, 3)), passes=step * generated / 600, reward_mean=float(rates_N[awake_N].mean()),
                    pass_rate_histogram=tuple(np.histogram(rates_N[: 12 * step], np.linspace(0, 1, 11))[0].tolist()),
                    carried_groups=int(rng.integers(0, 4)), invalid_rollouts=0, lag_mean=0.0,
                    loss=float(rng.normal(0, 0.02)), grad_norm=float(rng.gamma(9, 0.05)), entropy=0.9 * 0.985**step + float(rng.normal(0, 0.02)),
                    clip_fraction=float(rng.beta(2, 60)), ratio_mean=float(rng.normal(1, 0.004)),
                    rungs=("wake longest asleep",) if step > 50 and asleep else None,
                    seconds_rollout=parts[0], seconds_train=parts[1], seconds_sync=parts[2],
                    tasks=tuple(f"arithmetic-{i:04d}" for i in rng.integers(0, 600, 16)),
                )
            )  # fmt: skip
        log.append(EndRecord(reason="all steps done", seconds=seconds + 3))
    return path


def _eval(step: int, accuracy: float, arm: str) -> EvalRecord:
    low, high = wilson(round(accuracy * 400), 400)
    samples = (
        Sample(prompt="What is 17 + 26?", completion="17 + 26 = 43. The answer is \\boxed{43}.", gold="43", reward=1.0),
        Sample(prompt="A shop sells pens in packs of 6. " * 9, completion="Let me think.\n" * 12 + "\\boxed{9}", gold="12", reward=0.0),
        Sample(prompt=f"{EVIL} ({arm})", completion="</td></table>", gold="1", reward=None),
    )  # fmt: skip
    domains = {"addition": min(1.0, accuracy + 0.1), "division": accuracy - 0.1}
    return EvalRecord(
        step=step,
        accuracy=accuracy,
        low=low,
        high=high,
        n_tasks=400,
        n_samples=400,
        by_domain=domains,
        samples=samples,
    )


class Reader(HTMLParser):
    """Collects what a browser would act on, and fails on unbalanced markup."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.rows: list[list[str]] = []
        self._open: list[str] = []
        self.feed(page)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "td" in self._open or "th" in self._open:
            self.rows[-1][-1] += data

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attrs for name, attrs in self.tags if name == tag]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    place = tmp_path_factory.mktemp("runs")
    return [synthetic_run(place, arm="uniform"), synthetic_run(place, arm="snooze", asleep=0.4)]


@pytest.fixture(scope="module")
def page(runs: list[Path], tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_report(runs, tmp_path_factory.mktemp("out") / "deep" / "report.html").read_text(
        encoding="utf-8"
    )


def test_the_report_is_one_file_that_loads_nothing(page: str) -> None:
    loads = re.findall(r"""(?:src|href|srcset|action|data)\s*=\s*["']?\s*[^\s"'>]+""", _without_text(page))
    assert loads == []
    assert not re.search(r"@import|url\(|https?://|//cdn", _without_text(page))
    assert {tag for tag, _ in Reader(page).tags}.isdisjoint(
        {"link", "iframe", "img", "object", "embed", "base"}
    )


def _without_text(page: str) -> str:
    """The page without what a model or a recipe wrote; markup inside that text was escaped."""
    return re.sub(r'<span class="text">.*?</span>', "", page, flags=re.DOTALL)


def test_what_a_model_wrote_stays_text(page: str) -> None:
    reader = Reader(page)
    assert len(reader.named("script")) == 1, "only the page's own script"
    assert not any(name.startswith("on") for _, attrs in reader.tags for name in attrs)
    cells = [cell for row in reader.rows for cell in row]
    assert f"{EVIL} (snooze)" in cells, "and it is shown as it came"


def test_names_and_domains_and_recipes_from_the_log_stay_text(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    with RunLog(path) as log:
        log.append(
            RunRecord(
                name=EVIL,
                arm=EVIL,
                seed=0,
                recipe={EVIL: {EVIL: EVIL}},
                versions={EVIL: EVIL},
                datasets=(EVIL,),
            )
        )
        log.append(
            StepRecord(
                step=1,
                generated_groups=4,
                trained_groups=2,
                rungs=(EVIL,),
                reward_mean=0.5,
                seconds_train=1.0,
            )
        )
        log.append(EvalRecord(step=1, accuracy=0.5, by_domain={EVIL: 0.5, "b": 0.5}))
        log.append(EndRecord(reason=EVIL))
    reader = Reader(write_report([path], tmp_path / "r.html").read_text(encoding="utf-8"))
    assert len(reader.named("script")) == 1
    assert reader.named("img") == []
    assert not any(name.startswith("on") for _, attrs in reader.tags for name in attrs)


def test_both_sides_of_a_conflict_share_one_chart_and_runs_without_sides_have_none(
    page: str, tmp_path: Path
) -> None:
    paths = []
    for arm, end in (("permanent", 0.1), ("snooze", 0.8)):
        paths.append(tmp_path / arm / "metrics.jsonl")
        paths[-1].parent.mkdir()
        with RunLog(paths[-1]) as log:
            log.append(RunRecord(name="qa", arm=arm, seed=0))
            for step, answer in ((0, 0.5), (10, end)):
                log.append(EvalRecord(step=step, accuracy=0.5, by_side={"answer": answer, "abstain": 0.6}))
    written = write_report(paths, tmp_path / "r.html").read_text(encoding="utf-8")
    chart = next(
        a["aria-label"]
        for a in Reader(written).named("svg")
        if "permanent, answer" in (a.get("aria-label") or "")
    )
    assert chart == (
        "held-out accuracy by step: permanent, abstain ends at 60 %; permanent, answer ends at 10 %; "
        "snooze, abstain ends at 60 %; snooze, answer ends at 80 %"
    )
    assert "Both sides" not in page


def test_the_content_policy_admits_the_script_of_the_page_and_no_other(page: str) -> None:
    script = re.search(r"<script>(.*?)</script>", page, re.DOTALL)
    assert script is not None
    digest = base64.b64encode(hashlib.sha256(script[1].encode()).digest()).decode()
    policy = next(
        a["content"] for a in Reader(page).named("meta") if a.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy == f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"


def test_secrets_of_a_recipe_never_reach_the_page(tmp_path: Path) -> None:
    recipe = {
        "api_key": "sk-LEAK1", "hub": {"TOKEN": "LEAK2", "passwords": ["LEAK3"], "client_secret": 123456789},
        "engines": [{"auth_token": "LEAK4", "url": "http://user:LEAK5@host:8000/v1"}], "keys": {"openai": "LEAK6"},
        "max_tokens": 77, "tokenizer": "own/tokenizer",
    }  # fmt: skip
    other = {**recipe, "api_key": "sk-LEAK7"}
    paths = [synthetic_run(tmp_path, arm=a, n_steps=2, recipe=r) for a, r in (("a", recipe), ("b", other))]
    page = write_report(paths, tmp_path / "r.html").read_text(encoding="utf-8")
    assert "LEAK" not in page
    assert "123456789" not in page
    assert "max_tokens = 77" in page, "a number of tokens is no secret"
    assert "own/tokenizer" in page
    assert page.count(MASK) >= 6


def test_a_shown_recipe_is_toml_with_the_same_values(tmp_path: Path) -> None:
    recipe = {
        "seed": 3,
        "train": {"lr": 1e-3, "on": True, "note": 'a "b"\n', "deep er": {"x": [1, "two"]}},
        "s": {"n": "inf"},
    }
    assert tomllib.loads(to_toml(recipe)) == {**recipe, "s": {"n": float("inf")}}


def test_the_same_logs_give_the_same_bytes(runs: list[Path], page: str, tmp_path: Path) -> None:
    assert write_report(runs, tmp_path / "again.html").read_text(encoding="utf-8") == page


def test_every_series_ends_in_the_data_table_with_its_last_value(runs: list[Path], page: str) -> None:
    rows = {(row[0], row[1]): row[5] for row in Reader(page).rows if len(row) == 8}
    for style in styles(load_runs(runs)):
        drawn = {m.title: measured(style, m.name) for m in (*POOL, *HEALTH)} | {
            "Held-out accuracy": evaluated(style)
        }
        del drawn["Fallen back"]  # these runs have no fallback,
        for title in ("Effective sample size", "Effective sample size, tokens", "Learning-rate factor"):
            del drawn[title]  # and no stale groups
        del drawn["Truncated"]
        for title, series in drawn.items():
            assert rows[title, style.run.label] == f"{series.y[-1]:.6g}"
    assert ("Generated groups", "snooze") in rows


def test_a_chart_without_data_is_left_out_whole(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    with RunLog(path) as log:
        log.append(StepRecord(step=1, entropy=0.7))
        log.append(StepRecord(step=2, entropy=float("nan")))
    page = write_report([path], tmp_path / "r.html").read_text(encoding="utf-8")
    assert re.findall(r"<figcaption><h3>(.*?)</h3>", page) == ["Entropy"]
    headings = re.findall(r"<h2>(.*?)</h2>", page)
    assert headings == ["Training health", "Details", "How to reproduce"]


@pytest.mark.parametrize(
    "records", [[], [EndRecord(reason="engine died")], [EvalRecord(step=0, accuracy=0.0)]]
)
def test_a_run_that_died_early_still_has_a_report(records: list[Record], tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    with RunLog(path) as log:
        log.append(RunRecord(name="short", arm="snooze", seed=1))
        for record in records:
            log.append(record)
    reader = Reader(write_report([path], tmp_path / "r.html").read_text(encoding="utf-8"))
    assert reader.rows[1][0] == "snooze"


def _log(path: Path, arm: str, groups: list[tuple[int, int]], seed: int = 0) -> Path:
    with RunLog(path / arm / str(seed) / "metrics.jsonl") as log:
        log.append(RunRecord(name="n", arm=arm, seed=seed))
        for step, (generated, trained) in enumerate(groups, 1):
            log.append(
                StepRecord(step=step, generated_groups=generated, trained_groups=trained, generated_tokens=10)
            )
    return path / arm / str(seed)


def test_runs_are_compared_at_the_same_number_of_trained_groups(tmp_path: Path) -> None:
    # The baseline went on for another step; what it paid there is not held against it.
    base = _log(tmp_path, "uniform", [(20, 10), (40, 10), (400, 10)])
    ours = _log(tmp_path, "snooze", [(10, 10), (20, 10)])
    runs = load_runs([base, ours])
    rows = [headline(run, runs) for run in runs]
    assert rows[0].versus is None
    assert rows[1].versus == pytest.approx(30 / 60)
    assert rows[0].per_trained == pytest.approx(460 / 30)
    assert (rows[1].generated_groups, rows[1].trained_groups, rows[1].generated_tokens) == (30, 20, 20)


def test_a_run_is_compared_with_the_baseline_of_its_own_seed(tmp_path: Path) -> None:
    logs = [_log(tmp_path, "uniform", [(40, 10)], 0), _log(tmp_path, "uniform", [(20, 10)], 1)]
    logs += [_log(tmp_path, "snooze", [(10, 10)], 0), _log(tmp_path, "snooze", [(10, 10)], 1)]
    runs = load_runs(logs)
    assert [headline(run, runs).versus for run in runs[2:]] == pytest.approx([0.25, 0.5])
    assert [run.label for run in runs][:2] == ["uniform · seed 0", "uniform · seed 1"]
    page = write_report(logs, tmp_path / "r.html").read_text(encoding="utf-8")
    assert "<b>0.38 ×</b>" in page, "the card is the mean over seeds, 0.375"


def test_a_log_that_two_runs_wrote_is_refused_rather_than_counted_twice(tmp_path: Path) -> None:
    path = _log(tmp_path, "snooze", [(1, 1), (1, 1)])
    _log(tmp_path, "snooze", [(1, 1)])
    with pytest.raises(
        StateError, match=r"metrics\.jsonl has step 1 after step 2; wanted each step once\. Two runs"
    ):
        load_runs([path])


def test_a_directory_of_runs_is_read_whole_and_a_wrong_one_is_named(tmp_path: Path) -> None:
    _log(tmp_path, "snooze", [(1, 1)], 0)
    _log(tmp_path, "snooze", [(1, 1)], 1)
    assert [run.header.seed for run in load_runs([tmp_path / "snooze"])] == [0, 1]
    with pytest.raises(
        StateError, match=r"no run log at .*nowhere; wanted a metrics\.jsonl, a directory with one"
    ):
        load_runs([tmp_path / "nowhere"])
    with pytest.raises(StateError, match="no run log was given"):
        load_runs([])


def test_a_run_says_how_it_ended_or_that_it_did_not(tmp_path: Path) -> None:
    path = _log(tmp_path, "snooze", [(1, 1)]) / "metrics.jsonl"
    with RunLog(path) as log:
        log.append(StepRecord(step=2, seconds=60.0))
        assert [(h.ended, h.seconds) for h in _headlines(path)] == [("unfinished", 60.0)]
        log.append(EndRecord(reason="saturated", seconds=61.0))
    assert [(h.ended, h.seconds) for h in _headlines(path)] == [("saturated", 61.0)]


def _headlines(path: Path) -> list[Headline]:
    runs = load_runs([path])
    return [headline(run, runs) for run in runs]
