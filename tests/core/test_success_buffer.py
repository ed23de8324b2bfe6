"""Rare successes are kept, looked at again, and let go."""

from __future__ import annotations

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


def accept(success: Success) -> bool:
    return True


def tokens(taken: list[Success]) -> list[int]:
    return [s.trajectory.completion_ids[0] for s in taken]


def test_only_real_successes_of_hard_tasks_are_kept_and_no_two_alike():
    buffer = SuccessBuffer(SuccessConfig())
    rolled = [trajectory(1, 1.0), trajectory(1, 1.0), trajectory(2, 0.5), trajectory(3, 1.0, valid=False)]
    assert buffer.put(group("hard", *rolled), pass_rate=0.1) == 1
    assert buffer.put(group("easy", trajectory(4, 1.0)), pass_rate=0.9) == 0
    assert tokens(buffer.take(9, version=0, verify=accept)) == [1]


def test_the_quota_of_a_task_keeps_the_newest():
    buffer = SuccessBuffer(SuccessConfig(per_task=2))
    for token in range(5):
        buffer.put(group("t", trajectory(token, 1.0)), pass_rate=0.1)
    assert {s.trajectory.completion_ids[0] for s in buffer.entries} == {3, 4}


def test_the_hardest_task_comes_first_and_each_task_once_in_a_step():
    buffer = SuccessBuffer(SuccessConfig())
    for key, rate in (("b", 0.2), ("a", 0.01), ("c", 0.1)):
        buffer.put(group(key, trajectory(ord(key), 1.0), trajectory(ord(key) + 100, 1.0)), pass_rate=rate)
    assert [s.key for s in buffer.take(2, version=0, verify=accept)] == ["a", "c"]
    assert len(buffer.take(9, version=0, verify=accept)) == 3


def test_the_easiest_tasks_leave_a_full_buffer():
    buffer = SuccessBuffer(SuccessConfig(tasks=2))
    for key, rate in (("a", 0.01), ("b", 0.2), ("c", 0.1)):
        buffer.put(group(key, trajectory(1, 1.0)), pass_rate=rate)
    assert {s.key for s in buffer.entries} == {"a", "c"}


def test_what_the_grader_no_longer_accepts_is_dropped_and_never_handed_out():
    buffer = SuccessBuffer(SuccessConfig())
    buffer.put(group("t", trajectory(1, 1.0), trajectory(2, 1.0)), pass_rate=0.1)
    taken = buffer.take(1, version=0, verify=lambda s: s.trajectory.completion_ids != (1,))
    assert tokens(taken) == [2]
    assert buffer.dropped == 1
    assert len(buffer) == 1


def test_a_grader_that_cannot_say_costs_no_entry():
    buffer = SuccessBuffer(SuccessConfig())
    buffer.put(group("t", trajectory(1, 1.0)), pass_rate=0.1)
    assert buffer.take(1, version=0, verify=lambda s: None) == []
    assert len(buffer) == 1


def test_importance_use_ages_out_and_an_anchor_does_not():
    for use, left in (("importance", 0), ("anchor", 1)):
        buffer = SuccessBuffer(SuccessConfig(use=use, max_staleness=5))  # type: ignore[arg-type]
        buffer.put(group("t", trajectory(1, 1.0, version=0)), pass_rate=0.1)
        assert len(buffer.take(1, version=5, verify=accept)) == 1
        assert len(buffer.take(1, version=6, verify=accept)) == left


def test_a_task_that_is_solved_in_real_rollouts_retires():
    buffer = SuccessBuffer(SuccessConfig(hard_below=0.25))
    buffer.put(group("t", trajectory(1, 1.0)), pass_rate=0.1)
    buffer.refresh("t", 0.6)
    assert len(buffer) == 0
    assert buffer.retired == 1


def test_entries_are_used_in_turn_and_come_back_in_the_same_order():
    buffer = SuccessBuffer(SuccessConfig())
    buffer.put(group("t", trajectory(1, 1.0), trajectory(2, 1.0)), pass_rate=0.1)
    buffer.take(1, version=0, verify=accept)
    twin = SuccessBuffer(SuccessConfig())
    twin.restore(buffer.state(), buffer.entries)
    assert twin.entries == buffer.entries
    assert (
        tokens(twin.take(1, version=0, verify=accept))
        == tokens(buffer.take(1, version=0, verify=accept))
        == [2]
    )
