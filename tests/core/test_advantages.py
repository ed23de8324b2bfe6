"""GRPO's arithmetic against hand computation and finite differences."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snoozing_env.advantages import clipped_surrogate, group_advantages


def one(new: float, old: float, advantage: float) -> tuple[float, float, float]:
    """Ratio, value and gradient of a single token from probabilities."""
    found = clipped_surrogate(np.log([new]), np.log([old]), np.array([advantage]))
    return float(found.ratio_T[0]), float(found.value_T[0]), float(found.gradient_T[0])


def test_exercise_6_a_ratio_of_six_is_clipped_to_zero_gradient() -> None:
    ratio, value, gradient = one(0.6, 0.1, 2.0)
    assert ratio == pytest.approx(6.0, rel=1e-12)
    assert value == pytest.approx(1.2 * 2.0)
    assert gradient == 0.0


def test_the_same_ratio_against_a_negative_advantage_is_not_held() -> None:
    ratio, value, gradient = one(0.6, 0.1, -2.0)
    assert (value, gradient) == pytest.approx((-12.0, -12.0))
    assert ratio == pytest.approx(6.0)


@given(
    st.floats(-3, 3),
    st.floats(-2, 2).filter(lambda a: abs(a) > 0.01),
    st.floats(0.05, 0.5),
    st.floats(0.05, 0.5),
)
def test_the_gradient_is_the_derivative_of_the_value(
    gap: float, advantage: float, low: float, high: float
) -> None:
    edges = np.log([1 - low, 1 + high])
    if np.abs(gap - edges).min() < 1e-4:
        return

    def value(at: float) -> float:
        found = clipped_surrogate(np.array([at]), np.zeros(1), np.array([advantage]), low=low, high=high)
        return float(found.value_T[0])

    slope = (value(gap + 1e-6) - value(gap - 1e-6)) / 2e-6
    found = clipped_surrogate(np.array([gap]), np.zeros(1), np.array([advantage]), low=low, high=high)
    assert float(found.gradient_T[0]) == pytest.approx(slope, rel=1e-4, abs=1e-6)


def test_advantages_have_mean_zero_and_unit_deviation_and_none_without_a_spread() -> None:
    advantages = group_advantages(np.array([1.0, 0, 0, 1, 1, 0, 0, 0]))
    assert advantages.mean() == pytest.approx(0.0, abs=1e-12)
    assert advantages.std(ddof=1) == pytest.approx(1.0)
    np.testing.assert_allclose(group_advantages(np.array([1.0, 0.0]), normalise=False), [0.5, -0.5])
    assert not group_advantages(np.full(8, 0.7)).any()


def test_arrays_that_do_not_fit_are_named() -> None:
    with pytest.raises(ValueError, match=r"shapes \(2,\), \(1,\) and \(1,\); wanted one log-prob"):
        clipped_surrogate(np.zeros(2), np.zeros(1), np.zeros(1))
    with pytest.raises(ValueError, match=r"rewards of shape \(0,\); wanted a non-empty"):
        group_advantages(np.zeros(0))
