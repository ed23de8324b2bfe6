"""Seed S0's figures 3 and 4, on seeds that the learners' constants were not chosen on."""

from itertools import pairwise

import pytest

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
    assert held == (0.5,) * STEPS, "exact in every batch, although the easy subset is filtered most"


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
