"""The simulated learner against the formulas of its module text."""

import numpy as np
import pytest

from snoozing_env.config import parse_config
from snoozing_env.errors import ConfigError
from snoozing_env.sim.learner import Learner, LearnerConfig, PopulationConfig

SPREAD, NONE = np.array([1.0, 0, 0, 1, 1, 0, 1, 0]), np.ones(8)


def learner(*populations: PopulationConfig, seed: int = 0, **rates: float) -> Learner:
    """A learner whose rates are all zero unless given."""
    still = {"skill_rate": 0.0, "cluster_rate": 0.0, "own_rate": 0.0, "side_rate": 0.0, "forget": 0.0}
    return Learner(LearnerConfig.model_validate({"populations": populations, **still, **rates}), seed)


def logits(world: Learner) -> np.ndarray:
    p = world.rates_N()
    return np.log(p / (1 - p))


def flat(name: str = "a", tasks: int = 10, **more: object) -> PopulationConfig:
    return PopulationConfig.model_validate({"name": name, "tasks": tasks, "spread": 0.0, **more})


@pytest.mark.parametrize("difficulty", [-2.0, 0.0, 1.0])
def test_a_group_pushes_by_the_policy_gradient_of_its_pass_rate(difficulty: float) -> None:
    world = learner(flat(tasks=20_000, difficulty=difficulty), own_rate=1.0)
    tasks = np.arange(20_000)
    p = float(world.rates_N()[0])
    world.train(tasks, list(world.sample(tasks, 8)))
    assert np.mean(world.own_N) == pytest.approx(7 / 8 * p * (1 - p), rel=0.03)


def test_a_group_without_spread_teaches_nothing() -> None:
    world = learner(flat(), flat("b", side=1), own_rate=1.0, skill_rate=1.0, cluster_rate=1.0, side_rate=1.0)
    before = world.rates_N()
    world.train(np.array([0, 12]), [NONE, np.zeros(8)])
    np.testing.assert_array_equal(world.rates_N(), before)


def test_the_normalised_advantage_pushes_by_the_standard_deviation() -> None:
    config = LearnerConfig(populations=(flat(),), own_rate=1.0, forget=0.0, advantage="normalised")
    world = Learner(config, 0)
    world.train(np.array([3]), [np.array([1.0, 0, 0, 0])])
    assert world.own_N[3] == pytest.approx(np.sqrt(3) / 4)


def test_what_is_not_trained_fades_by_its_share_each_update() -> None:
    world = learner(flat(), own_rate=4.0, forget=0.1)
    world.train(np.array([0]), [SPREAD])
    for _ in range(5):
        world.train(np.array([1]), [SPREAD])
    assert world.own_N[0] == pytest.approx(0.9**5)


def test_training_one_side_lowers_the_other_by_as_much() -> None:
    world = learner(flat("yes", side=1), flat("no", side=-1), flat("else"), side_rate=2.0)
    world.train(np.array([0, 1]), [SPREAD, SPREAD])
    np.testing.assert_allclose(logits(world), np.repeat([0.5, -0.5, 0.0], 10), atol=1e-12)


def test_a_batch_of_both_sides_in_balance_leaves_the_lean_alone() -> None:
    world = learner(flat("yes", side=1), flat("no", side=-1), side_rate=2.0)
    world.train(np.array([0, 10]), [SPREAD, SPREAD])
    assert world.lean == 0.0


def test_a_skill_is_shared_by_the_populations_that_name_it_and_no_other() -> None:
    world = learner(flat("a", skill="x"), flat("b", skill="x"), flat("c", skill="y"), skill_rate=4.0)
    world.train(np.array([0]), [SPREAD])
    np.testing.assert_allclose(logits(world), np.repeat([1.0, 1.0, 0.0], 10), atol=1e-12)


def test_a_cluster_is_shared_by_its_tasks_and_crosses_no_population() -> None:
    world = learner(flat("a", tasks=3, cluster_size=2), flat("b", tasks=2, cluster_size=2), cluster_rate=4.0)
    world.train(np.array([2]), [SPREAD])
    np.testing.assert_allclose(logits(world), [0, 0, 1, 0, 0], atol=1e-12)
    assert [task.cluster for task in world.tasks] == ["0", "0", "1", "2", "2"]


def test_a_task_that_is_in_a_batch_twice_learns_twice() -> None:
    world = learner(flat(), own_rate=4.0)
    world.train(np.array([5, 5]), [SPREAD, SPREAD])
    assert world.own_N[5] == pytest.approx(2.0)


def test_label_noise_flips_verdicts_and_only_the_honest_part_of_the_spread_teaches() -> None:
    world = learner(flat(tasks=40_000, difficulty=-2.0, label_noise=0.2), own_rate=1.0)
    tasks, p = np.arange(40_000), float(world.rates_N()[0])
    rewards = world.sample(tasks, 8)
    assert rewards.mean() == pytest.approx(p * 0.8 + (1 - p) * 0.2, abs=0.005)
    world.train(tasks, list(rewards))
    assert np.mean(world.own_N) == pytest.approx(7 / 8 * p * (1 - p) * 0.6, rel=0.03)


def test_a_broken_task_is_never_solved_and_never_learned() -> None:
    world = learner(flat(broken=1.0, label_noise=0.3, difficulty=-9.0), own_rate=1.0, skill_rate=50.0)
    assert not world.sample(np.arange(10), 64).any()
    world.train(np.arange(10), [SPREAD] * 10)
    assert not world.rates_N().any()
    assert not world.own_N.any()


def test_the_seed_fixes_tasks_and_rollouts() -> None:
    one, same, other = (learner(flat(spread=2.0), seed=seed) for seed in (3, 3, 4))
    tasks = np.arange(10)
    np.testing.assert_array_equal(one.difficulty_N, same.difficulty_N)
    np.testing.assert_array_equal(one.sample(tasks, 8), same.sample(tasks, 8))
    assert (one.difficulty_N != other.difficulty_N).all()


def test_two_populations_may_hide_in_one_data_set() -> None:
    world = learner(flat("a", dataset="qa"), flat("b", dataset="qa"))
    assert {task.dataset for task in world.tasks} == {"qa"}
    assert len({task.key for task in world.tasks}) == 20


def test_a_mistyped_rate_is_answered_with_the_nearest_one() -> None:
    with pytest.raises(ConfigError, match=r"unknown key 'skil_rate'\. Did you mean 'skill_rate'\?"):
        parse_config(LearnerConfig, {"skil_rate": 1.0}, where="learner")
