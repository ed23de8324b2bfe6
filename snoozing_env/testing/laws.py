"""The laws of `schedulers/base.py`, one function each."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from snoozing_env.errors import OutcomeError
from snoozing_env.schedulers.base import Scheduler
from snoozing_env.types import GroupOutcome, TaskInfo

MODES = ("deterministic", "jittered", "probabilistic", "literal", "permanent", "off")
"""Snooze modes that a build function must take."""

Build = Callable[[Sequence[TaskInfo], int, Mapping[str, Any]], Scheduler]
"""(tasks, seed, snooze table) → a new scheduler."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A scheduler under test."""

    build: Build
    floor: float = 1.0
    """Share of every draw that goes round all awake tasks; 1 = each of them once per pass."""
    examples: int = 25
    """Random histories that the state machine tries."""


Law = Callable[[Subject], None]


def outcome(task: int, solved: int, *, group: int = 4, valid: int = 4, version: int = 0) -> GroupOutcome:
    """A group with so many solved and so many valid rollouts."""
    rewards = np.zeros(group)
    rewards[:solved] = 1.0
    return GroupOutcome(
        task=task, rewards_G=rewards, valid_G=np.arange(group) < valid, tokens=group, version=version
    )


def pool(n: int) -> list[TaskInfo]:
    return [TaskInfo(key=f"task-{i}") for i in range(n)]


def check_scheduler(subject: Subject) -> None:
    """Every law in turn."""
    for law in LAWS.values():
        law(subject)


def any_history(subject: Subject) -> None:
    """Random draws, outcomes, losses, wakes and restarts: draws are full, distinct and idle, and a restart goes on
    bit for bit."""
    from snoozing_env.testing.machine import run_machine

    run_machine(subject)


def no_starvation(subject: Subject) -> None:
    """Every awake task is drawn within one pass of the floor's draws at the start, and within two at any later time,
    also the ones that were found hopeless while better ones are open."""
    n, batch = 97, 7
    scheduler = subject.build(pool(n), 3, {})
    passes = math.ceil(n / (subject.floor * batch)) + (1 if subject.floor < 1 else 0)
    version = 0
    for window, rounds in (("first", passes), ("next", 2 * passes)):
        seen: set[int] = set()
        for _ in range(rounds):
            drawn = scheduler.draw(batch).tolist()
            seen |= set(drawn)
            scheduler.observe_many([outcome(t, 0 if t % 3 else 2, version=version) for t in drawn])
            version += 1
        missing = sorted(set(range(n)) - seen)
        assert not missing, (
            f"in the {window} {rounds} draws of {batch} over {n} tasks, {missing} were never drawn"
        )


def a_sleeper_skips_its_passes_and_returns(subject: Subject) -> None:
    """A mastered task is not drawn for N passes while others are awake, and is back soon after."""
    n, batch, skip = 40, 5, 3
    scheduler = subject.build(pool(n), 1, {"mode": "deterministic", "skip_passes": skip})
    easy = int(scheduler.draw(1)[0])
    scheduler.observe(outcome(easy, 4))
    between = 0
    limit = math.ceil((skip + 2) * n / subject.floor)
    while between < limit:
        drawn = scheduler.draw(batch).tolist()
        if easy in drawn:
            break
        between += len(drawn)
        scheduler.observe_many([outcome(t, 2) for t in drawn])
    assert between >= skip * (n - 1) - batch, (
        f"a task to be skipped for {skip} passes was back after {between} draws"
    )
    assert between < limit, f"a task to be skipped for {skip} passes was not back after {between} draws"


def the_longest_asleep_wake_first(subject: Subject) -> None:
    """With everything asleep a draw is still full, and wakes in the order of falling asleep (Z11)."""
    scheduler = subject.build(pool(6), 0, {"mode": "permanent"})
    order: list[int] = []
    for _ in range(6):
        (task,) = scheduler.draw(1).tolist()
        order.append(task)
        scheduler.observe(outcome(task, 4))
    assert scheduler.metrics()["asleep_share"] == 1.0
    first, rest = scheduler.draw(2).tolist(), scheduler.draw(4).tolist()
    assert first + rest == order, f"fell asleep as {order}, woke as {first + rest}"


def a_failing_task_is_checked_again_within_the_cap(subject: Subject) -> None:
    """Too-hard snoozes double, but never past their cap: a task that always fails keeps coming back (Z10)."""
    n, batch, cap = 6, 3, 2
    scheduler = subject.build(pool(n), 2, {"mode": "deterministic", "too_hard": True, "too_hard_cap": cap})
    limit = math.ceil((cap + 2) * n + 2 * n / subject.floor)
    since = 0
    for _ in range(10 * limit // batch):
        drawn = scheduler.draw(batch).tolist()
        since = 0 if 0 in drawn else since + len(drawn)
        assert since <= limit, (
            f"a task that fails is to be skipped for at most {cap} passes of {n} tasks, and was not back after {since} draws"
        )
        scheduler.observe_many([outcome(t, 2 if t else 0) for t in drawn])


def a_restored_twin_goes_on_alike(subject: Subject) -> None:
    """Everything random is in the state: sleeps, passes and choices stay the same for long after a restart."""
    n, batch = 24, 4
    snooze = {"mode": "probabilistic", "skip_passes": 2}
    original, twin = subject.build(pool(n), 4, snooze), subject.build(pool(n), 5, snooze)

    def go_on(scheduler: Scheduler, versions: range) -> list[list[int]]:
        draws: list[list[int]] = []
        for version in versions:
            drawn = scheduler.draw(batch).tolist()
            draws.append(drawn)
            scheduler.observe_many([outcome(t, (7 * t + version) % 6 % 5, version=version) for t in drawn])
        return draws

    go_on(original, range(3))  # half of them are not seen yet: ties are left to break
    twin.load_state_dict(original.state_dict())
    versions = range(3, 23 + math.ceil(2 * n / (subject.floor * batch)))
    rounds = zip(go_on(original, versions), go_on(twin, versions), strict=True)
    for i, (mine, theirs) in enumerate(rounds):
        assert mine == theirs, f"draw {i + 1} after a restart is {theirs}, without one it is {mine}"


def unjudged_groups_teach_nothing(subject: Subject) -> None:
    """A group without enough valid rollouts is offered again at once, though not for ever."""
    scheduler = subject.build(pool(20), 0, {})
    before = scheduler.metrics()["pass_rate_mean"]
    (task,) = scheduler.draw(1).tolist()
    for _ in range(2):
        scheduler.observe(outcome(task, 4, valid=1))
        assert scheduler.metrics()["pass_rate_mean"] == before, "invalid rewards changed an estimate"
        assert scheduler.draw(1).tolist() == [task], "an unjudged group is retried at once"
    scheduler.observe(outcome(task, 4, valid=1))
    others = scheduler.draw(19).tolist()
    assert task not in others, "after that it waits for its next pass"
    assert scheduler.draw(1).tolist() == [task], "but it is still there"
    assert scheduler.metrics()["unjudged_groups"] == 3


def impossible_rewards_are_refused(subject: Subject) -> None:
    """NaN, infinite and out-of-range rewards raise with the task's key and the value (D2)."""
    for bad in (float("nan"), float("inf"), -0.5, 1.5):
        scheduler = subject.build(pool(2), 0, {})
        task = int(scheduler.draw(1)[0])
        message = ""
        try:
            scheduler.observe(GroupOutcome(task=task, rewards_G=np.array([0.0, bad])))
        except OutcomeError as error:
            message = str(error)
        wanted = f"task 'task-{task}': reward {bad} is not in [0, 1]"
        assert wanted in message, f"a reward of {bad} was answered with {message!r}, wanted {wanted!r}"
        masked = GroupOutcome(
            task=task, rewards_G=np.array([0.0, 1.0, bad]), valid_G=np.array([True, True, False])
        )
        scheduler.observe(masked)  # an invalid rollout may carry anything


def seeds_decide_the_draws(subject: Subject) -> None:
    """The same seed draws the same, a neighbouring one does not."""
    draws = [subject.build(pool(200), seed, {}).draw(50).tolist() for seed in (0, 0, 1)]
    assert draws[0] == draws[1], "one seed, two different draws"
    assert draws[0] != draws[2], "two seeds, one draw"


def estimates_follow_the_policy(subject: Subject) -> None:
    """Old evidence fades: eight failed groups outweigh thirty solved ones."""
    scheduler = subject.build(pool(1), 0, {"mode": "off"})
    for solved in [4] * 30 + [0] * 8:
        scheduler.observe(outcome(int(scheduler.draw(1)[0]), solved))
    rate = scheduler.metrics()["pass_rate_mean"]
    assert rate < 0.6, f"after 30 solved and then 8 failed groups the estimated pass rate is still {rate:.2f}"


LAWS: dict[str, Law] = {
    law.__name__: law
    for law in (
        any_history,
        no_starvation,
        a_sleeper_skips_its_passes_and_returns,
        the_longest_asleep_wake_first,
        a_failing_task_is_checked_again_within_the_cap,
        a_restored_twin_goes_on_alike,
        unjudged_groups_teach_nothing,
        impossible_rewards_are_refused,
        seeds_decide_the_draws,
        estimates_follow_the_policy,
    )
}
