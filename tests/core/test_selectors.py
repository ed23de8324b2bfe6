"""What each selector wants, against its formula."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snoozing_env import TaskInfo, build_scheduler
from snoozing_env.schedulers import Curriculum
from snoozing_env.schedulers.selector import RankingSelector, smallest
from snoozing_env.testing import outcome
from tests.core.selecting import ALL, build, first_choices, hold, teach

# -- picking ------------------------------------------------------------------------------------------------


@given(
    st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0, float("inf")]), max_size=60),
    st.integers(0, 70),
    st.integers(0, 3),
)
def test_the_smallest_are_the_smallest_and_infinite_ones_never(keys: list[float], n: int, seed: int) -> None:
    column = np.asarray(keys, np.float32)
    picked = smallest(column, n, np.random.default_rng(seed))
    finite = np.sort(column[np.isfinite(column)])
    assert len(set(picked.tolist())) == len(picked)
    assert column[picked].tolist() == finite[:n].tolist()


def test_a_large_pool_is_searched_through_a_sampled_bound_and_still_exactly() -> None:
    rng = np.random.default_rng(0)
    misleading = rng.random(300_000)
    misleading[::73] *= 1e-3  # every task that the sample sees
    for keys in (rng.random(300_000), np.sort(rng.random(300_000)), np.full(300_000, 0.5), misleading):
        column = keys.astype(np.float32)
        picked = smallest(column, 500, rng)
        assert len(set(picked.tolist())) == 500
        assert column[picked].tolist() == np.sort(column)[:500].tolist()


def test_ties_are_broken_at_random_and_not_by_position() -> None:
    picked = smallest(np.zeros(100_000, np.float32), 1000, np.random.default_rng(0))
    assert 45_000 < picked.mean() < 55_000


# -- thompson, learnability, prioritized --------------------------------------------------------------------


def test_thompson_draws_from_the_beta_posterior() -> None:
    scheduler, selector = build(40_000, kind="thompson", target=0.0, shortlist=0)
    hold(scheduler, 3.0, 5.0)
    drawn = selector.keys(ALL)  # distance to 0 = the draw itself
    assert drawn.mean() == pytest.approx(3 / 8, abs=0.003)
    assert drawn.var() == pytest.approx(3 * 5 / (64 * 9), rel=0.03)


def test_thompson_looks_at_the_unknown_where_greed_does_not_and_a_shortlist_keeps_it_plausible() -> None:
    def share_unknown(**config: Any) -> float:
        scheduler, selector = build(200, **config)
        hold(
            scheduler,
            np.r_[np.full(100, 50.0), np.full(100, 2.0)],
            np.r_[np.full(100, 40.0), np.full(100, 1.0)],
        )
        return float(
            np.mean([(selector.choose(10, np.ones(200, np.bool_)) >= 100).mean() for _ in range(50)])
        )

    greedy = share_unknown(kind="band")
    full = share_unknown(kind="thompson", shortlist=0)
    short = share_unknown(kind="thompson", shortlist=100)
    assert greedy == short == 0.0
    assert full > 0.1


def test_learnability_weights_are_the_chance_of_a_mixed_group_or_the_variance() -> None:
    rates = np.array([0.05, 0.3, 0.5, 0.9])
    for g in (2, 5, 8):
        _, group = build(1, kind="learnability", group_size=g, floor=1e-6)
        mixed = 1 - rates**g - (1 - rates) ** g
        np.testing.assert_allclose(group.weights(rates), mixed / (1 - 2 * 0.5**g), rtol=1e-6)
    _, variance = build(1, kind="learnability", formula="variance", floor=0.5)
    np.testing.assert_allclose(variance.weights(rates), [0.5, 0.84, 1.0, 0.5], rtol=1e-6)


@pytest.mark.parametrize("config", [{"kind": "learnability"}, {"kind": "prioritized", "temperature": 0.5}])
def test_draws_are_proportional_to_the_weights(config: dict[str, Any]) -> None:
    scheduler, selector = build(4, **config)
    s = np.array([1.0, 3.0, 5.0, 9.5])
    hold(scheduler, s, 10 - s)
    if config["kind"] == "learnability":
        weights = selector.weights(s / 10)
    else:
        closeness = 1 / (np.abs(s / 10 - 0.5) + 0.05)
        priority = closeness + 0.05 * s * (10 - s) / (100 * 11)
        np.testing.assert_allclose(selector.priorities(ALL), priority, rtol=1e-5)
        weights = priority**2
    np.testing.assert_allclose(first_choices(selector, 4, 20_000), weights / weights.sum(), atol=0.012)


# -- progress -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("signed", "falling_is_wanted"), [(True, False), (False, True)])
def test_progress_wants_what_rises_and_only_unsigned_what_falls(
    signed: bool, falling_is_wanted: bool
) -> None:
    scheduler, selector = build(3, kind="progress", signed=signed)
    for task, groups in enumerate(((0, 1, 2, 3), (4, 3, 2, 1), (2, 2, 2, 2))):
        teach(scheduler, task, *groups)
    rising, falling, flat = selector.weights(ALL)
    assert rising > 3 * flat
    assert flat == pytest.approx(0.02)
    assert falling == pytest.approx(rising if falling_is_wanted else flat)


def test_progress_is_the_smoothed_step_of_the_running_pass_rate() -> None:
    scheduler, selector = build(1, kind="progress", alpha=0.3, smoothing=0.5)
    teach(scheduler, 0, 0, 4, 4)
    steps = (0.3, 0.3 * 0.7)
    assert selector.step_N[0] == pytest.approx(0.5 * (0.5 * steps[0]) + 0.5 * steps[1])
    assert selector.rate_N[0] == pytest.approx(sum(steps))


# -- lze ----------------------------------------------------------------------------------------------------


def test_energy_is_anchor_times_uncertainty_times_momentum() -> None:
    scheduler, selector = build(2, kind="lze", difficulty={"estimate": "last"})
    teach(scheduler, 0, 1, 1, 3)  # p0 = .25; ema .25 before the last group; p = .75
    teach(scheduler, 1, 4, 2)  # p0 = 1 → anchor .05; ema 1; p = .5, momentum saturates
    expected = [0.75 * 4 * 0.75 * 0.25 * (1 + 0.3 * min(2 * 0.5, 1)), 0.05 * 1.0 * (1 + 0.3 * 1)]
    np.testing.assert_allclose(selector.energy(ALL), expected, rtol=1e-5)
    assert selector.ema_N[0] == pytest.approx(0.9 * 0.25 + 0.1 * 0.75)


def test_signed_momentum_does_not_reward_forgetting() -> None:
    scheduler, selector = build(2, kind="lze", signed=True, difficulty={"estimate": "last"})
    teach(scheduler, 0, 2, 1)
    teach(scheduler, 1, 2, 3)
    fell, rose = selector.energy(ALL)
    assert fell == pytest.approx(0.5 * 0.75)
    assert rose == pytest.approx(0.5 * 0.75 * (1 + 0.3 * 0.5))


def test_the_kept_tasks_are_the_top_of_the_candidates() -> None:
    scheduler, selector = build(100, kind="lze", ratio=0.4)
    s = np.linspace(0.5, 9.5, 100)
    hold(scheduler, s, 10 - s)
    selector.first_N[:] = 0.5
    chosen = selector.choose(40, np.ones(100, np.bool_))
    assert set(chosen.tolist()) == set(np.argsort(-selector.energy(ALL))[:40].tolist())


def test_two_all_correct_groups_prune_and_one_imperfect_group_brings_back() -> None:
    scheduler, selector = build(30, kind="lze", snooze={"mode": "off"})
    for groups, pruned in (((4,), 0.0), ((4,), 1 / 30), ((4,), 1 / 30), ((3,), 0.0), ((4,), 0.0)):
        teach(scheduler, 7, *groups)
        assert scheduler.metrics()["pruned_share"] == pytest.approx(pruned)
        chosen = selector.choose(12, np.ones(30, np.bool_))
        assert not (pruned and 7 in chosen)


def test_a_tenth_of_the_pruned_tasks_is_checked_again_per_pass() -> None:
    n, half = 400, 200
    scheduler, _ = build(n, kind="lze", epsilon=1e-6, snooze={"mode": "off"})
    for _ in range(2):
        scheduler.observe_many([outcome(t, 4 if t < half else 2) for t in range(n)])
    rechecks = 0
    for _ in range(10 * n // 20):  # ten passes' worth of draws
        drawn = scheduler.draw(20)
        rechecks += int((drawn < half).sum())
        scheduler.observe_many([outcome(int(t), 4 if t < half else 2) for t in drawn])
    assert rechecks == pytest.approx(10 * 0.1 * half, abs=2)


# -- staged -------------------------------------------------------------------------------------------------


def tiers(sizes: dict[float | None, int]) -> list[TaskInfo]:
    return [TaskInfo(key=f"{p}/{i}", difficulty_prior=p) for p, n in sizes.items() for i in range(n)]


def test_easy_tasks_come_first_and_a_tier_opens_once_the_last_one_is_mostly_solved() -> None:
    scheduler, _ = build(
        tiers({0.9: 10, None: 10, 0.1: 10}), kind="staged", epsilon=1e-6, snooze={"mode": "off"}
    )
    assert set(scheduler.draw(10).tolist()) == set(range(10))
    for task in range(10):
        scheduler.observe(outcome(task, 4))
    second = scheduler.draw(10).tolist()
    assert set(second) == set(range(10, 20)), "fewest visits first, now over two tiers"
    scheduler.observe_many([outcome(t, 1) for t in second])
    assert max(scheduler.draw(20)) < 20, "an unsolved tier does not open the next"
    assert scheduler.metrics()["stage"] == 1.0
    assert len(scheduler.draw(10)) == 10, "but a draw is filled from later tiers rather than cut short"


def test_a_schedule_opens_tiers_by_passes_over_the_open_tasks() -> None:
    scheduler, _ = build(
        tiers({0.9: 10, 0.1: 10}), kind="staged", epsilon=1e-6, advance="schedule", passes_per_tier=2
    )
    stages = []
    for _ in range(6):
        drawn = scheduler.draw(5)
        scheduler.observe_many([outcome(int(t), 2) for t in drawn])
        stages.append(scheduler.metrics()["stage"])
    assert stages == [0, 0, 0, 0, 1, 1]


def test_staged_wraps_any_selector_and_saves_what_it_keeps() -> None:
    scheduler, _ = build(
        tiers({0.9: 4, 0.1: 4}), kind="staged", inner={"kind": "lze"}, snooze={"mode": "off"}
    )
    for _ in range(2):
        scheduler.observe_many([outcome(t, 4) for t in range(4)])
    scheduler.draw(1)
    twin, _ = build(tiers({0.9: 4, 0.1: 4}), kind="staged", inner={"kind": "lze"}, snooze={"mode": "off"})
    twin.load_state_dict(scheduler.state_dict())
    assert twin.metrics()["pruned_share"] == 0.5
    assert twin.metrics()["stage"] == 1.0


# -- state --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["band", "lze", "progress", "thompson"])
def test_selector_state_follows_its_task_when_the_pool_is_reordered(kind: str) -> None:
    infos = [TaskInfo(key=str(i), dataset="ab"[i % 2]) for i in range(40)]
    scheduler, _ = build(infos, kind=kind)
    for version in range(30):
        for task in scheduler.draw(6).tolist():
            scheduler.observe(outcome(task, task % 5, valid=4 if task % 7 else 1, version=version))
    changed = [*reversed(infos[3:]), TaskInfo(key="new", dataset="c")]
    twin, _ = build(changed, kind=kind)
    report = twin.load_state_dict(scheduler.state_dict())
    assert (report.kept, report.fresh, report.dropped) == (37, 1, 3)
    old, new = scheduler.snapshot().columns, twin.snapshot().columns
    for name in set(old) - {"order"}:
        assert new[name][:37].tolist() == old[name][3:][::-1].tolist(), name
    drawn = [t for _ in range(38) for t in twin.draw(2).tolist()]
    assert sorted(drawn) == list(range(38)), "every task can be drawn, none twice while busy"


@pytest.mark.parametrize(
    "kind", ["band", "dots", "lze", "progress", "thompson", "learnability", "prioritized", "staged"]
)
def test_a_task_costs_at_most_64_bytes_of_state(kind: str) -> None:
    config = {"kind": kind} | ({"inner": {"kind": "lze"}} if kind == "staged" else {})
    scheduler, selector = build(1000, **config)
    assert sum(c.nbytes for c in scheduler.snapshot().columns.values()) / 1000 <= 64
    assert isinstance(selector, RankingSelector) or kind in ("lze", "staged")


@pytest.mark.parametrize(
    "kind", ["band", "dots", "lze", "progress", "thompson", "learnability", "prioritized", "staged"]
)
def test_the_next_ten_thousand_draws_after_a_save_are_the_same(kind: str) -> None:
    infos = [
        TaskInfo(key=str(i), dataset="ab"[i % 2], difficulty_prior=i % 10 / 10, text=f"{i % 9} and {i}")
        for i in range(700)
    ]
    config = {"kind": kind, "mixture": {"weights": {"a": 2, "b": 1}}, "snooze": {"skip_passes": 1}}
    scheduler, _ = build(infos, **config)

    def go_on(one: Curriculum, rounds: int, start: int) -> list[list[int]]:
        draws = []
        for version in range(start, start + rounds):
            drawn = one.draw(50).tolist()
            draws.append(drawn)
            solved = [(t * 7 + version) % 6 % 5 if t % 3 else 4 for t in drawn]
            one.observe_many([outcome(t, k, version=version) for t, k in zip(drawn, solved, strict=True)])
        return draws

    go_on(scheduler, 40, 0)
    twin = build_scheduler(config, infos, 99)
    twin.restore(scheduler.snapshot())
    assert go_on(scheduler, 200, 40) == go_on(twin, 200, 40)


@pytest.mark.parametrize(
    "kind",
    ["uniform", "band", "dots", "lze", "progress", "thompson", "learnability", "prioritized", "staged"],
)
@pytest.mark.parametrize("solved", [0, 4])
@pytest.mark.parametrize("mode", ["deterministic", "permanent"])
def test_a_pool_that_is_all_solved_or_all_impossible_never_stalls(kind: str, solved: int, mode: str) -> None:
    scheduler = build_scheduler(
        {"kind": kind, "snooze": {"mode": mode, "too_hard": True}},
        [TaskInfo(key=str(i), text=f"number {i}") for i in range(30)],
        0,
    )
    for version in range(60):
        drawn = scheduler.draw(10).tolist()
        assert 0 < len(drawn) <= 10
        scheduler.observe_many([outcome(t, solved, version=version) for t in drawn])
    assert scheduler.metrics()["observed_groups"] > 300
