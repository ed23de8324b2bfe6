"""The data-side chapter's simulation and exercises, with the schedulers as they ship."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snoozing_env import TaskInfo, build_scheduler
from snoozing_env.schedulers.learnability import Learnability, expected_survival
from snoozing_env.schedulers.source import Selection
from tests.core.chapter import SIMULATED, mean_survival


@pytest.mark.parametrize("name", SIMULATED)
def test_the_share_of_informative_groups_in_the_chapters_simulation(name: str) -> None:
    row = SIMULATED[name]
    mean, _ = mean_survival(row, seeds=20)
    assert row.low <= mean <= row.high


def test_exercise_2_a_task_at_one_half_has_four_thirds_of_the_signal_of_one_at_three_quarters() -> None:
    scheduler = build_scheduler({"kind": "learnability", "formula": "variance"}, [TaskInfo(key="a")], 0)
    assert isinstance(scheduler.source, Selection)
    selector = scheduler.source.selector
    assert isinstance(selector, Learnability)
    half, quarter = selector.weights(np.array([0.5, 0.75]))
    assert half / quarter == pytest.approx(4 / 3, rel=1e-12)


def test_exercises_3_and_5_expected_survival() -> None:
    assert expected_survival(np.array([0.5]), 8) == pytest.approx(0.99219, abs=5e-6)
    assert expected_survival(np.array([0.9]), 8) == pytest.approx(0.56953, abs=5e-6)
    assert expected_survival(np.array([0.5, 0.9]), 8) == pytest.approx(0.78086, abs=5e-6)


def chapter_score(rate: float, lo: float = 0.2, hi: float = 0.8, target: float = 0.5) -> float:
    """The chapter's `select_band_greedy` score; the higher, the sooner."""
    if lo <= rate <= hi:
        return 1.0 - abs(rate - target)
    return -abs(rate - (lo if rate < lo else hi))


@given(st.lists(st.floats(0.05, 0.95), min_size=1, max_size=40, unique=True), st.integers(1, 40))
def test_exercise_5_the_band_takes_what_the_chapters_selector_takes(rates: list[float], n: int) -> None:
    tasks = [TaskInfo(key=str(i), difficulty_prior=r) for i, r in enumerate(rates)]
    scheduler = build_scheduler({"kind": "band"}, tasks, 0)
    assert isinstance(scheduler.source, Selection)
    held = scheduler.difficulty.mean_N()
    chosen = scheduler.source.selector.choose(n, np.ones(len(rates), np.bool_))
    scores = np.array([chapter_score(r) for r in held])
    wanted = np.sort(scores)[::-1][: len(chosen)]
    assert len(chosen) == min(n, len(rates))
    np.testing.assert_allclose(scores[chosen], wanted, atol=1e-6)
