"""What the audit of a run's history accepts and what it does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from snoozing_env.errors import StateError
from snoozing_env.pacing.ledger import Ledger, audit, read_ledger


def finish(id: int, version: int = 0, fate: str = "accepted") -> dict[str, Any]:
    return {"event": "finish", "id": id, "fate": fate, "version": version}


def take(step: int, *ids: int) -> dict[str, Any]:
    return {"event": "take", "step": step, "ids": list(ids)}


def resume(step: int, *ids: int) -> dict[str, Any]:
    return {"event": "resume", "step": step, "ids": list(ids), "next_id": 99}


def test_a_clean_history_has_no_problems():
    events = [
        finish(0),
        finish(1, fate="filtered"),
        finish(2),
        take(0, 0),
        finish(3, 1),
        {"event": "expire", "ids": [2]},
    ]
    assert audit([*events, take(1, 3), {"event": "lose", "id": 4}], bound=1) == []


def test_a_group_trained_twice_is_found():
    assert audit([finish(0), take(0, 0), take(1, 0)], bound=9) == ["group 0 trained at step 0 and at step 1"]


def test_a_group_trained_past_the_bound_is_found():
    assert audit([finish(0, version=1), take(4, 0)], bound=2) == [
        "group 0 of version 1 trained at step 4, bound 2"
    ]


def test_a_group_trained_without_being_accepted_is_found():
    problems = audit([finish(0, fate="filtered"), take(0, 0, 7)], bound=9)
    assert problems == [f"group {id} trained at step 0, but it was not waiting" for id in (0, 7)]


def test_a_group_that_a_resume_forgot_is_found():
    events = [finish(0), finish(1), finish(2), take(0, 0), take(1, 1)]
    assert audit([*events, resume(1, 1, 2)], bound=9) == []
    assert audit([*events, resume(1, 1)], bound=9) == ["group 2 was lost at the resume at step 1"]
    assert audit([*events, resume(1, 2)], bound=9) == ["group 1 was lost at the resume at step 1"]


def test_steps_that_a_resume_undid_may_be_trained_again_and_others_not():
    events = [finish(0), finish(1), take(0, 0), take(1, 1)]
    assert audit([*events, resume(1, 1), take(1, 1)], bound=9) == []
    problems = audit([*events, resume(1, 0, 1)], bound=9)
    assert problems == ["group 0 was trained at step 0 and waits again after the resume at step 1"]


def test_a_torn_last_line_is_left_out_and_does_not_swallow_the_next(tmp_path: Path):
    path = tmp_path / "ledger.jsonl"
    first = Ledger(path)
    first.finish(0, "accepted", 0)
    first.close()
    path.write_bytes(path.read_bytes() + b'{"event": "fin')
    second = Ledger(path)
    second.resume(0, {0: 0}, next_id=1, again=0)
    second.close()
    assert [event["event"] for event in read_ledger(path)] == ["finish", "resume"]


def test_the_version_of_a_group_that_only_the_resume_knows_is_held_against_the_bound():
    restored = {"event": "resume", "step": 1, "ids": [5], "versions": [0], "next_id": 6, "again": 0}
    assert audit([restored, take(1, 5)], bound=1) == []
    assert audit([restored, take(4, 5)], bound=1) == ["group 5 of version 0 trained at step 4, bound 1"]


def test_a_full_disk_is_named():
    ledger = Ledger(Path("/dev/full"))
    with pytest.raises(StateError, match="cannot write the ledger /dev/full: No space left on device; free"):
        ledger.lose(0)
    ledger.close()
