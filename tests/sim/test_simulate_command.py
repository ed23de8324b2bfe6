"""`snooze simulate` from words to files."""

import io
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from rich.console import Console

from snoozing_env.cli import main
from snoozing_env.report.scale import share
from snoozing_env.report.simulation import SimulationProgress, results_table
from snoozing_env.sim.compare import SimulationConfig, simulate_all

QUICK = ["--loop.steps", "6", "--loop.batch", "6", "--seeds", "0,1"]
TOML = """
presets = []
seeds = [7]
[loop]
steps = 5
batch = 4
[schedulers.plain.snooze]
mode = "off"
[schedulers.steep]
kind = "thompson"
target = 0.4
[learners.two_sided]
side_rate = 1.0
[[learners.two_sided.populations]]
name = "yes"
tasks = 60
side = 1
[[learners.two_sided.populations]]
name = "no"
tasks = 20
side = -1
"""


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_flags_alone_compare_kinds_on_a_preset(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["simulate", "--presets", "subsets", "--kinds", "uniform,lze", *QUICK, "--output", str(tmp_path)])
    runs = lines(tmp_path / "runs.jsonl")
    assert [(r["scheduler"], r["seed"]) for r in runs] == [
        ("uniform", 0),
        ("uniform", 1),
        ("lze", 0),
        ("lze", 1),
    ]
    out = capsys.readouterr().out
    assert "run 4/4: lze on subsets, seed 1" in out
    assert f"report: {tmp_path}/report.html" in out


def test_a_file_names_arms_and_learners_and_flags_win_over_it(tmp_path: Path) -> None:
    file = tmp_path / "grid.toml"
    file.write_text(TOML, encoding="utf-8")
    main(["simulate", "@", str(file), "--loop.steps", "3", "--output", str(tmp_path / "out")])
    steps = lines(tmp_path / "out" / "steps.jsonl")
    assert [(s["scheduler"], s["learner"], s["seed"], s["step"]) for s in steps] == [
        (name, "two_sided", 7, step) for name in ("plain", "steep") for step in (1, 2, 3)
    ]
    assert all(set(s["side_rates"]) == {"+1", "-1"} for s in steps if isinstance(s["side_rates"], dict))


def test_an_outcome_log_is_one_more_learner(tmp_path: Path) -> None:
    log = tmp_path / "night.jsonl"
    log.write_text(
        "".join(json.dumps({"task": str(i), "pass_rate": 0.5}) + "\n" for i in range(40)), encoding="utf-8"
    )
    main(["simulate", "--presets", "", "--outcomes", str(log), *QUICK, "--output", str(tmp_path / "out")])
    assert {run["learner"] for run in lines(tmp_path / "out" / "runs.jsonl")} == {"night"}


class Loaded(HTMLParser):
    """What a page would fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [(tag, value) for name, value in attrs if name in ("src", "href")]


def test_the_page_draws_every_scheduler_and_loads_nothing(tmp_path: Path) -> None:
    main(["simulate", "--presets", "conflict,subsets", *QUICK, "--output", str(tmp_path)])
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    loaded = Loaded()
    loaded.feed(page)
    assert loaded.found == []
    charts = re.findall(r'aria-label="([^"]*)"', page)
    wanted = ("pass rate by groups generated so far", "share by step")
    assert all(any(chart.startswith(start) for chart in charts) for start in wanted)
    assert all(
        name in chart for chart in charts for name in ("plain", "permanent", "snooze 2", "snooze 5")
    ), charts
    assert "Pass rate, side +1" in page
    assert "Share of the batch, hard" in page


def test_a_curve_is_the_mean_over_seeds(tmp_path: Path) -> None:
    main(["simulate", "--presets", "subsets", "--kinds", "uniform", *QUICK, "--output", str(tmp_path)])
    ends = [float(str(run["final_rate"])) for run in lines(tmp_path / "runs.jsonl")]
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert f"pass rate by step: uniform ends at {share(sum(ends) / len(ends))}" in page
    assert share(max(ends)) != share(sum(ends) / len(ends))


def test_the_same_comparison_writes_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        main(["simulate", "--presets", "standalone", *QUICK, "--output", str(tmp_path / name)])
    for file in ("runs.jsonl", "steps.jsonl", "report.html"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_a_run_that_never_trained_is_a_row_not_a_crash(tmp_path: Path) -> None:
    log = tmp_path / "solved.jsonl"
    log.write_text('{"task": "a", "pass_rate": 1}\n', encoding="utf-8")
    main(["simulate", "--presets", "", "--outcomes", str(log), *QUICK, "--output", str(tmp_path / "out")])
    runs = lines(tmp_path / "out" / "runs.jsonl")
    assert all(run["trained"] == 0 and "saturated" in str(run["ended"]) for run in runs)


@pytest.mark.parametrize("kinds", [("uniform", "band"), ("uniform", "band", "lze", "thompson", "progress")])
def test_the_table_names_every_scheduler_and_counts_seeds_without_a_value(kinds: tuple[str, ...]) -> None:
    config = SimulationConfig.model_validate(
        {"presets": ("subsets",), "kinds": kinds, "loop": {"steps": 4, "batch": 4}, "target": 0.404}
    )
    summaries = [run.summary for run in simulate_all(config)]
    console = Console(file=io.StringIO(), width=160, record=True)
    console.print(results_table(summaries, "subsets"))
    text = console.export_text()
    assert all(kind in text for kind in kinds)
    reached = sum(s.steps_to_target is not None for s in summaries if s.scheduler == "uniform")
    assert 0 < reached < 3, "the target is meant to be met by some seeds only"
    assert f"({reached} of 3)" in text
    assert "generated / trained" in text


def test_progress_in_a_terminal_counts_a_saturated_run_as_done() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=120)
    with SimulationProgress(2, steps=10, console=console) as progress:
        progress.begin("plain", "[red]", 0)
        progress.begin("other", "[red]", 0)
        assert progress.completed == 10


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--presets", "conflic"], r"no preset 'conflic'\. Did you mean 'conflict'\?"),
        (["--loop.step", "1"], r"unknown key 'loop\.step'\. Did you mean 'steps'\?"),
        (["--seeds", "1,x"], r"'seeds\.1': .*valid integer.* \(got 'x'\)"),
        (["--outcomes", "gone.jsonl"], r"cannot read the outcome log gone\.jsonl: No such file"),
        (["@", "gone.toml"], r"gone\.toml"),
    ],
)
def test_a_mistyped_command_says_what_would_be_right(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["simulate", "--output", str(tmp_path), *words])
    assert re.search(message, capsys.readouterr().err)
