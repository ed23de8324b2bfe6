"""Effective sample size against its closed form, and what its smoothing may drive."""

from __future__ import annotations

import numpy as np
import pytest

from snoozing_env.importance import Ess, EssConfig, SmoothedEss, StalenessReport, kish_ess, second_moment_ess

CLAMP = (0.8, 1.2)


def lognormal(sigma: float, n: int, seed: int = 0) -> np.ndarray:
    """Log-ratios with E[ratio] = 1, in antithetic pairs so that the sample mean is close to it."""
    z = np.random.default_rng(seed).standard_normal(n // 2)
    return np.concatenate([z, -z]) * sigma - sigma**2 / 2


@pytest.mark.parametrize("sigma", [0.1, 0.3, 0.5])
def test_log_normal_ratios_have_the_sample_size_of_theory(sigma: float):
    ess = Ess.of(lognormal(sigma, 400_000), clamp=CLAMP)
    assert ess.kish == pytest.approx(np.exp(-(sigma**2)), rel=0.01)
    assert ess.second_moment == pytest.approx(np.exp(-(sigma**2)), rel=0.01)


def test_clamping_hides_the_tail():
    ess = Ess.of(lognormal(1.0, 100_000), clamp=CLAMP)
    assert ess.kish < 0.5 < 0.9 < ess.kish_clamped


def test_small_batches_flatter_kish_and_one_sample_is_always_perfect():
    log_ratios = lognormal(1.0, 80_000, seed=1)
    np.random.default_rng(2).shuffle(log_ratios)
    small = np.mean([kish_ess(np.exp(chunk)) for chunk in log_ratios.reshape(-1, 8)])
    assert small > 1.3 * np.exp(-1.0)
    assert kish_ess(np.array([7.0])) == 1.0


def test_fresh_data_is_worth_itself_and_no_data_is_not_a_number():
    assert kish_ess(np.ones(5)) == second_moment_ess(np.ones(5)) == 1.0
    assert np.isnan(kish_ess(np.empty(0)))
    assert np.isnan(second_moment_ess(np.empty(0)))


def test_a_report_separates_ages_and_counts_clipped_tokens():
    fresh, stale = np.zeros(4), np.full(4, 0.5)
    report = StalenessReport.of([fresh, fresh, stale, -stale], [0, 0, 3, 3], clamp=CLAMP)
    assert report.by_age[0].kish == 1.0
    assert report.by_age[3].kish < 0.6
    assert report.clipped_share == 0.5
    assert report.token.samples == 16
    assert report.sequence.samples == 4


def test_endless_ratios_stay_finite():
    ess = Ess.of(np.array([800.0, 0.0]), clamp=CLAMP)
    assert ess.kish == pytest.approx(0.5)
    assert ess.second_moment >= 0.0


def test_the_learning_rate_follows_the_root_of_the_running_sample_size_and_never_rises():
    scale = SmoothedEss(EssConfig(scale_learning_rate=True, smoothing=0.0))
    assert scale.update(0.8) == 1.0
    assert scale.update(0.2) == pytest.approx(0.5)
    assert scale.update(float("nan")) == pytest.approx(0.5)
    assert scale.update(1e-9) == 0.1
    assert SmoothedEss(EssConfig()).update(0.01) == 1.0


def test_a_resumed_running_value_is_the_same():
    first = SmoothedEss(EssConfig(scale_learning_rate=True))
    for ess in (0.9, 0.5, 0.4):
        first.update(ess)
    second = SmoothedEss(EssConfig(scale_learning_rate=True))
    second.restore(first.state())
    assert second.update(0.3) == first.update(0.3)
