"""Rare successes are kept, looked at again, and let go."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from snoozing_env.buffers.success import Success, SuccessBuffer, SuccessConfig
from snoozing_env.types import Group, GroupOutcome, Trajectory


def trajectory(token: int, reward: float, version: int = 0, valid: bool = True) -> Trajectory:
    return Trajectory(
        prompt_ids=(1,),
        completion_ids=(token,),
        logprobs=(-1.0,),
        mask=(1,),
        reward=reward,
        version=version,
        valid=valid,
    )


def group(key: str, *trajectories: Trajectory) -> Group:
    outcome = GroupOutcome(task=0, rewards_G=np.array([t.reward for t in trajectories]))
    return Group(id=0, key=key, outcome=outcome, trajectories=trajectories)


def used(buffer: SuccessBuffer, n: int = 9, version: int = 0) -> list[Success]:
    """What the trainer would get of a grader that accepts everything."""
    tasks = buffer.next_tasks(n, version=version)
    firsts = [buffer.candidates(key, version=version)[:1] for key in tasks]
    return [s for found in firsts for s in found if buffer.verified(s, True)]


def tokens(taken: list[Success]) -> list[int]:
    return [s.trajectory.completion_ids[0] for s in taken]


def test_only_real_successes_of_hard_tasks_are_kept_and_no_two_alike():
    buffer = SuccessBuffer(SuccessConfig())
    rolled = [trajectory(1, 1.0), trajectory(1, 1.0), trajectory(2, 0.5), trajectory(3, 1.0, valid=False)]
    assert buffer.put(group("hard", *rolled), pass_rate=0.1) == 1
    assert buffer.put(group("easy", trajectory(4, 1.0)), pass_rate=0.9) == 0
    assert tokens(used(buffer)) == [1]


def test_the_quota_of_a_task_keeps_the_newest():
    buffer = SuccessBuffer(SuccessConfig(per_task=2))
    for token in range(5):
        buffer.put(group("t", trajectory(token, 1.0)), pass_rate=0.1)
    assert {s.trajectory.completion_ids[0] for s in buffer.entries} == {3, 4}


def test_the_hardest_tasks_come_first_and_every_task_has_its_turn():
    buffer = SuccessBuffer(SuccessConfig())
    for key, rate in (("b", 0.2), ("a", 0.01), ("c", 0.1)):
        buffer.put(group(key, trajectory(ord(key), 1.0), trajectory(ord(key) + 100, 1.0)), pass_rate=rate)
    assert buffer.next_tasks(2, version=0) == ["a", "c"]
    assert buffer.next_tasks(2, version=0) == ["b", "a"]
    assert len(buffer.next_tasks(9, version=0)) == 3


def test_the_easiest_tasks_leave_a_full_buffer():
    buffer = SuccessBuffer(SuccessConfig(tasks=2))
    for key, rate in (("a", 0.01), ("b", 0.2), ("c", 0.1)):
        buffer.put(group(key, trajectory(1, 1.0)), pass_rate=rate)
    assert {s.key for s in buffer.entries} == {"a", "c"}


def test_what_the_grader_no_longer_accepts_is_dropped_and_the_next_one_may_serve():
    buffer = SuccessBuffer(SuccessConfig())
    buffer.put(group("t", trajectory(1, 1.0), trajectory(2, 1.0)), pass_rate=0.1)
    first, second = buffer.candidates("t", version=0)
    assert not buffer.verified(first, False)
    assert not buffer.verified(first, True), "what was dropped cannot come back by a later verdict"
    assert buffer.verified(second, True)
    assert (buffer.dropped, len(buffer)) == (1, 1)


def test_a_grader_that_cannot_say_costs_no_entry():
    buffer = SuccessBuffer(SuccessConfig())
    buffer.put(group("t", trajectory(1, 1.0)), pass_rate=0.1)
    assert not buffer.verified(buffer.candidates("t", version=0)[0], None)
    assert len(buffer) == 1


def test_importance_use_ages_out_and_an_anchor_does_not():
    for use, left in (("importance", 0), ("anchor", 1)):
        buffer = SuccessBuffer(SuccessConfig(use=use, max_staleness=5))  # type: ignore[arg-type]
        buffer.put(group("t", trajectory(1, 1.0, version=0)), pass_rate=0.1)
        assert len(used(buffer, version=5)) == 1
        assert len(buffer.candidates("t", version=6)) == left
        assert len(buffer.next_tasks(9, version=6)) == left


def test_the_newest_of_equal_completions_is_kept_with_its_uses():
    buffer = SuccessBuffer(SuccessConfig())
    buffer.put(group("t", trajectory(1, 1.0, version=0)), pass_rate=0.1)
    used(buffer)
    assert buffer.put(group("t", trajectory(1, 1.0, version=4)), pass_rate=0.1) == 0
    (entry,) = buffer.entries
    assert (entry.trajectory.version, entry.uses) == (4, 1)


def test_a_stored_success_that_joined_a_group_is_no_new_success():
    buffer = SuccessBuffer(SuccessConfig())
    stored = replace(trajectory(1, 1.0), stored=True)
    assert buffer.put(group("t", stored, trajectory(2, 0.0)), pass_rate=0.1) == 0
    assert len(buffer) == 0


def test_a_task_that_is_solved_in_real_rollouts_retires():
    buffer = SuccessBuffer(SuccessConfig(hard_below=0.25))
    buffer.put(group("t", trajectory(1, 1.0)), pass_rate=0.1)
    buffer.refresh("t", 0.6)
    assert len(buffer) == 0
    assert buffer.retired == 1


def test_entries_are_used_in_turn_and_come_back_in_the_same_order():
    buffer = SuccessBuffer(SuccessConfig())
    buffer.put(group("t", trajectory(1, 1.0), trajectory(2, 1.0)), pass_rate=0.1)
    used(buffer, 1)
    twin = SuccessBuffer(SuccessConfig())
    twin.restore(buffer.state(), buffer.groups)
    assert twin.entries == buffer.entries
    assert tokens(used(twin, 1)) == tokens(used(buffer, 1)) == [2]
