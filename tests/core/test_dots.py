"""Difficulty-targeted selection: the reference, the prediction and what is chosen by it (S7)."""

from typing import Any

import numpy as np
import pytest

from snoozing_env import CatalogueError, TaskInfo, build_scheduler
from snoozing_env.embeddings import HashedConfig, embed
from snoozing_env.schedulers import Curriculum
from snoozing_env.schedulers.dots import DRAWN, Dots
from snoozing_env.schedulers.prediction import Attention, Ridge, calibrate, forecast, logit, pearson
from snoozing_env.schedulers.source import Selection
from snoozing_env.testing import outcome
from tests.core.text_pool import text_pool


def build(n: int = 400, **config: Any) -> tuple[Curriculum, Dots, np.ndarray]:
    """A scheduler over texts, its selector, and the true difficulties."""
    pool = text_pool(n, 0)
    scheduler = build_scheduler({"kind": "dots", "snooze": {"mode": "off"}, **config}, pool.tasks, 0)
    assert isinstance(scheduler.source, Selection)
    assert isinstance(scheduler.source.selector, Dots)
    return scheduler, scheduler.source.selector, pool.difficulty_N


def roll(scheduler: Curriculum, difficulty_N: np.ndarray, n: int, version: int = 0) -> list[int]:
    """Draw and judge n groups of eight, as well as their difficulty lets it."""
    drawn = scheduler.draw(n).tolist()
    solved = [round(8 * (1 - difficulty_N[t])) for t in drawn]
    scheduler.observe_many(
        [outcome(t, k, group=8, valid=8, version=version) for t, k in zip(drawn, solved, strict=True)]
    )
    return drawn


# -- prediction ---------------------------------------------------------------------------------------------


def test_attention_is_the_softmax_weighted_mean_of_the_reference_difficulties() -> None:
    x_KH = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]], np.float32)
    d_K, temperature = np.array([0.1, 0.5, 0.9]), 0.3
    x = np.array([[0.8, 0.6]], np.float32)
    weight = np.exp((x @ x_KH.T)[0] / temperature)
    found = Attention(x_KH, d_K, temperature)(x)
    assert found[0] == pytest.approx(float(weight @ d_K / weight.sum()), rel=1e-5)
    held = np.exp(np.array([0.0, -1.0]) / temperature)  # the first left out of its own mean
    assert Attention(x_KH, d_K, temperature).held_out_K[0] == pytest.approx(
        float(held @ d_K[1:] / held.sum()), rel=1e-5
    )


def test_the_ridge_leaves_each_reference_out_exactly() -> None:
    rng = np.random.default_rng(0)
    x_KH = rng.standard_normal((30, 6)).astype(np.float32)
    d_K = 0.5 + 0.1 * x_KH[:, 0].astype(np.float64) + 0.05 * rng.standard_normal(30)
    fit = Ridge(x_KH, d_K)
    centred = (x_KH - x_KH.mean(axis=0)).astype(np.float64)
    penalty = fit.setting * np.linalg.eigvalsh(centred @ centred.T).clip(0).mean()
    for k in (0, 7, 29):
        design = np.concatenate([np.ones((29, 1)), np.delete(centred, k, axis=0)], axis=1)
        held = penalty * np.diag([0.0] + [1.0] * 6)  # the intercept is free
        weights = np.linalg.solve(design.T @ design + held, design.T @ np.delete(d_K, k))
        assert fit.held_out_K[k] == pytest.approx(float(np.array([1, *centred[k]]) @ weights), abs=1e-6)
    assert pearson(fit(x_KH).astype(np.float64), d_K) > 0.8


@pytest.mark.parametrize("rule", ["attention", "ridge"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_predicted_difficulty_correlates_with_the_true_one_beyond_the_reference(rule: Any, seed: int) -> None:
    pool = text_pool(1500, seed)
    vectors = embed(HashedConfig(), [task.text for task in pool.tasks])
    rng = np.random.default_rng(seed)
    reference, held_out = np.arange(256), np.arange(256, 1500)
    measured = rng.binomial(8, pool.difficulty_N[reference]) / 8
    found = forecast(vectors, reference, measured, rule=rule, temperature=None, calibrated=True)
    assert pearson(found.difficulty_N[held_out].astype(np.float64), pool.difficulty_N[held_out]) > 0.7
    assert found.correlation > 0.5


def test_calibration_brings_the_mean_to_the_references_and_shrinks_the_error() -> None:
    rng = np.random.default_rng(1)
    true = rng.uniform(0.05, 0.95, 400)
    measured = rng.binomial(8, true) / 8
    timid = 0.4 + 0.2 * true  # right order, wrong scale and level: what averaging over neighbours does
    fit = calibrate(timid[:200], measured[:200])
    after = fit(timid[200:])
    assert abs(float(fit(timid[:200]).mean()) - measured[:200].mean()) < 1e-6
    assert ((after - true[200:]) ** 2).mean() < 0.3 * ((timid[200:] - true[200:]) ** 2).mean()


def test_texts_that_say_nothing_predict_the_mean_of_the_references() -> None:
    rng = np.random.default_rng(2)
    vectors = rng.standard_normal((900, 16)).astype(np.float32)
    spreads = []
    for _ in range(20):
        measured = rng.binomial(8, rng.uniform(0.2, 0.9, 64)) / 8
        found = forecast(
            vectors, np.arange(64), measured, rule="attention", temperature=None, calibrated=True
        )
        assert found.difficulty_N.mean() == pytest.approx(measured.mean(), abs=0.06)
        spreads.append(float(found.difficulty_N.std()))
    assert np.mean(spreads) < 0.06


@pytest.mark.parametrize("rule", ["attention", "ridge"])
@pytest.mark.parametrize("measured", [[0.5], [0.0, 0.0], [1.0] * 12, [0.3] * 12])
def test_any_reference_predicts_something_finite(rule: Any, measured: list[float]) -> None:
    vectors = np.random.default_rng(0).standard_normal((40, 4)).astype(np.float32)
    vectors[3] = 0
    for calibrated in (True, False):
        found = forecast(
            vectors,
            np.arange(len(measured)),
            np.array(measured),
            rule=rule,
            temperature=None,
            calibrated=calibrated,
        )
        assert np.isfinite(found.difficulty_N).all()
        assert ((found.difficulty_N >= 0) & (found.difficulty_N <= 1)).all()
        assert np.isfinite([found.correlation, found.slope, found.setting]).all()


def test_the_logit_keeps_its_distance_from_certainty() -> None:
    assert logit(np.array([0.0, 0.5, 1.0])).tolist() == pytest.approx([-4.595, 0, 4.595], abs=1e-3)


# -- reference and draws ------------------------------------------------------------------------------------


def test_reference_tasks_come_through_the_ordinary_draw_and_are_learned_from_like_any_other() -> None:
    scheduler, selector, difficulty = build(reference=64, epsilon=1e-6)
    drawn = [t for _ in range(4) for t in roll(scheduler, difficulty, 16)]
    assert sorted(np.flatnonzero(selector.reference_N >= 0).tolist()) == sorted(drawn)
    assert (scheduler.difficulty.visits_N[drawn] == 1).all()
    assert scheduler.metrics()["drawn_groups"] == 64
    assert np.allclose(selector.reference_N[drawn], np.round(8 * difficulty[drawn]) / 8)


def test_after_the_reference_draws_are_near_one_half_and_truly_so() -> None:
    scheduler, selector, difficulty = build(1600, reference=256)
    while not selector.refreshes:
        roll(scheduler, difficulty, 32)
    chosen = [t for _ in range(4) for t in roll(scheduler, difficulty, 32)]
    assert np.abs(difficulty[chosen] - 0.5).mean() < 0.7 * np.abs(difficulty - 0.5).mean()
    predicted = np.abs(selector.predicted_N - 0.5)
    assert predicted[chosen].mean() < np.quantile(predicted, 0.15)


def test_a_draw_is_gumbel_top_k_of_the_softmax() -> None:
    scheduler, selector, _ = build(8, reference=2, tau=0.1, repeat=True)
    roll(scheduler, np.full(8, 0.5), 2)
    selector.choose(0, np.ones(8, np.bool_))
    selector.predicted_N[:] = np.array([0.5, 0.45, 0.4, 0.3, 0.6, 0.75, 0.9, 0.05], np.float32)
    wanted = np.exp(-np.abs(selector.predicted_N - 0.5) / 0.1)
    wanted /= wanted.sum()
    first = [int(selector.choose(1, np.ones(8, np.bool_))[0]) for _ in range(8000)]
    assert np.abs(np.bincount(first, minlength=8) / 8000 - wanted).max() < 0.02


def test_between_predictions_no_task_has_two_turns_while_another_has_had_none() -> None:
    scheduler, selector, difficulty = build(80, reference=20, refresh_groups=10_000, epsilon=1e-6)
    while not selector.refreshes:
        roll(scheduler, difficulty, 5)
    already = int(selector.had_turn_N.sum())
    drawn = [t for _ in range((80 - already) // 5) for t in roll(scheduler, difficulty, 5)]
    assert len(set(drawn)) == len(drawn)


def test_a_refresh_is_due_by_weight_updates_or_by_draws_and_begins_with_a_new_random_reference() -> None:
    for clock in ({"refresh_updates": 3}, {"refresh_groups": 40, "refresh_updates": 10**6}):
        scheduler, selector, difficulty = build(reference=40, **clock)
        for version in range(60):
            roll(scheduler, difficulty, 10, version=version)
        assert selector.refreshes >= 5


def test_while_references_are_out_the_last_prediction_stands() -> None:
    scheduler, selector, difficulty = build(reference=40, refresh_updates=2)
    for version in range(6):
        roll(scheduler, difficulty, 10, version=version)
    before = selector.predicted_N.copy()
    refreshes = selector.refreshes
    scheduler.draw(100)  # all forty references and sixty others, none of them back
    assert selector.refreshes == refreshes
    assert (selector.reference_N == DRAWN).sum() + (selector.reference_N >= 0).sum() == 40
    assert (selector.reference_N == DRAWN).sum() >= 30
    assert selector.predicted_N.tolist() == before.tolist()


def test_references_that_never_come_back_are_replaced() -> None:
    scheduler, selector, difficulty = build(reference=40, refresh_updates=2)
    for version in range(6):
        roll(scheduler, difficulty, 10, version=version)
    begun = selector.refreshes
    scheduler.draw(40)  # lost for good: neither judged nor released
    for version in range(6, 30):
        roll(scheduler, difficulty, 10, version=version)
    assert selector.refreshes > begun


def test_a_tasks_own_rollouts_can_outweigh_its_prediction() -> None:
    scheduler, selector, _ = build(40, reference=8, own_prior=8, half_life=float("inf"))
    task = int(scheduler.draw(1)[0])
    scheduler.observe(outcome(task, 8, group=8, valid=8))
    selector.predicted_N[:] = 0.5
    blended = selector.difficulty(slice(None))
    assert blended[task] == pytest.approx((8 * 0.5 + 0) / (8 + 7.8), abs=0.03)
    assert np.delete(blended, task).tolist() == pytest.approx([0.5] * 39)


# -- state --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rounds", [3, 9, 17])
def test_a_run_resumed_in_the_middle_of_a_refresh_goes_on_bit_for_bit(rounds: int) -> None:
    config = {"reference": 60, "refresh_updates": 5}
    scheduler, selector, difficulty = build(**config)
    for version in range(rounds):
        roll(scheduler, difficulty, 16, version=version)
    twin, other, _ = build(**config)
    roll(twin, difficulty, 7)
    twin.restore(scheduler.snapshot())
    for version in range(rounds, rounds + 30):
        assert roll(scheduler, difficulty, 16, version) == roll(twin, difficulty, 16, version)
    assert selector.refreshes == other.refreshes > 1


def test_tasks_that_join_a_resumed_run_are_predicted_the_mean_until_the_next_refresh() -> None:
    scheduler, selector, difficulty = build(200, reference=40, refresh_updates=1000)
    for _ in range(6):
        roll(scheduler, difficulty, 10)
    assert selector.refreshes == 1
    more = [*reversed(scheduler.tasks[20:]), TaskInfo(key="new", text="Something else entirely.")]
    twin = build_scheduler(scheduler.config, more, 1)
    twin.restore(scheduler.snapshot())
    assert isinstance(twin.source, Selection)
    assert isinstance(twin.source.selector, Dots)
    predicted = twin.source.selector.predicted_N
    assert predicted[:-1].tolist() == selector.predicted_N[20:][::-1].tolist()
    assert predicted[-1] == pytest.approx(predicted[:-1].mean())


def test_the_vectors_are_no_part_of_the_state() -> None:
    scheduler, selector, _ = build(1000)
    assert sum(c.nbytes for c in scheduler.snapshot().columns.values()) / 1000 <= 64
    assert sum(c.nbytes for c in selector.columns().values()) / 1000 == 9


def test_tasks_without_text_are_refused_with_what_to_do() -> None:
    tasks = [TaskInfo(key="a", text="Add."), TaskInfo(key="b"), TaskInfo(key="c", text=" ")]
    with pytest.raises(
        CatalogueError,
        match=r"2 of 3 have none \(the first: 'b'\); pass TaskInfo\(text=\.\.\.\), or take a kind",
    ):
        build_scheduler({"kind": "dots"}, tasks, 0)
