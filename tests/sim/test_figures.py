"""Seed S0's figures 3 and 4, on seeds that the learners' constants were not chosen on."""

from itertools import pairwise

import pytest

from snoozing_env.sim.compare import SimulationConfig, simulate_all
from snoozing_env.sim.run import LoopConfig
from tests.sim.figures import ARMS, FRESH_SEEDS, STEPS, answerable, hard_share, hard_shares


@pytest.mark.parametrize("seed", FRESH_SEEDS)
def test_equal_weights_before_filtering_drift_to_the_hard_subset(seed: int) -> None:
    first, last = hard_share("plain", seed)
    assert first < 0.55
    assert last > 0.7


@pytest.mark.parametrize("seed", FRESH_SEEDS)
def test_figure_3_equal_weights_of_draws_drift_and_equal_shares_of_the_batch_hold(seed: int) -> None:
    drifting, held = hard_shares("before filtering", seed), hard_shares("final batch", seed)
    assert sum(drifting[:15]) / 15 < 0.55
    assert sum(drifting[-15:]) / 15 > 0.7
    assert sum(held[-15:]) / 15 == pytest.approx(0.5, abs=0.02)
    exact = sum(share == 0.5 for share in held)
    assert exact >= 0.97 * STEPS, (
        "but for a few late ones, when hardly a group of the easy subset has a spread"
    )
    assert hard_shares("final batch, patient", seed) == (0.5,) * STEPS


def test_the_shipped_arms_of_figure_3_are_those_of_the_law() -> None:
    config = SimulationConfig(arm_set="shares", presets=("subsets",), seeds=(100,), loop=LoopConfig(steps=20))
    runs = {run.summary.scheduler: run.trace.steps for run in simulate_all(config)}
    for name, steps in runs.items():
        assert tuple(step.shares["hard"] for step in steps) == hard_shares(name, 100)[:20]


@pytest.mark.parametrize("seed", FRESH_SEEDS)
def test_the_permanent_filter_collapses_into_abstaining(seed: int) -> None:
    found = answerable("permanent", seed)
    assert found["lowest"] < 0.1
    assert found["late"] < 0.7
    assert found["unanswerable_share"] > 0.9


@pytest.mark.parametrize("seed", FRESH_SEEDS)
@pytest.mark.parametrize("arm", ["N=2", "N=3", "N=5"])
def test_snoozing_recovers_from_its_dip(arm: str, seed: int) -> None:
    found = answerable(arm, seed)
    assert found["recovered"] > 0.95
    assert found["late"] > 0.9, "later waves are shallow"


@pytest.mark.parametrize("seed", FRESH_SEEDS)
def test_longer_snoozes_dip_deeper(seed: int) -> None:
    dips = [answerable(arm, seed)["dip"] for arm in ARMS]
    assert all(shallow < deep for shallow, deep in pairwise(dips)), dict(zip(ARMS, dips, strict=True))


@pytest.mark.parametrize("seed", FRESH_SEEDS)
def test_plain_dynamic_sampling_keeps_the_answerable_side(seed: int) -> None:
    assert answerable("plain", seed)["dip"] < 0.03
