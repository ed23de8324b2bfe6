"""Goodput in the report: the timelines hold exactly the logged seconds, the tables the logged shares."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from snoozing_env.gates import GateConfig
from snoozing_env.goodput import Account
from snoozing_env.report.compare import Run, load_runs
from snoozing_env.report.console import goodput_table, run_tables
from snoozing_env.report.goodput import lines, totals
from snoozing_env.report.html import write_report
from snoozing_env.report.runlog import EndRecord, RunLog, RunRecord, StepRecord
from snoozing_env.report.svg import Axis
from snoozing_env.report.svg_lanes import LANE, MAX_BINS, Band, Lane, Steps, stacked_lanes
from snoozing_env.report.timeline import backdated, ends, engine_activities, trainer_activities
from snoozing_env.types import Group, GroupOutcome
from tests.core.test_report import Reader

MIXED, MAX = (0.0, 1.0), (1.0, 1.0)


def logged_run(folder: Path, *, arm: str = "snooze", steps: int = 6, waits: float = 1.0) -> Path:
    """Each step: weights .25 s, generating while the trainer waits, two groups of which one is all correct, training
    1 s; an evaluation of 2 s before the first."""
    now = [0.0]
    account = Account(GateConfig(), lambda: now[0])

    def spend(seconds: float) -> None:
        now[0] += seconds

    with RunLog(folder / arm / "metrics.jsonl") as log:
        log.append(RunRecord(name="demo", arm=arm, seed=0))
        for step in range(1, steps + 1):
            _step(account, spend, step, waits)
            log.append(StepRecord(step=step, seconds=now[0], goodput=account.step(close=True)))
        log.append(EndRecord(reason="all steps done", seconds=now[0]))
    return folder / arm


def _step(account: Account, spend: Callable[[float], None], step: int, waits: float) -> None:
    with account.trainer.during("syncing"):
        account.engine.time.pause(1.0)
        spend(0.25)
        account.engine.time.pause(-1.0)
    if step == 1:
        with account.trainer.during("evaluating"):
            account.engine.time.evaluate(True)
            spend(2.0)
            account.engine.time.evaluate(False)
    account.trainer.enter("waiting")
    pair = [_group(2 * step, MIXED), _group(2 * step + 1, MAX)]
    for one in pair:
        account.engine.start(one.id)
    spend(waits)
    for one, fate in zip(pair, ("accepted", "filtered"), strict=True):
        account.engine.land(one.id)
        account.engine.finish(one, fate)  # type: ignore[arg-type]
    account.engine.train(pair[:1])
    account.trainer.enter("training")
    spend(1.0)


def _group(id: int, rewards: Sequence[float]) -> Group:
    outcome = GroupOutcome(task=0, rewards_G=np.array(rewards), tokens=50)
    return Group(id=id, key="t", outcome=outcome, trajectories=())


def loaded(*folders: Path) -> list[Run]:
    return load_runs(folders)


def drawn_seconds(page: str, activity: str, *, width: float, seconds: float) -> float:
    """Area of an activity in all lanes, as seconds of one lane."""
    area = 0.0
    for path in re.findall(rf'<path class="share {activity}" d="([^"]+)"', page):
        for x0, low, high, x1 in re.findall(r"M([\d.]+) ([\d.]+)V([\d.]+)H([\d.]+)V[\d.]+Z", path):
            area += (float(x1) - float(x0)) * (float(low) - float(high))
    return area / LANE / width * seconds


def test_both_sides_activities_add_up_to_each_steps_seconds(tmp_path: Path) -> None:
    (run,) = loaded(logged_run(tmp_path))
    each = np.diff(np.concatenate(([0.0], ends(run))))
    assert each == pytest.approx([4.25, *[2.25] * 5])
    assert sum(trainer_activities(run).values()) == pytest.approx(each)
    assert sum(engine_activities(run).values()) == pytest.approx(each)
    engine = {name: float(v.sum()) for name, v in engine_activities(run).items()}
    assert engine == pytest.approx(
        {"generating": 3.0, "lost": 3.0, "syncing": 1.5, "other": 2.0, "waiting": 6.0}
    )


@pytest.mark.parametrize("steps", [6, 5 * MAX_BINS])
def test_a_timeline_shows_exactly_the_seconds_of_the_log_binned_or_not(tmp_path: Path, steps: int) -> None:
    folder = logged_run(tmp_path, steps=steps)
    (run,) = loaded(folder)
    page = write_report([folder], tmp_path / "r.html").read_text(encoding="utf-8")
    longest = float(ends(run)[-1])
    trainer, engine = trainer_activities(run), engine_activities(run)
    for name in trainer | engine:
        logged = sum(float(side[name].sum()) for side in (trainer, engine) if name in side)
        shown = drawn_seconds(page, name, width=920 - 46 - 14, seconds=longest)
        assert shown == pytest.approx(logged, rel=0.02, abs=1e-3 * longest)
    assert page.count("<path class=") < 20, "thousands of steps make no more shapes"


def test_the_page_stays_small_however_long_the_run() -> None:
    def size(n: int) -> int:
        whole = [2.0] * n
        lanes = [Lane(name="a", bands=[Band(name="b", colour="c", spent=[1.0] * n)])]
        steps = Steps(numbers=range(1, n + 1), ends=np.cumsum(whole).tolist())
        return len(stacked_lanes(steps, lanes, x=Axis(label="s", show=str), label="x"))

    assert size(10_000) < 1.3 * size(MAX_BINS)


def test_a_bin_says_its_steps_and_what_each_side_did(tmp_path: Path) -> None:
    page = write_report([logged_run(tmp_path)], tmp_path / "r.html").read_text(encoding="utf-8")
    assert "<title>step 2, wall time (s) 6.5\ntrainer: training 44%, syncing 11%, waiting 44%\n" in page
    assert "engine: generating 22%, lost 22%, syncing 11%, waiting 44%</title>" in page
    long = write_report([logged_run(tmp_path, arm="long", steps=1000)], tmp_path / "l.html")
    assert re.search(r"<title>steps \d+ to \d+, wall time \(min\)", long.read_text(encoding="utf-8"))


def test_arms_share_one_time_axis_one_legend_and_tables_with_a_column_each(tmp_path: Path) -> None:
    folders = [logged_run(tmp_path, arm="plain", waits=3.0), logged_run(tmp_path, arm="snooze")]
    reader = Reader(page := write_report(folders, tmp_path / "r.html").read_text(encoding="utf-8"))
    labels = [a["aria-label"] or "" for a in reader.named("svg") if "Timeline" in (a.get("aria-label") or "")]
    assert [label.split(". ")[0] for label in labels] == [
        "Timeline of trainer and engine, plain",
        "Timeline of trainer and engine, snooze",
    ]
    assert page.count('<i class="do generating">') == 1
    rows = {tuple(row) for row in reader.rows}
    for row in (
        ("goodput", "plain", "snooze"),
        ("waiting for rollouts", "65.5 %", "38.7 %"),
        ("generating, lost to filters", "32.7 %", "19.4 %"),
        ("waiting for the trainer", "21.8 %", "38.7 %"),
        ("generated", "600", "600"),
        ("lost to filters", "50 %", "50 %"),
        ("· all correct", "50 %", "50 %"),
    ):
        assert row in rows
    assert not any(row[0] == "failed" for row in rows), "what never happened has no row"


def test_a_loss_is_drawn_where_its_time_was_spent() -> None:
    """Groups generated in the first two steps expire in the third, which generates nothing."""
    assert backdated(np.array([0.0, 0.0, 5.0]), np.array([4.0, 3.0, 0.0])).tolist() == [2.0, 3.0, 0.0]


@given(st.lists(st.tuples(st.floats(0, 9), st.floats(0, 1)), min_size=1, max_size=20))
def test_backdating_keeps_the_sum_and_never_exceeds_what_was_generated(
    steps: list[tuple[float, float]],
) -> None:
    generating, lost, open_seconds = [], [], 0.0
    for seconds, share in steps:  # a loss comes after the time that it is of
        open_seconds += seconds
        generating.append(seconds)
        lost.append(open_seconds * share)
        open_seconds -= lost[-1]
    placed = backdated(np.array(lost), np.array(generating))
    assert placed.sum() == pytest.approx(sum(lost))
    assert (placed <= np.array(generating) + 1e-9).all()


def test_logs_from_before_the_account_keep_their_time_split_and_have_no_timeline(tmp_path: Path) -> None:
    with RunLog(tmp_path / "old" / "metrics.jsonl") as log:
        log.append(RunRecord(name="demo", arm="old", seed=0))
        log.append(StepRecord(step=1, seconds=9.0, seconds_rollout=4.0, seconds_train=2.0, seconds_sync=1.0))
    old, new = tmp_path / "old", logged_run(tmp_path)
    alone = write_report([old], tmp_path / "r.html").read_text(encoding="utf-8")
    assert "Time split" in alone
    assert "Where time and tokens went" not in alone
    assert goodput_table([old]) is None
    assert totals(loaded(old)[0]) == {}
    both = write_report([old, new], tmp_path / "b.html").read_text(encoding="utf-8")
    assert "Time split" in both
    assert "Timeline of trainer and engine, snooze" in both
    assert "Timeline of trainer and engine, old" not in both
    cells = {line.title: line.cells for line in lines(loaded(old, new))}
    assert cells["goodput, time"] == ("–", "29 %")


@pytest.mark.parametrize("n_runs", [1, 2, 6])
def test_the_terminal_shows_goodput_waits_and_losses_of_every_run(tmp_path: Path, n_runs: int) -> None:
    folders = [logged_run(tmp_path, arm=f"a{i}", waits=1.0 + i) for i in range(n_runs)]
    out = io.StringIO()
    Console(file=out, width=200).print(*run_tables(folders), sep="\n")
    text = out.getvalue()
    for line in lines(loaded(*folders)):
        shown = line.title in (
            "goodput, time",
            "goodput, tokens",
            "trainer, waiting for rollouts",
            "engine, waiting for the trainer",
            "tokens, lost to filters",
        )
        assert (line.title in text) == shown
        if shown:
            assert all(cell in text for cell in line.cells)
