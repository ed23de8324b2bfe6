"""Shares of datasets, by draw and in the trained batch (M1 to M3)."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snoozing_env import ConfigError, TaskInfo, build_scheduler
from snoozing_env.schedulers import Curriculum
from snoozing_env.schedulers.mixture import fill
from snoozing_env.testing import outcome

SIZES = {"a": 300, "b": 60, "c": 40}
WEIGHTS = {"a": 0.5, "b": 0.3, "c": 0.2}


def build(sizes: dict[str, int] = SIZES, **config: Any) -> tuple[Curriculum, np.ndarray]:
    """A scheduler and [N] the dataset of each task."""
    tasks = [TaskInfo(key=f"{name}/{i}", dataset=name) for name, n in sizes.items() for i in range(n)]
    return build_scheduler(config, tasks, 0), np.array([t.dataset for t in tasks])


@given(
    st.lists(st.tuples(st.floats(-3, 30), st.integers(0, 20)), min_size=1, max_size=6),
    st.integers(0, 60),
)
def test_a_split_sums_to_what_was_asked_and_fits(rows: list[tuple[float, int]], n: int) -> None:
    ideal, room = np.array([r[0] for r in rows]), np.array([r[1] for r in rows])
    share = fill(n, ideal, room)
    assert share.sum() == min(n, room.sum())
    assert ((share >= 0) & (share <= room)).all()


@given(st.lists(st.floats(0.01, 5), min_size=1, max_size=6), st.integers(0, 200))
def test_with_room_a_split_is_within_one_group_of_the_ideal(weights: list[float], n: int) -> None:
    ideal = np.array(weights) / sum(weights) * n
    assert (np.abs(fill(n, ideal, np.full(len(weights), n)) - ideal) < 1 + 1e-9).all()


@pytest.mark.parametrize("kind", ["uniform", "band", "lze", "staged"])
@pytest.mark.parametrize("batch", [1, 7, 32])
def test_draws_keep_their_shares_whatever_their_size_and_the_selector(kind: str, batch: int) -> None:
    floor = {} if kind == "uniform" else {"epsilon": 0.5 if batch == 32 else 0.02}
    scheduler, dataset = build(kind=kind, mixture={"weights": WEIGHTS}, snooze={"mode": "off"}, **floor)
    given = dict.fromkeys(SIZES, 0)
    for draws in range(1, 60):
        drawn = scheduler.draw(batch)
        scheduler.observe_many([outcome(int(t), 2) for t in drawn])
        for name in SIZES:
            given[name] += int((dataset[drawn] == name).sum())
        slack = (
            1.0 if kind == "uniform" else 3.0
        )  # the floor's walk may run ahead of a share; the next draws make up
        for name, count in given.items():
            assert abs(count - WEIGHTS[name] * draws * batch) <= slack


def test_datasets_that_are_not_named_weigh_their_tasks_asleep_or_not_as_configured() -> None:
    def share_of_b(count_asleep: bool) -> float:
        scheduler, dataset = build(
            {"a": 100, "b": 100}, mixture={"count_asleep": count_asleep}, snooze={"mode": "permanent"}
        )
        for task in scheduler.draw(200).tolist():
            easy = dataset[task] == "b" and task % 4
            scheduler.observe(outcome(task, 4 if easy else 2))
        drawn = np.concatenate([_round(scheduler) for _ in range(40)])
        return float((dataset[drawn] == "b").mean())

    assert share_of_b(True) == pytest.approx(1 / 2, abs=0.01)
    assert share_of_b(False) == pytest.approx(25 / 125, abs=0.01)


def _round(scheduler: Curriculum, n: int = 20) -> np.ndarray:
    drawn = scheduler.draw(n)
    scheduler.observe_many([outcome(int(t), 2) for t in drawn])
    return drawn


def test_floors_raise_a_share_and_leave_the_others_in_proportion() -> None:
    scheduler, dataset = build(
        mixture={"weights": {"a": 8, "b": 1, "c": 1}, "floors": {"c": 0.3}}, snooze={"mode": "off"}
    )
    drawn = np.concatenate([_round(scheduler, 30) for _ in range(20)])
    shares = [float((dataset[drawn] == name).mean()) for name in "abc"]
    np.testing.assert_allclose(shares, [0.7 * 8 / 9, 0.7 / 9, 0.3], atol=0.003)


@pytest.mark.parametrize(("owe_at_most", "repaid"), [(40, 40), (12, 12), (0, 0)])
def test_a_dataset_with_nothing_to_give_lends_its_places_and_is_repaid(owe_at_most: int, repaid: int) -> None:
    scheduler, dataset = build(
        {"a": 400, "b": 40},
        mixture={"weights": {"a": 1, "b": 1}, "owe_at_most": owe_at_most},
        snooze={"mode": "off"},
    )
    held = [t for t in scheduler.draw(80).tolist() if dataset[t] == "b"]
    scheduler.observe_many([outcome(t, 2) for t in range(400) if dataset[t] == "a"])
    for _ in range(4):  # 40 of b are in flight: every draw of 20 is still full, and b is owed 10 more
        drawn = _round(scheduler)
        assert len(drawn) == 20
        assert set(dataset[drawn]) == {"a"}
    scheduler.observe_many([outcome(t, 2) for t in held])
    after = np.concatenate([_round(scheduler) for _ in range(10)])
    extra = int((dataset[after] == "b").sum()) - 100
    assert extra == pytest.approx(repaid, abs=1)


SURVIVES = {"a": 0.2, "b": 0.9, "c": 0.5}
"""Chance that a group of the dataset has a spread."""


def _batches(exact: bool, n: int = 30, batch: int = 50) -> np.ndarray:
    """[n, D] groups per dataset in each trained batch, when most of dataset a's groups are filtered."""
    scheduler, dataset = build(mixture={"weights": WEIGHTS}, snooze={"mode": "off"})
    rng = np.random.default_rng(0)
    rows = []
    for _ in range(n):
        wanted = scheduler.batch_shares(batch)
        kept = dict.fromkeys(wanted, 0)
        while sum(kept.values()) < batch:
            lack = {name: wanted[name] - kept[name] for name in wanted}
            missing = batch - sum(kept.values())
            drawn = scheduler.draw(missing, missing=lack) if exact else scheduler.draw(missing)
            for task in drawn.tolist():
                mixed = rng.random() < SURVIVES[dataset[task]]
                scheduler.observe(outcome(task, 2 if mixed else 0))
                kept[dataset[task]] += int(mixed)
        rows.append([kept[name] for name in SIZES])
    return np.array(rows)


def test_final_batch_shares_are_exact_in_every_batch_and_weights_before_filtering_are_not() -> None:
    exact, before = _batches(exact=True), _batches(exact=False)
    assert (exact == [25, 15, 10]).all()
    share_a = before[:, 0].sum() / before.sum()
    assert share_a == pytest.approx(0.5 * 0.2 / (0.5 * 0.2 + 0.3 * 0.9 + 0.2 * 0.5), abs=0.03)


def test_rounding_of_batch_shares_is_carried_from_batch_to_batch() -> None:
    scheduler, _ = build({"a": 9, "b": 9, "c": 9}, mixture={})
    batches = [scheduler.batch_shares(4) for _ in range(9)]
    assert all(sum(b.values()) == 4 for b in batches)
    assert [sum(b[name] for b in batches) for name in "abc"] == [12, 12, 12]


def test_a_refill_leaves_sleepers_asleep_and_never_takes_anothers_tasks() -> None:
    scheduler, dataset = build({"a": 20, "b": 5}, mixture={}, snooze={"mode": "permanent"})
    for task in scheduler.draw(25).tolist():
        scheduler.observe(outcome(task, 4 if dataset[task] == "b" else 2))
    assert len(scheduler.draw(9, missing={"b": 3})) == 0
    drawn = scheduler.draw(9, missing={"a": 3, "b": 6})
    assert dataset[drawn].tolist() == ["a"] * 3, "each its own part, none another's"
    assert scheduler.metrics()["woken_early"] == 0


def test_a_sleeping_dataset_is_offered_what_it_lacks_and_so_wakes_in_time() -> None:
    scheduler, dataset = build({"a": 40, "b": 10}, mixture={}, snooze={"skip_passes": 2})
    for task in scheduler.draw(50).tolist():
        scheduler.observe(outcome(task, 4 if dataset[task] == "b" else 2))
    offers = 0
    while not len(scheduler.draw(5, missing={"b": 5})):
        offers += 5
        assert offers < 100
    assert offers == pytest.approx(20, abs=5), "two skipped passes of ten tasks"


def test_who_lent_its_places_is_repaid_by_half_its_share_again_in_each_batch() -> None:
    scheduler, _ = build({"a": 50, "b": 50}, mixture={"owe_at_most": 30})
    for _ in range(10):
        asked = scheduler.batch_shares(20)
        scheduler.settle_batch(asked, {"a": 20})
    batches = [scheduler.batch_shares(20) for _ in range(12)]
    assert [b["b"] for b in batches] == [15] * 6 + [10] * 6, "30 owed, 5 a batch"
    assert all(sum(b.values()) == 20 for b in batches)


def test_a_barren_dataset_is_asked_for_one_group_a_batch_until_it_gives_again() -> None:
    scheduler, _ = build({"a": 50, "b": 50}, mixture={})
    scheduler.settle_batch(scheduler.batch_shares(20), {"a": 20}, {"b"})
    asked = scheduler.batch_shares(20)
    assert asked == {"a": 19, "b": 1}
    again, _ = build({"a": 50, "b": 50}, mixture={})
    again.load_state_dict(scheduler.state_dict())
    for s in (scheduler, again):
        s.settle_batch(asked, {"a": 19, "b": 1})
        assert s.batch_shares(20)["b"] == 15


@given(
    st.dictionaries(st.sampled_from("abcdef"), st.floats(0.05, 5), min_size=1),
    st.lists(st.integers(1, 60), min_size=1, max_size=30),
)
def test_batch_shares_stay_within_one_group_of_the_weights_over_any_batches(
    weights: dict[str, float], batches: list[int]
) -> None:
    scheduler, _ = build(dict.fromkeys(weights, 3), mixture={"weights": weights})
    total = dict.fromkeys(weights, 0)
    for n, batch in enumerate(batches):
        for name, share in scheduler.batch_shares(batch).items():
            total[name] += share
        made = sum(batches[: n + 1])
        for name, weight in weights.items():
            # Six datasets round against each other, so two of them may be one group behind at once.
            assert abs(total[name] - made * weight / sum(weights.values())) <= 2


def test_mistakes_are_answered() -> None:
    with pytest.raises(
        ConfigError, match=r"names the dataset 'aa', which no task is of\. Did you mean 'a'\?"
    ):
        build({"a": 1, "b": 1}, mixture={"weights": {"aa": 1}})
    with pytest.raises(ConfigError, match=r"floors .*sum to at most 1"):
        build({"a": 1, "b": 1}, mixture={"floors": {"a": 0.6, "b": 0.6}})
    scheduler, _ = build({"a": 1})
    with pytest.raises(ConfigError, match=r"the scheduler has no mixture; add \[scheduler\.mixture\]"):
        scheduler.draw(1, missing={"a": 1})
