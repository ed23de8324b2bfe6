"""The conflict monitor and `auto` on seed S0's figure 4, without tuning, on seeds that nothing was chosen on."""

import numpy as np
import pytest

from tests.sim.sides import run, standalone

SEEDS = range(500, 505)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_monitor_turns_the_collapse_of_the_permanent_filter_into_a_dip(seed: int) -> None:
    blind, watched = run("conflict", "permanent", seed), run("conflict", "permanent, watched", seed)
    assert blind.dip > 0.9
    assert watched.dip < blind.dip
    assert watched.long < 0.5 * blind.long
    assert watched.late > 0.85
    assert 1 <= watched.alarms <= 8
    assert watched.warnings[0].startswith("conflict: 'answerable' came back at a pass rate of")


def test_the_monitor_makes_the_dips_of_five_passes_shorter_and_no_deeper() -> None:
    blind = [run("conflict", "snooze 5", seed) for seed in SEEDS]
    watched = [run("conflict", "snooze 5, watched", seed) for seed in SEEDS]
    assert np.mean([w.dip for w in watched]) < 0.85 * np.mean([b.dip for b in blind])
    assert np.mean([w.long for w in watched]) < 0.7 * np.mean([b.long for b in blind])
    assert np.mean([w.late for w in watched]) >= np.mean([b.late for b in blind])


@pytest.mark.parametrize("arm", ["auto", "auto, watched"])
@pytest.mark.parametrize("seed", SEEDS)
def test_auto_keeps_a_conflicting_pair_on_a_short_leash(arm: str, seed: int) -> None:
    found = run("conflict", arm, seed)
    answerable = found.factor_S_C[-len(found.factor_S_C) // 4 :, 0].mean()
    assert answerable < 2.5, "two passes when rounded"
    assert found.late > 0.95
    if arm == "auto, watched":
        assert found.factor < 2.5, "declared opponents sleep in step"


@pytest.mark.parametrize("seed", SEEDS)
def test_auto_lets_a_standalone_set_sleep_longer_than_five_passes(seed: int) -> None:
    found = standalone(seed)
    assert found.factor > 10
    assert found.factor_S_C[0, 0] == pytest.approx(5), "where it started"


@pytest.mark.parametrize("seed", list(SEEDS)[:3])
def test_a_pair_hidden_in_one_dataset_is_watched_by_its_labels(seed: int) -> None:
    blind, watched = run("hidden", "permanent", seed), run("hidden", "permanent, watched", seed)
    assert blind.late < 0.7
    assert watched.late > 0.85
    assert run("hidden", "auto, watched", seed).factor < 2.5
