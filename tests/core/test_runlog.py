"""The run log survives crashes, resumes and later versions of itself."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snoozing_env.errors import StateError
from snoozing_env.report.runlog import (
    AlarmRecord,
    EndRecord,
    EvalRecord,
    FallbackRecord,
    Record,
    RunLog,
    RunRecord,
    Sample,
    StepRecord,
    read,
)

RUN = RunRecord(
    name="demo",
    arm="snooze",
    seed=3,
    recipe={"a": {"b": [1, "x"]}},
    versions={"trl": "1.16"},
    n_tasks=9,
    datasets=("d",),
)
FULL_STEP = StepRecord(
    step=7, version=6, seconds=1.5, generated_groups=9, trained_groups=4, replayed_groups=2, generated_tokens=900, trained_tokens=400,
    survival=0.5, asleep_share=0.25, snoozed=1, woken=2, forgotten=1, passes=0.75, reward_mean=0.5,
    pass_rate_histogram=(1, 0, 0, 0, 2, 0, 0, 0, 0, 5), buffers={"replay/held": 4.0}, carried_groups=1, invalid_rollouts=0, lag_mean=0.0, loss=-0.01,
    grad_norm=0.3, clip_fraction=0.01, entropy=0.7, ratio_mean=1.0, logprob_gap=3e-5, ess_token=0.99, ess_sequence=0.8,
    ess_more={"token, clamped": 1.0}, ess_by_lag={"0": 1.0, "2": 0.7}, outside_clip=0.02, ratio_distance={"fresh": 0.0, "replayed": 0.1}, clipped={"replayed": 0.05}, rate_factor=0.9, truncated=0.1, rungs=("widen",),
    goodput={"time/training_s": 0.4, "tokens/trained": 400}, fallback=0, seconds_rollout=1.0, seconds_train=0.4, seconds_sync=0.1, tasks=("k1", "ключ\n"),
)  # fmt: skip
EVAL = EvalRecord(
    step=10, accuracy=0.5, low=0.4, high=0.6, n_tasks=100, n_samples=200, by_domain={"add": 0.5},
    samples=(Sample(prompt="p\n\u2028", completion="c", gold="g", reward=1.0), Sample(prompt="", completion="")),
)  # fmt: skip
FELL = FallbackRecord(step=10, action="fall_back", accuracy=0.4, best=0.5, low=-0.2, high=-0.01)
ALARM = AlarmRecord(step=10, signal="entropy", value=0.01, limit=0.2)
END = EndRecord(reason="all steps done", seconds=12.0)


def write(path: Path, *records: Record) -> Path:
    with RunLog(path) as log:
        for record in records:
            log.append(record)
    return path


def test_every_field_of_every_record_comes_back_as_it_was_written(tmp_path: Path) -> None:
    records = [RUN, FULL_STEP, EVAL, FELL, ALARM, END, StepRecord(step=8)]
    assert all(getattr(FULL_STEP, f.name) is not None for f in fields(FULL_STEP)), (
        "the law covers new fields too"
    )
    assert read(write(tmp_path / "new" / "dir" / "m.jsonl", *records)) == records


@given(
    step=st.integers(0, 10**9),
    loss=st.none() | st.floats(allow_nan=False, allow_infinity=False),
    tasks=st.none() | st.lists(st.text(st.characters(exclude_categories=["Cs"]))).map(tuple),
)
def test_any_finite_step_comes_back(
    tmp_path_factory: pytest.TempPathFactory, step: int, loss: float | None, tasks: tuple[str, ...] | None
) -> None:
    record = StepRecord(step=step, loss=loss, tasks=tasks)
    assert read(write(tmp_path_factory.mktemp("log") / "m.jsonl", record)) == [record]


def test_what_is_not_finite_is_written_as_null_and_never_as_nan(tmp_path: Path) -> None:
    step = StepRecord(
        step=1, loss=float("nan"), grad_norm=float("inf"), entropy=-np.inf, ratio_mean=np.float32("nan")
    )
    path = write(tmp_path / "m.jsonl", step, EvalRecord(step=1, accuracy=0.0, by_domain={"x": float("nan")}))
    text = path.read_text(encoding="utf-8")
    assert "NaN" not in text
    assert "Infinity" not in text
    assert read(path)[0] == StepRecord(step=1)


def test_an_infinite_setting_of_a_recipe_keeps_its_name(tmp_path: Path) -> None:
    path = write(
        tmp_path / "m.jsonl", RunRecord(name="n", arm="a", seed=0, recipe={"snooze_factor": float("inf")})
    )
    first = read(path)[0]
    assert isinstance(first, RunRecord)
    assert first.recipe == {"snooze_factor": "inf"}


def test_numpy_numbers_and_arrays_are_written_as_plain_json(tmp_path: Path) -> None:
    counts = np.arange(10)
    record = StepRecord(step=np.int64(4), loss=np.float32(0.5), pass_rate_histogram=counts)  # type: ignore[arg-type]
    assert read(write(tmp_path / "m.jsonl", record)) == [
        StepRecord(step=4, loss=0.5, pass_rate_histogram=tuple(range(10)))
    ]


def test_a_log_cut_at_any_byte_reads_as_the_records_that_were_whole(tmp_path: Path) -> None:
    path = write(tmp_path / "m.jsonl", END, EvalRecord(step=1, accuracy=0.5), END)
    whole = path.read_bytes()
    ends = [i for i, byte in enumerate(whole) if byte == ord("\n")]
    for cut in range(len(whole) + 1):
        path.write_bytes(whole[:cut])
        assert len(read(path)) == sum(end <= cut for end in ends), f"cut at byte {cut}"


def test_appending_after_a_torn_line_loses_only_that_line(tmp_path: Path) -> None:
    path = write(tmp_path / "m.jsonl", RUN, StepRecord(step=1), StepRecord(step=2))
    path.write_bytes(path.read_bytes()[:-9])
    write(path, StepRecord(step=2), StepRecord(step=3))
    assert read(path) == [RUN, StepRecord(step=1), StepRecord(step=2), StepRecord(step=3)]


def test_a_torn_line_in_the_middle_is_an_error_that_names_file_and_line(tmp_path: Path) -> None:
    path = write(tmp_path / "m.jsonl", RUN, StepRecord(step=1), StepRecord(step=2))
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([lines[0], lines[1][:20], *lines[2:]]))
    with pytest.raises(StateError, match=r"m\.jsonl line 2 is not JSON .* only the last line may be torn"):
        read(path)


def test_resuming_drops_what_came_after_the_checkpoint_and_keeps_the_rest_to_the_byte(tmp_path: Path) -> None:
    steps = [StepRecord(step=i, loss=i / 3) for i in range(1, 7)]
    evals = [EvalRecord(step=i, accuracy=0.5) for i in (0, 4, 5)]
    path = write(tmp_path / "m.jsonl", RUN, evals[0], *steps[:4], evals[1], steps[4], evals[2], steps[5], END)
    before = path.read_bytes().split(b"\n")
    path.write_bytes(path.read_bytes() + b'{"event": "step", "st')
    with RunLog(path) as log:
        assert log.truncate_after(4) == 4
        assert path.read_bytes().split(b"\n")[:-1] == before[:7]
        log.append(steps[4])
    assert read(path) == [RUN, evals[0], *steps[:4], evals[1], steps[4]]
    assert list(tmp_path.iterdir()) == [path], "no temporary file is left"


def test_what_the_fallback_decided_at_the_checkpoints_own_step_is_decided_again(tmp_path: Path) -> None:
    decisions = [FallbackRecord(step=s, action="fall_back", accuracy=0.4, best=0.5) for s in (2, 4, 6)]
    evals = [EvalRecord(step=s, accuracy=0.4) for s in (2, 4)]
    with RunLog(write(tmp_path / "m.jsonl", RUN, evals[0], decisions[0], evals[1], *decisions[1:])) as log:
        log.truncate_after(4)
        assert read(log.path) == [RUN, evals[0], decisions[0], evals[1]]


def test_a_field_of_a_later_version_is_ignored_but_survives_a_resume(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    path.write_text('{"event": "step", "step": 1, "from_the_future": {"x": 1}}\n', encoding="utf-8")
    assert read(path) == [StepRecord(step=1)]
    with RunLog(path) as log:
        log.truncate_after(1)
    assert "from_the_future" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ({"event": "stp", "step": 1}, r"line 1: unknown event 'stp'; wanted one of run, step, eval, fallback, alarm, notice, end\. Did you mean 'step'\?"),
        ({"step": 1}, "line 1: unknown event None; wanted one of run"),
        ({"event": ["step"], "step": 1}, "unknown event"),
        ({"event": "step"}, "line 1: not a complete 'step' record: .*step"),
        ({"event": "step", "step": "one"}, "line 1: step is 'one'; wanted int"),
        ({"event": "step", "step": True}, "line 1: step is True; wanted int"),
        ({"event": "step", "step": 1, "loss": "low"}, r"line 1: loss is 'low'; wanted float \| None"),
        ({"event": "step", "step": 1, "tasks": "k"}, "line 1: tasks is 'k'; wanted tuple"),
        ({"event": "eval", "step": 1, "accuracy": 1.5}, r"line 1: .* accuracy 1\.5; wanted a number in \[0, 1\]"),
        ({"event": "eval", "step": 1, "accuracy": 1, "samples": ["x"]}, "samples holds 'x'; wanted objects with prompt"),
        (["event"], "line 1 holds list; wanted one JSON object per line"),
    ],
)  # fmt: skip
def test_a_wrong_line_says_where_it_is_and_what_was_wanted(
    line: object, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "m.jsonl"
    path.write_text(json.dumps(line) + "\n", encoding="utf-8")
    with pytest.raises(StateError, match=message):
        read(path)


def test_an_evaluation_without_a_number_is_refused_at_birth() -> None:
    with pytest.raises(ValueError, match=r"eval at step 3 has accuracy nan; wanted a number in \[0, 1\]"):
        EvalRecord(step=3, accuracy=float("nan"))


def test_a_missing_log_and_a_closed_one_say_so(tmp_path: Path) -> None:
    with pytest.raises(StateError, match=r"cannot read the run log .*none\.jsonl: No such file"):
        read(tmp_path / "none.jsonl")
    log = RunLog(tmp_path / "m.jsonl")
    log.close()
    with pytest.raises(StateError, match="is closed; open a new RunLog"):
        log.append(END)


def test_a_full_disk_is_named_with_what_to_do() -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("needs /dev/full, a device that is always out of space")
    log = RunLog(full)
    with pytest.raises(
        StateError, match=r"cannot append to /dev/full: No space left on device; free some space"
    ):
        log.append(END)
    log.close()


def test_a_reader_of_a_growing_log_never_sees_half_a_record(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    with RunLog(path, fsync=True) as log:
        for step in range(5):
            log.append(StepRecord(step=step, tasks=("k" * 100_000,)))
            assert len(read(path)) == step + 1
            assert path.read_bytes().endswith(b"\n")
