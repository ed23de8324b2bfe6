"""When a run is said to collapse, and when not."""

from __future__ import annotations

import json

from snoozing_env.alarms import AlarmConfig, Alarms

HEALTHY = {
    "ess": 0.9, "entropy": 1.0, "clip_fraction": 0.05, "truncation": 0.02, "reward": 0.5, "dead_groups": 0.4, "grad_norm": 1.0,
}  # fmt: skip


def after(alarms: Alarms, steps: int, **changed: float | None):
    last = []
    for _ in range(steps):
        last = alarms.update({**HEALTHY, **changed})  # type: ignore[arg-type]
    return last


def test_a_healthy_run_alarms_nobody():
    assert after(Alarms(AlarmConfig()), 100) == []


def test_a_signal_must_stay_past_its_limit():
    alarms = Alarms(AlarmConfig(patience=5))
    after(alarms, 20)
    assert after(alarms, 4, ess=0.1) == []
    assert after(alarms, 1) == []
    assert [a.signal for a in after(alarms, 5, ess=0.1)] == ["ess"]


def test_a_collapse_at_full_sample_size_is_seen_in_the_other_signals():
    alarms = Alarms(AlarmConfig())
    after(alarms, 20)
    seen = after(alarms, 20, ess=0.989, entropy=0.05, reward=0.0)
    assert {a.signal for a in seen} == {"entropy", "reward"}
    assert alarms.collapsed(seen)


def test_one_signal_alone_is_an_alarm_and_no_collapse():
    alarms = Alarms(AlarmConfig())
    after(alarms, 20)
    seen = after(alarms, 5, clip_fraction=0.9)
    assert [str(a) for a in seen] == ["clip_fraction 0.9 past 0.3 for 5 steps"]
    assert not alarms.collapsed(seen)


def test_what_was_not_measured_changes_nothing():
    alarms = Alarms(AlarmConfig(patience=2))
    after(alarms, 20)
    after(alarms, 1, ess=0.1)
    assert after(alarms, 3, ess=None) == []
    assert [a.signal for a in after(alarms, 1, ess=0.1)] == ["ess"]


def test_a_reward_that_was_never_high_is_no_fall():
    alarms = Alarms(AlarmConfig())
    assert after(alarms, 50, reward=0.0) == []


def test_a_resumed_watch_goes_on_where_it_was():
    first = Alarms(AlarmConfig())
    after(first, 20)
    after(first, 4, ess=0.1)
    second = Alarms(AlarmConfig())
    second.restore(json.loads(json.dumps(first.state())))
    assert [a.signal for a in after(second, 1, ess=0.1)] == ["ess"]


def test_dead_groups_alarm_where_there_were_live_ones_and_not_where_success_was_rare_from_the_start():
    rare, fallen = Alarms(AlarmConfig()), Alarms(AlarmConfig())
    assert after(rare, 50, dead_groups=0.98) == []
    after(fallen, 20)
    assert [a.signal for a in after(fallen, 5, dead_groups=0.98)] == ["dead_groups"]
