"""Snooze arithmetic: how many passes each mode skips, whose factor counts, what a re-check means (Z1 to Z12)."""

import numpy as np
import pytest

from snoozing_env import GroupOutcome, TaskInfo
from tests.core.appearances import (
    EASY,
    HARD,
    MIXED,
    Z12,
    build,
    draws_per_pass,
    gain_over_plain,
    gaps,
    half_easy,
)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 7])
def test_deterministic_skips_exactly_n_passes(n: int) -> None:
    drawn = draws_per_pass(build({"skip_passes": n}, 200), 200, 40, half_easy)
    assert set(gaps(drawn[:, 1::2]).tolist()) == {n}
    assert set(gaps(drawn[:, ::2]).tolist()) == {0}, "a task that is not too easy is never skipped"


@pytest.mark.parametrize("batch", [1, 7, 64, 99])
def test_deterministic_skips_do_not_depend_on_how_draws_cut_the_passes(batch: int) -> None:
    drawn = draws_per_pass(build({"skip_passes": 3}, 200), 200, 24, half_easy, batch=batch)
    assert set(gaps(drawn[:, 1::2]).tolist()) == {3}


@pytest.mark.parametrize(
    ("mode", "mean", "passes"), [("probabilistic", 5.0, 3000), ("literal", 0.25, 800), ("jittered", 5.0, 900)]
)
def test_mean_skips_of_the_random_modes_at_n_5(mode: str, mean: float, passes: int) -> None:
    n = 400
    skipped = gaps(
        draws_per_pass(build({"mode": mode, "skip_passes": 5}, n), n, passes, half_easy, batch=100)[:, 1::2]
    )
    # Long sleeps are likelier to be cut off by the end of the window; with passes >> N that bias is below 0.2 %.
    assert skipped.mean() == pytest.approx(mean, rel=0.01)


def test_probabilistic_snoozing_skips_each_pass_with_the_same_chance() -> None:
    n = 400
    skipped = gaps(
        draws_per_pass(build({"mode": "probabilistic"}, n), n, 2000, half_easy, batch=100)[:, 1::2]
    )
    for k in range(4):
        still = skipped >= k
        assert (skipped[still] > k).mean() == pytest.approx(5 / 6, abs=0.01), "memoryless, q = N / (N + 1)"


def test_jittered_snoozing_spreads_the_wake_ups_of_one_wave() -> None:
    def woken_per_pass(mode: str) -> np.ndarray:
        return draws_per_pass(build({"mode": mode}, 400), 400, 25, half_easy)[1:, 1::2].sum(axis=1)

    # One wave falls asleep in pass 0: without jitter it comes back whole, with jitter in fifths.
    assert woken_per_pass("jittered")[:7].var() < 0.3 * woken_per_pass("deterministic")[:7].var()


def test_permanent_never_comes_back_and_off_never_sleeps() -> None:
    for mode, expected in (("permanent", 1), ("off", 30)):
        drawn = draws_per_pass(build({"mode": mode}, 100), 100, 30, half_easy)
        assert (drawn[:, 1::2].sum(axis=0) == expected).all()


def test_a_tasks_factor_beats_its_datasets_which_beats_the_global_one() -> None:
    tasks = [TaskInfo(key=f"pad-{i}") for i in range(60)]
    tasks += [
        TaskInfo(key="global"),
        TaskInfo(key="set", dataset="qa"),
        TaskInfo(key="own", dataset="qa", snooze_factor=1),
    ]
    tasks += [TaskInfo(key="never", snooze_factor=0), TaskInfo(key="once", snooze_factor=float("inf"))]
    scheduler = build({"skip_passes": 4, "datasets": {"qa": 2}}, tasks)
    drawn = draws_per_pass(scheduler, len(tasks), 30, lambda t, p: EASY if t >= 60 else MIXED, batch=8)
    assert [set(gaps(drawn[:, [i]]).tolist()) for i in range(60, 64)] == [{4}, {2}, {1}, {0}]
    assert drawn[:, 64].sum() == 1


def test_a_negative_or_nan_factor_is_refused_with_the_tasks_key() -> None:
    for bad in (-1.0, float("nan")):
        with pytest.raises(ValueError, match=r"task 'qa/3' has snooze_factor .* must be >= 0"):
            build({}, [TaskInfo(key="qa/3", snooze_factor=bad)])


def test_only_a_full_score_with_enough_valid_rollouts_is_too_easy() -> None:
    almost = [1.0, 1.0, 1.0, 1.0 - 1e-9]
    cases = [
        (EASY, None, True),
        (almost, None, True),
        ([1.0, 1.0, 1.0, 0.999], None, False),
        (HARD, None, False),
        ([1.0, 1.0, 0, 0], [True, True, False, False], True),
        ([1.0, 1.0, 0, 0, 0, 0], [True, True, False, False, False, False], False),
    ]
    for rewards, valid, asleep in cases:
        scheduler = build({}, 9)
        task = int(scheduler.draw(1)[0])
        scheduler.observe(GroupOutcome(task=task, rewards_G=rewards, valid_G=valid))
        assert bool(scheduler.snooze.asleep_N(scheduler.queue.number)[task]) is asleep, (rewards, valid)


def test_a_woken_task_that_is_still_mastered_sleeps_again_and_one_that_is_not_counts_as_forgotten() -> None:
    scheduler = build({"skip_passes": 2}, 50)
    drawn = draws_per_pass(scheduler, 50, 12, lambda t, p: EASY if t == 0 and p < 6 else MIXED, batch=5)
    assert np.flatnonzero(drawn[:, 0]).tolist() == [0, 3, 6, 7, 8, 9, 10, 11]
    assert (scheduler.snooze.snoozed, scheduler.snooze.woken, scheduler.snooze.forgotten) == (2, 2, 1)


def test_too_hard_snoozing_backs_off_by_doubling_and_is_off_by_default() -> None:
    def drawn_passes(snooze: dict[str, object]) -> list[int]:
        drawn = draws_per_pass(build(snooze, 50), 50, 40, lambda t, p: HARD if t == 0 else MIXED, batch=5)
        return np.flatnonzero(drawn[:, 0]).tolist()

    assert drawn_passes({}) == list(range(40))
    assert drawn_passes({"too_hard": True, "too_hard_cap": 8}) == [0, 2, 5, 10, 19, 28, 37]


def test_one_success_ends_the_back_off() -> None:
    reward = {0: HARD, 2: HARD, 5: MIXED, 6: HARD}
    scheduler = build({"too_hard": True}, 50)
    drawn = draws_per_pass(scheduler, 50, 12, lambda t, p: reward.get(p, HARD) if t == 0 else MIXED, batch=5)
    assert np.flatnonzero(drawn[:, 0]).tolist() == [0, 2, 5, 6, 8, 11], "1, 2, then again 1, 2 passes skipped"


def test_a_hopeless_task_that_wakes_is_neither_a_recheck_nor_forgotten() -> None:
    scheduler = build({"too_hard": True}, 50)
    draws_per_pass(scheduler, 50, 12, lambda t, p: HARD if t == 0 and p < 5 else MIXED, batch=5)
    assert (scheduler.snooze.snoozed, scheduler.snooze.woken, scheduler.snooze.forgotten) == (0, 0, 0)


def test_a_mastered_task_that_comes_back_hopeless_is_forgotten_once_and_backs_off() -> None:
    scheduler = build({"skip_passes": 2, "too_hard": True}, 50)
    drawn = draws_per_pass(
        scheduler, 50, 14, lambda t, p: (EASY if p == 0 else HARD) if t == 0 else MIXED, batch=5
    )
    assert np.flatnonzero(drawn[:, 0]).tolist() == [0, 3, 5, 8, 13]
    assert (scheduler.snooze.snoozed, scheduler.snooze.woken, scheduler.snooze.forgotten) == (1, 1, 1)


def test_the_back_off_goes_on_across_a_restart_and_is_capped() -> None:
    def reward(task: int, number: int) -> np.ndarray:
        return HARD if task == 0 else MIXED

    scheduler = build({"too_hard": True, "too_hard_cap": 4}, 50)
    draws_per_pass(scheduler, 50, 4, reward, batch=5)
    twin = build({"too_hard": True, "too_hard_cap": 4}, 50, seed=9)
    twin.load_state_dict(scheduler.state_dict())
    passes = [draws_per_pass(s, 50, 30, reward, batch=5)[5:, 0] for s in (scheduler, twin)]
    assert passes[0].tolist() == passes[1].tolist()
    assert np.diff(np.flatnonzero(passes[0])).tolist() == [5, 5, 5, 5], "four passes skipped, and no more"


@pytest.mark.parametrize(("passes", "snooze", "gain"), Z12)
def test_the_gain_over_plain_dynamic_sampling_is_the_table_of_z12(
    passes: int, snooze: dict[str, object], gain: float
) -> None:
    assert gain_over_plain(passes, snooze) == pytest.approx(gain, rel=0.03)


def test_waking_brings_the_longest_asleep_up_first() -> None:
    scheduler = build({"mode": "permanent"}, 30)
    slept = []
    for _ in range(10):
        task = int(scheduler.draw(1)[0])
        slept.append(task)
        scheduler.observe(GroupOutcome(task=task, rewards_G=EASY))
    assert scheduler.wake(3) == 3
    assert scheduler.draw(3).tolist() == slept[:3]
    assert scheduler.snooze.woken_early == 3


@pytest.mark.parametrize("n", [1, 5])
def test_a_draw_of_the_whole_pool_is_a_pass(n: int) -> None:
    """An epoch-style caller draws everything at once; the mastered task is away for exactly n of its draws."""
    scheduler = build({"skip_passes": n}, 12)
    sizes = []
    for _ in range(3 * (n + 1)):
        tasks = scheduler.draw(12)
        sizes.append(len(tasks))
        scheduler.observe_many(
            [GroupOutcome(task=int(t), rewards_G=EASY if t == 7 else MIXED) for t in tasks]
        )
    assert sizes == [12, *[11] * n] * 3


def test_a_draw_wakes_nobody_while_others_are_awake() -> None:
    scheduler = build({"mode": "permanent"}, 10)
    for task in scheduler.draw(4):
        scheduler.observe(GroupOutcome(task=int(task), rewards_G=EASY))
    assert len(scheduler.draw(10)) == 6
    assert len(scheduler.draw(3)) == 3, "all that are awake are busy: the longest asleep come"
    assert scheduler.snooze.woken_early == 3
