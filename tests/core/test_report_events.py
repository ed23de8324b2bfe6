"""What happened to a run besides its steps is on its page."""

from __future__ import annotations

from pathlib import Path

from snoozing_env.report.html import write_report
from snoozing_env.report.runlog import (
    AlarmRecord,
    EndRecord,
    NoticeRecord,
    RunLog,
    RunRecord,
    StepRecord,
    read,
)


def test_alarms_and_warnings_are_kept_and_shown(tmp_path: Path):
    path = tmp_path / "run" / "metrics.jsonl"
    with RunLog(path) as log:
        log.append(RunRecord(name="r", arm="a", seed=0))
        log.append(StepRecord(step=1))
        log.append(AlarmRecord(step=1, signal="entropy", value=0.1, limit=0.2))
        log.append(NoticeRecord(step=1, text="conflict: 'answer' came back <worse>"))
        log.append(EndRecord(reason="all steps done"))
    kinds = [type(record).__name__ for record in read(path)]
    assert kinds == ["RunRecord", "StepRecord", "AlarmRecord", "NoticeRecord", "EndRecord"]
    page = write_report([path.parent], tmp_path / "report.html").read_text()
    assert "entropy 0.1 past 0.2 at step 1" in page
    assert "step 1: conflict: &#x27;answer&#x27; came back &lt;worse&gt;" in page


def test_a_resume_forgets_what_was_warned_of_after_its_checkpoint(tmp_path: Path):
    path = tmp_path / "metrics.jsonl"
    with RunLog(path) as log:
        for step in (1, 2):
            log.append(NoticeRecord(step=step, text=f"at {step}"))
        log.truncate_after(1)
    assert [record.text for record in read(path) if isinstance(record, NoticeRecord)] == ["at 1"]
