"""What reaches the gradient, and the ladder when too little does (F1 to F5)."""

import numpy as np
import pytest

from snoozing_env import GroupOutcome
from snoozing_env.buffers.fresh import FreshBuffer, FreshConfig
from snoozing_env.buffers.store import dump_groups, parse_groups
from snoozing_env.gates import GateConfig, Ladder, LadderConfig, judge, refill_size
from snoozing_env.types import Group, Trajectory


def outcome(rewards: list[float], valid: list[bool] | None = None, version: int = 0) -> GroupOutcome:
    return GroupOutcome(task=0, rewards_G=rewards, valid_G=valid, version=version)


@pytest.mark.parametrize(
    ("rewards", "valid", "verdict"),
    [
        ([0.0, 1.0], None, "admitted"),
        ([1.0, 1.0], None, "all_max"),
        ([1.0, 1.0 - 1e-9], None, "all_max"),
        ([0.0, 0.0], None, "all_min"),
        ([0.5, 0.5], None, "no_spread"),
        ([0.0, 1.0], [True, False], "too_few_valid"),
        ([1.0, 1.0, 0.0], [True, True, False], "all_max"),
    ],
)
def test_only_groups_with_a_spread_over_valid_rewards_are_admitted(
    rewards: list[float], valid: list[bool] | None, verdict: str
) -> None:
    assert judge(GateConfig(), outcome(rewards, valid)) == verdict


def test_the_optional_band_drops_the_edges_and_the_ladder_can_widen_it() -> None:
    config = GateConfig(band=(0.05, 0.9))
    nearly = outcome([1.0] * 19 + [0.0])
    assert judge(config, nearly) == "out_of_band"
    assert judge(config, nearly, wide=True) == "admitted"
    assert judge(config, outcome([1.0] * 3 + [0.0])) == "admitted"


def test_the_ladder_climbs_in_order_and_every_step_ends() -> None:
    ladder = Ladder(LadderConfig(widen_after=2, wake_after=4, partial_after=6, dead_steps=2))
    rungs = [ladder.rung(generated=g, batch=10) for g in (0, 19, 20, 40, 59, 60, 10**9)]
    assert rungs == ["refill", "refill", "widen", "wake", "wake", "partial", "partial"]
    assert [ladder.close_step(trained=t) for t in (0, 5, 0, 0)] == ["refill", "refill", "refill", "stop"]


def test_refills_are_sized_by_the_survival_fraction() -> None:
    half, most = 1 - 2 * 0.5**8, 1 - 0.9**8 - 0.1**8
    rho = (half + most) / 2
    assert (round(half, 5), round(most, 5), round(rho, 5)) == (0.99219, 0.56953, 0.78086)
    assert refill_size(missing=256, survival=rho, limit=10**6) == 328
    assert pytest.approx(0.219, abs=2e-3) == 1 - 256 / 328
    assert refill_size(missing=10, survival=0.0, limit=50) == 50, (
        "a dead pool asks for no more than the limit"
    )


def group(identity: int, version: int) -> Group:
    trajectories = tuple(
        Trajectory(
            prompt_ids=(1, 2),
            completion_ids=(3, 4, 5),
            logprobs=(-0.1, -1 / 3, -2e-17),
            mask=(1, 1, 0),
            reward=r,
            version=version,
            last_version=version,
            text="é\n",
        )
        for r in (0.0, 1.0)
    )
    outcome = GroupOutcome(
        task=identity, rewards_G=np.array([0.0, 1.0]), version=version, tokens=4, duration_s=0.5
    )
    return Group(
        id=identity, key=f"k{identity}", outcome=outcome, trajectories=trajectories, prompt="p", gold="g"
    )


def test_carried_groups_leave_oldest_first_and_never_past_their_age() -> None:
    buffer = FreshBuffer(FreshConfig(max_staleness=1))
    buffer.put([group(0, 0), group(1, 1), group(2, 1)])
    assert [g.id for g in buffer.take(1, version=1)] == [0]
    buffer.put([group(3, 2)])
    assert [g.id for g in buffer.take(9, version=3)] == [3]
    assert (len(buffer), buffer.expired) == (0, 2)


def test_groups_on_disk_come_back_exactly_and_follow_their_tasks() -> None:
    groups = [group(0, 0), group(7, 3)]
    back = parse_groups(dump_groups(groups), {"k7": 1, "k0": 5})
    assert [g.outcome.task for g in back] == [5, 1]
    assert back[0].trajectories == groups[0].trajectories
    assert back[1].outcome.version == 3
    assert parse_groups(dump_groups(groups), {"k7": 1})[0].id == 7, "a group whose task is gone is left out"
    assert parse_groups(dump_groups([]), {}) == []
