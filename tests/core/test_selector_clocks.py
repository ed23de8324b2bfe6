"""Estimates that return to their priors, and passes that nobody walks."""

from typing import Any

import numpy as np
import pytest

from snoozing_env import TaskInfo, build_scheduler
from snoozing_env.schedulers.clock import DatasetClock
from snoozing_env.testing import outcome
from tests.core.selecting import ALL, build, teach


@pytest.mark.parametrize("estimate", ["beta", "ema", "last"])
def test_an_estimate_returns_to_its_prior_by_half_lives_of_policy_versions(estimate: str) -> None:
    scheduler, selector = build(
        [TaskInfo(key="stale", difficulty_prior=0.3), TaskInfo(key="fresh")],
        kind="band",
        half_life=10,
        difficulty={"estimate": estimate},
    )
    teach(scheduler, 0, 4, 4, version=5)
    then = float(selector.pool.reversion.rates(ALL)[0])
    for version in (15, 25):
        teach(scheduler, 1, 2, version=version)
    now = float(selector.pool.reversion.rates(ALL)[0])
    if estimate == "beta":
        s, f = 0.6 + (scheduler.difficulty.successes_N[0] - 0.6) / 4, 1.4
        assert now == pytest.approx(s / (s + f), rel=1e-5)
    else:
        assert now - 0.3 == pytest.approx((then - 0.3) / 4, rel=1e-5)


def test_passes_without_a_walk_are_offered_draws_over_dataset_size() -> None:
    tasks = [TaskInfo(key=str(i), dataset="small" if i < 4 else "large") for i in range(20)]
    shared, split = DatasetClock(tasks), DatasetClock(tasks)
    for _ in range(59):
        shared.advance(1, 20)
    assert shared.now(np.array([0, 4])).tolist() == [2, 2]
    shared.advance(1, 20)
    assert shared.now(np.array([0, 4])).tolist() == [3, 3], "60 draws over 20 tasks, without rounding"
    assert shared.now_N() == 3
    for _ in range(3):
        split.advance(np.array([3.0, 1.0]), np.array([4, 16]))
    assert split.now(np.array([0, 4])).tolist() == [2, 0]
    assert split.position == pytest.approx(12 / 20)
    other = DatasetClock([*tasks[:10], TaskInfo(key="new", dataset="new")])
    other.restore(split.state())
    assert other.now(np.array([0, 4, 10])).tolist() == [2, 0, 2]


def test_draws_among_few_awake_tasks_let_a_whole_pass_go_by_for_the_sleepers() -> None:
    tasks = [TaskInfo(key=str(i), dataset="ab"[i >= 10]) for i in range(20)]
    clock = DatasetClock(tasks)
    clock.advance(2, 4)
    assert clock.position == pytest.approx(0.5), "a walk that takes two of four awake tasks is half way round"
    clock.advance(9, 4)
    assert clock.position == pytest.approx(1.5), "and goes round once at the most"
    clock.advance(np.array([1.0, 1.0]), np.array([2, 0]))
    assert clock.state() == pytest.approx({"a": 2.0, "b": 2.5}), "who sleeps as a whole goes with the pool"


@pytest.mark.parametrize("kind", ["uniform", "band", "thompson", "learnability", "lze"])
def test_a_sleeper_misses_as_many_draws_as_uniforms_walk_makes_it_miss(kind: str) -> None:
    def draws_until_back(kind: str) -> int:
        scheduler = build_scheduler({"kind": kind, "snooze": {"skip_passes": 3}}, pool, 0)
        scheduler.observe_many([outcome(t, 4 if t >= 10 else 2) for t in scheduler.draw(100).tolist()])
        for n in range(1, 200):
            tasks = scheduler.draw(2).tolist()
            if max(tasks) >= 10:
                return n
            scheduler.observe_many([outcome(t, 2) for t in tasks])
        return 200

    pool = [TaskInfo(key=str(i)) for i in range(100)]
    assert draws_until_back(kind) == pytest.approx(draws_until_back("uniform"), abs=6)


@pytest.mark.parametrize("mixture", [None, {}, {"weights": {"a": 1, "b": 3}}])
@pytest.mark.parametrize("kind", ["uniform", "band", "lze"])
def test_a_dataset_that_sleeps_as_a_whole_comes_back_after_its_passes(
    kind: str, mixture: dict[str, Any] | None
) -> None:
    tasks = [TaskInfo(key=f"{d}{i}", dataset=d) for d in "ab" for i in range(20)]
    scheduler = build_scheduler({"kind": kind, "mixture": mixture, "snooze": {"skip_passes": 2}}, tasks, 0)
    scheduler.observe_many([outcome(t, 4 if t < 20 else 2) for t in scheduler.draw(40).tolist()])
    passes = [scheduler.metrics()["asleep_share"]]
    for _ in range(60):  # dataset a is offered a quarter of 5: a pass of 20 takes it 16 draws
        scheduler.observe_many([outcome(t, 2) for t in scheduler.draw(5).tolist()])
        passes.append(scheduler.metrics()["asleep_share"])
    assert passes[:8] == [0.5] * 8, "asleep for a pass at the least, whatever the share of the draws"
    assert passes[-1] == 0.0


@pytest.mark.parametrize("kind", ["band", "lze", "thompson", "staged"])
def test_a_draw_of_the_whole_pool_is_a_pass(kind: str) -> None:
    scheduler, _ = build(12, kind=kind, snooze={"skip_passes": 3})
    sizes = []
    for _ in range(12):
        tasks = scheduler.draw(12).tolist()
        sizes.append(len(tasks))
        scheduler.observe_many([outcome(t, 4 if t == 7 else 2) for t in tasks])
    assert sizes == [12, 11, 11, 11] * 3
