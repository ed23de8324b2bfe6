"""Pass-rate estimates (D3)."""

import numpy as np
import pytest

from snoozing_env import GroupOutcome, TaskInfo, build_scheduler
from snoozing_env.schedulers.difficulty import Difficulty, DifficultyConfig


def observe(difficulty: Difficulty, successes: float, rollouts: float = 8) -> None:
    difficulty.observe(np.array([0]), np.array([successes]), np.array([rollouts]))


def build(prior: float | None = None, **config: object) -> Difficulty:
    return Difficulty(DifficultyConfig(**config), [TaskInfo(key="a", difficulty_prior=prior)])


def test_the_discounted_beta_reproduces_the_chapters_example() -> None:
    difficulty = build()
    observe(difficulty, 3)
    assert difficulty.mean_N()[0] == pytest.approx(0.39796, abs=5e-6)
    observe(difficulty, 6)
    assert difficulty.mean_N()[0] == pytest.approx(0.56540, abs=5e-6)


def test_the_decay_does_not_eat_the_prior() -> None:
    difficulty = build()
    for _ in range(200):
        observe(difficulty, 8)
    assert difficulty.failures_N[0] == 1.0
    observe(difficulty, 0)
    assert difficulty.mean_N()[0] < 0.93, "one all-wrong group still moves a posterior that was sure"


def test_last_and_ema_follow_their_definitions() -> None:
    last, ema = build(estimate="last"), build(estimate="ema", alpha=0.25)
    for successes in (4, 8, 2):
        observe(last, successes)
        observe(ema, successes)
    assert last.mean_N()[0] == 0.25
    assert ema.mean_N()[0] == pytest.approx(0.75 * (0.75 * 0.5 + 0.25 * 1.0) + 0.25 * 0.25)


def test_a_known_prior_shapes_the_estimate_until_evidence_outweighs_it() -> None:
    hard, unknown = build(prior=0.1, prior_strength=10), build(prior_strength=10)
    assert hard.mean_N()[0] == pytest.approx(0.1)
    observe(hard, 8)
    observe(unknown, 8)
    assert hard.mean_N()[0] < unknown.mean_N()[0]


def test_fractional_rewards_count_as_fractions_of_a_success() -> None:
    scheduler = build_scheduler({}, [TaskInfo(key="a")], 0)
    scheduler.draw(1)
    scheduler.observe(GroupOutcome(task=0, rewards_G=[0.5, 0.25, 0.75, 0.5]))
    assert scheduler.state_dict()["columns"]["last"] == [0.5]


def test_the_histogram_counts_only_tasks_that_were_seen() -> None:
    difficulty = Difficulty(DifficultyConfig(estimate="last"), [TaskInfo(key=str(i)) for i in range(5)])
    difficulty.observe(np.array([0, 1, 2]), np.array([0.0, 4.0, 8.0]), np.full(3, 8.0))
    assert difficulty.histogram().tolist() == [1, 0, 0, 0, 0, 1, 0, 0, 0, 1]
