"""What is in the journal survives a kill at any byte."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from snoozing_env.buffers.journal import Journal, merge_journals, read_journal
from snoozing_env.errors import StateError
from snoozing_env.types import Group, GroupOutcome, Trajectory

INDEX = {f"task-{i}": i for i in range(10)}


def group(id: int) -> Group:
    trajectories = tuple(
        Trajectory(
            prompt_ids=(1, 2),
            completion_ids=(3, id),
            logprobs=(-0.1 * id, -1 / 3),
            mask=(1, 1),
            reward=r,
            version=id,
        )
        for r in (0.0, 1.0)
    )
    outcome = GroupOutcome(task=id, rewards_G=np.array([0.0, 1.0]), version=id, duration_s=0.1 * id, tokens=4)
    return Group(id=id, key=f"task-{id}", outcome=outcome, trajectories=trajectories, prompt="p", gold="g")


@pytest.fixture
def written(tmp_path: Path) -> Path:
    journal = Journal(tmp_path / "deep" / "journal")
    for id in range(3):
        journal.append(group(id), "filtered" if id == 1 else "accepted")
    journal.close()
    return journal.path


def test_groups_come_back_whole_in_the_order_in_which_they_finished(written: Path):
    entries = list(read_journal(written, INDEX))
    assert [e.id for e in entries] == [0, 1, 2]
    assert [e.fate for e in entries] == ["accepted", "filtered", "accepted"]
    whole = entries[2].group
    assert whole is not None
    assert whole.trajectories == group(2).trajectories
    assert entries[1].group is None
    assert entries[1].outcome.rewards_G.tolist() == [0.0, 1.0]
    assert entries[1].outcome.duration_s == 0.1


def test_a_stored_success_reaches_the_trainer_again_and_teaches_the_scheduler_nothing(tmp_path: Path):
    plain = group(3)
    lent = replace(plain.trajectories[1], stored=True, anchor=0.5)
    joined = replace(plain, trajectories=(plain.trajectories[0], lent))
    journal = Journal(tmp_path / "journal")
    journal.append(joined, "accepted")
    journal.close()
    (entry,) = read_journal(journal.path, INDEX)
    assert entry.outcome.rewards_G.tolist() == [0.0, 0.0], "the policy did not solve it"
    assert entry.group is not None
    assert entry.group.trajectories == joined.trajectories
    assert entry.group.outcome.rewards_G.tolist() == [0.0, 1.0]


def test_a_journal_cut_at_any_byte_gives_the_frames_before_the_cut(written: Path):
    payload = written.read_bytes()
    counts = []
    for cut in range(0, len(payload) + 1, 97):
        written.write_bytes(payload[:cut])
        counts.append(len(list(read_journal(written, INDEX))))
    assert counts == sorted(counts)
    assert set(counts) >= {0, 1, 2}


def test_a_damaged_frame_is_not_believed(written: Path):
    payload = bytearray(written.read_bytes())
    payload[60] ^= 0xFF
    written.write_bytes(bytes(payload))
    assert list(read_journal(written, INDEX)) == []


def test_tasks_that_are_gone_are_left_out(written: Path):
    assert [e.id for e in read_journal(written, {"task-2": 0})] == [2]
    assert next(iter(read_journal(written, {"task-2": 0}))).outcome.task == 0


def test_no_journal_is_an_empty_one(tmp_path: Path):
    assert list(read_journal(tmp_path / "absent", INDEX)) == []


def test_a_full_disk_is_named():
    journal = Journal(Path("/dev/full"))
    with pytest.raises(
        StateError, match="cannot write the journal /dev/full: No space left on device; free some space"
    ):
        journal.append(group(0), "accepted")
    journal.close()


def ids_of(path: Path) -> list[int]:
    return [entry.id for entry in read_journal(path, INDEX)]


def test_merged_journals_hold_every_whole_frame_once_and_nothing_hides_behind_a_torn_one(tmp_path: Path):
    first, second = tmp_path / "00000002.frames", tmp_path / "00000004.frames"
    for path, ids in ((first, (0, 1)), (second, (1, 2, 3))):
        journal = Journal(path)
        for id in ids:
            journal.append(group(id), "accepted")
        journal.close()
    first.write_bytes(first.read_bytes() + first.read_bytes()[:50])  # a kill cut the last frame off
    merge_journals([first, second], first)
    assert ids_of(first) == [0, 1, 2, 3]
    assert not second.exists(), "or a resume after the next checkpoint would read it again"
    journal = Journal(first)
    journal.append(group(4), "accepted")
    journal.close()
    assert ids_of(first) == [0, 1, 2, 3, 4]
