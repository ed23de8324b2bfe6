"""What was paid for is used again, within its bounds."""

from __future__ import annotations

import json

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from snoozing_env.buffers.replay import ReplayBuffer, ReplayConfig
from snoozing_env.types import Group, GroupOutcome


def group(id: int, version: int = 0) -> Group:
    outcome = GroupOutcome(task=id, rewards_G=np.array([0.0, 1.0]), version=version)
    return Group(id=id, key=f"t{id}", outcome=outcome, trajectories=())


def filled(n: int, **config: object) -> ReplayBuffer:
    buffer = ReplayBuffer(ReplayConfig(**config), seed=0)  # type: ignore[arg-type]
    buffer.put(group(i) for i in range(n))
    return buffer


def test_half_of_a_batch_is_replayed_and_a_short_buffer_means_more_fresh_groups():
    assert filled(100).available(16, version=0) == 8
    assert filled(3).available(16, version=0) == 3
    assert filled(100, fresh=1.0).available(16, version=0) == 0
    assert filled(100).available(5, version=0) == 2, "the fresh share is rounded up"


def test_the_oldest_leave_first():
    assert [g.id for g in filled(7, capacity=3).groups] == [4, 5, 6]


def test_a_step_gets_distinct_groups_and_none_that_it_has_already():
    taken = filled(10).take(10, version=0, without={3, 4})
    assert sorted(g.id for g in taken) == [0, 1, 2, 5, 6, 7, 8, 9]


def test_what_may_be_used_twice_is_used_twice():
    buffer = filled(4, max_uses=2)
    assert [len(buffer.take(4, version=0)) for _ in range(3)] == [4, 4, 0]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(["put", "take", "save"]), st.integers(0, 6)), max_size=40),
    st.integers(1, 5),
    st.integers(1, 10),
)
def test_no_history_replays_past_the_bounds_and_a_restored_twin_draws_the_same(
    history: list[tuple[str, int]], bound: int, capacity: int
):
    config = ReplayConfig(max_staleness=bound, capacity=capacity)
    buffer, version, next_id = ReplayBuffer(config, seed=1), 0, 0
    for what, n in history:
        if what == "put":
            buffer.put(group(next_id + i, version) for i in range(n))
            next_id, version = next_id + n, version + 1
        elif what == "take":
            twin = ReplayBuffer(config, seed=9)
            twin.restore(json.loads(json.dumps(buffer.state())), buffer.groups)
            taken = buffer.take(n, version=version)
            assert [g.id for g in twin.take(n, version=version)] == [g.id for g in taken]
            assert len({g.id for g in taken}) == len(taken) <= n
            assert all(version - g.outcome.version <= bound for g in taken)
        assert len(buffer) <= capacity
