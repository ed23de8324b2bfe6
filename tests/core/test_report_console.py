"""The terminal: the same figures as the page, and quiet where nobody watches."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from snoozing_env.report.compare import cells, headline, load_runs
from snoozing_env.report.console import TrainProgress, compare_table
from snoozing_env.report.runlog import EndRecord, EvalRecord, RunLog, RunRecord, StepRecord


class Clock:
    """A clock that moves when told."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def _log(path: Path, arm: str, generated: int) -> Path:
    with RunLog(path / arm / "metrics.jsonl") as log:
        log.append(RunRecord(name="demo", arm=arm, seed=0))
        log.append(EvalRecord(step=0, accuracy=0.2))
        log.append(
            StepRecord(
                step=1, seconds=9.0, generated_groups=generated, trained_groups=16, generated_tokens=4321
            )
        )
        log.append(EvalRecord(step=1, accuracy=0.625, low=0.5, high=0.75))
        log.append(EndRecord(reason="all steps done", seconds=75.0))
    return path / arm


@pytest.mark.parametrize("width", [80, 200])
@pytest.mark.parametrize("n_runs", [1, 2, 6])
def test_the_table_shows_every_cell_of_every_run(n_runs: int, width: int, tmp_path: Path) -> None:
    paths = [_log(tmp_path, f"a{i}", 32 // (i + 1)) for i in range(n_runs)]
    out = io.StringIO()
    Console(file=out, width=width).print(compare_table(paths))
    runs = load_runs(paths)
    text = out.getvalue()
    if n_runs <= 4 or width == 200:
        for run in runs:
            assert all(cell in text for cell in cells(headline(run, runs)) if cell != "–")
    assert max(map(len, text.splitlines())) <= width


def test_an_arm_named_like_markup_is_shown_by_its_name(tmp_path: Path) -> None:
    out = io.StringIO()
    Console(file=out, width=120).print(compare_table([_log(tmp_path, "[red]x[", 4)]))
    assert "[red]x[" in out.getvalue()


def _plain(total: int, clock: Clock, first_step: int = 0) -> tuple[TrainProgress, io.StringIO]:
    out = io.StringIO()
    console = Console(file=out, force_terminal=False, width=60)
    return TrainProgress(total, title="t", console=console, clock=clock, first_step=first_step), out


def test_without_a_terminal_a_line_appears_every_ten_steps_and_at_the_end() -> None:
    clock = Clock()
    progress, out = _plain(24, clock)
    with progress:
        for step in range(1, 25):
            clock.now += 0.5
            progress.update(StepRecord(step=step, generated_groups=3, trained_groups=2, reward_mean=0.5))
    lines = out.getvalue().splitlines()
    assert [line.split(" · ")[0] for line in lines] == ["t: step 10/24", "t: step 20/24", "t: step 24/24"]
    assert (
        lines[1] == "t: step 20/24 · speed 2.00 steps/s · left 2.0 s · reward 50 % · generated/trained 60/40"
    )
    assert "\x1b" not in out.getvalue(), "no control codes in a file"


def test_without_a_terminal_slow_steps_are_reported_every_fifteen_seconds() -> None:
    clock = Clock()
    progress, out = _plain(100, clock)
    with progress:
        for step in range(1, 7):
            clock.now += 6.0
            progress.update(StepRecord(step=step))
    assert [line.split(" · ")[0] for line in out.getvalue().splitlines()] == [
        "t: step 3/100",
        "t: step 6/100",
    ]


def test_an_interrupted_run_still_prints_where_it_stood() -> None:
    progress, out = _plain(100, Clock())
    with pytest.raises(KeyboardInterrupt), progress:  # noqa: PT012  # the interrupt comes after a step
        progress.update(StepRecord(step=2))
        raise KeyboardInterrupt
    assert out.getvalue().startswith("t: step 2/100")


def test_a_resumed_run_counts_only_its_own_steps_for_the_time_left() -> None:
    clock = Clock()
    progress, out = _plain(60, clock, first_step=40)
    with progress:
        for step in range(41, 51):
            clock.now += 1.0
            progress.update(StepRecord(step=step))
    assert "step 50/60 · speed 1.00 steps/s · left 10 s" in out.getvalue()


def test_an_evaluation_is_always_told() -> None:
    progress, out = _plain(60, Clock())
    with progress:
        progress.eval(EvalRecord(step=5, accuracy=0.5, low=0.4, high=0.6))
    assert out.getvalue() == "t: step 5/60 · held-out 50.0 % [40.0, 60.0]\n"


def test_a_terminal_sees_the_state_after_every_step() -> None:
    out = io.StringIO()
    clock = Clock()
    console = Console(file=out, force_terminal=True, width=150, color_system=None)
    with TrainProgress(3, title="snooze", console=console, clock=clock) as progress:
        clock.now += 2.0
        progress.update(
            StepRecord(
                step=1,
                survival=0.8,
                asleep_share=0.31,
                reward_mean=0.4,
                generated_groups=20,
                trained_groups=16,
            )
        )
        first = out.getvalue()
        progress.eval(EvalRecord(step=1, accuracy=0.612))
    assert "step 1/3" in first
    for fact in (
        "survival 80 %",
        "asleep 31 %",
        "reward 40 %",
        "generated/trained 20/16",
        "speed 2.0 s/step",
        "left 4.0 s",
    ):
        assert fact in first
    assert "held-out 61.2 % at step 1" in out.getvalue()


@pytest.mark.parametrize(("total", "first"), [(0, 0), (5, 6), (5, -1)])
def test_an_impossible_length_is_refused(total: int, first: int) -> None:
    with pytest.raises(ValueError, match=f"got {total} steps from step {first}; wanted"):
        TrainProgress(total, first_step=first)
