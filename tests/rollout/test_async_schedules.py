"""Random schedules of the real loop: durations, failures, weight updates and kills (A1, A8, B4)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from snoozing_env.pacing import Planner
from snoozing_env.pacing.ledger import audit
from snoozing_env.rollout.async_loop import AsyncLoop
from tests.rollout import async_world
from tests.rollout.async_world import History, play, random_pacing, random_world

SCHEDULES = 60


def problems_of(seed: int) -> list[str]:
    config = random_pacing(seed)
    history = play(config, random_world(seed), steps=8)
    found = audit(history.events, bound=config.bound)
    if max(history.lags, default=0) > config.bound:
        found.append(f"lag {max(history.lags)}")
    if history.leaked or history.unbalanced:
        found.append(f"{history.leaked} tasks leaked, {history.unbalanced} groups unaccounted for")
    return found


def test_no_schedule_trains_past_the_bound_loses_a_finished_group_or_trains_one_twice():
    for seed in range(SCHEDULES):
        assert problems_of(seed) == [], f"schedule {seed}"


def test_schedules_reach_what_they_are_for():
    histories: list[History] = [play(random_pacing(s), random_world(s), steps=8) for s in range(SCHEDULES)]

    def total(count: Callable[[History], int]) -> int:
        return sum(map(count, histories))

    assert total(lambda h: h.kills) > 15
    assert total(lambda h: h.counts.lost) > 15
    assert total(lambda h: h.counts.filtered) > 15
    assert total(lambda h: h.counts.over_age + h.counts.expired) > 0
    assert total(lambda h: h.cancelled_late) > 15, "deadlines"
    assert total(lambda h: h.cancelled_spare) > 15, "redundant rollouts"
    assert total(lambda h: h.partial) > 0, "groups trained without their stragglers"
    assert total(lambda h: h.parked) > 0, "tail batching"
    assert total(lambda h: h.places) > 100, "exact shares"
    assert max(max(h.lags) for h in histories) >= 2


class OffByOne(Planner):
    """Trains groups that are one update too old."""

    def lag(self, group):  # type: ignore[no-untyped-def]
        return super().lag(group) - 1


def test_an_off_by_one_in_the_bound_is_found(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(async_world, "Planner", OffByOne)
    assert any(problems_of(seed) for seed in range(SCHEDULES))


def test_a_resume_that_forgets_the_journal_is_found(monkeypatch: pytest.MonkeyPatch):
    restore = async_world._restore

    def forgetful(loop: AsyncLoop, disk: async_world._Disk, history: History) -> None:
        disk.journal.clear()
        restore(loop, disk, history)

    monkeypatch.setattr(async_world, "_restore", forgetful)
    assert any(problems_of(seed) for seed in range(SCHEDULES))
