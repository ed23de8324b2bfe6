"""The laws of `schedulers/base.py`, over every kind and every snooze mode, as one hypothesis state machine."""

import json

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from snoozing_env import KINDS, GroupOutcome, TaskInfo, build_scheduler

MODES = ("deterministic", "jittered", "probabilistic", "literal", "permanent", "off")


def outcome(task: int, solved: int, group: int = 4, valid: int = 4) -> GroupOutcome:
    rewards = np.zeros(group)
    rewards[:solved] = 1.0
    return GroupOutcome(task=task, rewards_G=rewards, valid_G=np.arange(group) < valid, tokens=group)


class SchedulerMachine(RuleBasedStateMachine):
    """Random draws, outcomes, losses and restarts; a twin restored from saved state must draw the same."""

    @initialize(
        kind=st.sampled_from(sorted(KINDS)),
        mode=st.sampled_from(MODES),
        n=st.integers(1, 40),
        too_hard=st.booleans(),
        seed=st.integers(0, 5),
    )
    def build(self, kind: str, mode: str, n: int, too_hard: bool, seed: int) -> None:
        self.config = {"kind": kind, "snooze": {"mode": mode, "skip_passes": 3, "too_hard": too_hard}}
        self.tasks = [TaskInfo(key=f"task-{i}", dataset="ab"[i % 2]) for i in range(n)]
        self.seed = seed
        self.scheduler = build_scheduler(self.config, self.tasks, seed)
        self.busy: set[int] = set()

    @rule(n=st.integers(0, 50))
    def draw(self, n: int) -> None:
        drawn = self.scheduler.draw(n).tolist()
        idle = len(self.tasks) - len(self.busy)
        assert len(drawn) == min(n, idle), "a draw is full whenever enough tasks are idle"
        assert len(set(drawn)) == len(drawn), "no task twice in a draw"
        assert not self.busy & set(drawn), "no busy task is drawn"
        assert all(0 <= t < len(self.tasks) for t in drawn)
        self.busy |= set(drawn)

    @rule(data=st.data(), solved=st.integers(0, 4), valid=st.integers(0, 4))
    def observe(self, data: st.DataObject, solved: int, valid: int) -> None:
        if self.busy:
            task = data.draw(st.sampled_from(sorted(self.busy)))
            self.scheduler.observe(outcome(task, solved, valid=valid))
            self.busy.discard(task)

    @rule(solved=st.integers(0, 4))
    def observe_all(self, solved: int) -> None:
        self.scheduler.observe_many([outcome(t, solved) for t in sorted(self.busy)])
        self.busy.clear()

    @rule(data=st.data())
    def lose(self, data: st.DataObject) -> None:
        if self.busy:
            task = data.draw(st.sampled_from(sorted(self.busy)))
            self.scheduler.release(task)
            self.busy.discard(task)

    @rule(n=st.integers(0, 10))
    def wake(self, n: int) -> None:
        assert 0 <= self.scheduler.wake(n) <= n

    @rule(n=st.integers(1, 20))
    def restart(self, n: int) -> None:
        """In-flight groups of a killed run are lost; everything else goes on bit for bit."""
        for task in sorted(self.busy):
            self.scheduler.release(task)
        self.busy.clear()
        twin = build_scheduler(self.config, self.tasks, self.seed + 1)
        report = twin.load_state_dict(json.loads(json.dumps(self.scheduler.state_dict(), allow_nan=False)))
        assert (report.kept, report.fresh, report.dropped) == (len(self.tasks), 0, 0)
        mine, theirs = self.scheduler.draw(n).tolist(), twin.draw(n).tolist()
        assert mine == theirs
        self.scheduler = twin
        self.busy = set(theirs)

    @invariant()
    def metrics_are_finite(self) -> None:
        if hasattr(self, "scheduler"):
            metrics = self.scheduler.metrics()
            assert all(np.isfinite(v) for v in metrics.values())
            assert metrics["busy"] == len(self.busy)
            assert 0 <= metrics["asleep_share"] <= 1


SchedulerMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestEverySchedulerKeepsTheLaws = SchedulerMachine.TestCase


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("mode", MODES)
def test_every_awake_task_is_drawn_within_one_pass_of_draws(kind: str, mode: str) -> None:
    tasks = [TaskInfo(key=str(i)) for i in range(97)]
    scheduler = build_scheduler({"kind": kind, "snooze": {"mode": mode}}, tasks, 3)
    seen: set[int] = set()
    for _ in range(14):  # 14 draws of 7 = one pass of 97
        drawn = scheduler.draw(7)
        seen |= set(drawn.tolist())
        scheduler.observe_many([outcome(int(t), 2) for t in drawn])
    assert seen == set(range(97))


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_everything_asleep_wakes_the_longest_asleep_first(kind: str) -> None:
    tasks = [TaskInfo(key=str(i)) for i in range(6)]
    scheduler = build_scheduler({"kind": kind, "snooze": {"mode": "permanent"}}, tasks, 0)
    order = []
    for _ in range(6):
        (task,) = scheduler.draw(1).tolist()
        order.append(task)
        scheduler.observe(outcome(task, 4))
    assert scheduler.metrics()["asleep_share"] == 1.0
    assert scheduler.draw(2).tolist() == order[:2]
    assert scheduler.draw(4).tolist() == order[2:]


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_invalid_rewards_change_no_estimate_and_the_task_is_offered_again_first(kind: str) -> None:
    tasks = [TaskInfo(key=str(i)) for i in range(20)]
    scheduler = build_scheduler({"kind": kind}, tasks, 0)
    before = scheduler.metrics()["pass_rate_mean"]
    (task,) = scheduler.draw(1).tolist()
    for _ in range(2):
        scheduler.observe(outcome(task, 4, valid=1))
        assert scheduler.metrics()["pass_rate_mean"] == before
        assert scheduler.draw(1).tolist() == [task], "an unjudged group is retried at once"
    scheduler.observe(outcome(task, 4, valid=1))
    assert scheduler.draw(1).tolist() != [task], "but not for ever"
    assert scheduler.metrics()["unjudged_groups"] == 3


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -0.5, 1.5])
def test_a_reward_no_grader_may_give_is_refused_with_key_and_value(kind: str, bad: float) -> None:
    from snoozing_env import OutcomeError

    scheduler = build_scheduler({"kind": kind}, [TaskInfo(key="gsm8k/7"), TaskInfo(key="gsm8k/8")], 0)
    task = int(scheduler.draw(1)[0])
    with pytest.raises(OutcomeError, match=rf"task 'gsm8k/{7 + task}': reward {bad} is not in \[0, 1\]"):
        scheduler.observe(GroupOutcome(task=task, rewards_G=[0.0, bad]))
    masked = GroupOutcome(task=task, rewards_G=[0.0, 1.0, bad], valid_G=[True, True, False])
    scheduler.observe(masked)  # an invalid rollout may carry anything


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_the_same_seed_draws_the_same_and_neighbouring_seeds_do_not(kind: str) -> None:
    tasks = [TaskInfo(key=str(i)) for i in range(200)]
    draws = [build_scheduler({"kind": kind}, tasks, seed).draw(50).tolist() for seed in (0, 0, 1)]
    assert draws[0] == draws[1] != draws[2]
