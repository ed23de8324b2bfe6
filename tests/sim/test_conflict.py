"""The conflict monitor and `auto` on seed S0's figure 4, without tuning, on seeds that nothing was chosen on."""

import numpy as np
import pytest

from tests.sim.sides import run, standalone

SEEDS = range(500, 504)


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


def test_auto_finds_that_a_pair_conflicts_without_being_told() -> None:
    """Judged over seeds: in one of them the sides hardly pull, and sleeping for five passes does no harm."""
    found = [run("conflict", "auto", seed) for seed in SEEDS]
    settled = [f.factor_S_C[-len(f.factor_S_C) // 4 :, 0].mean() for f in found]
    assert sum(n < 2.5 for n in settled) >= 3, "two passes when rounded"
    assert np.mean([f.long for f in found]) < 0.5 * np.mean(
        [run("conflict", "snooze 5", s).long for s in SEEDS]
    )


def test_a_declared_pair_settles_at_two_passes_and_hardly_dips() -> None:
    found = [run("conflict", "auto, watched", seed) for seed in SEEDS]
    assert all(f.factor < 2.5 for f in found), [f.factor for f in found]
    assert all(f.dip < 0.15 for f in found)
    assert all(f.late > 0.95 for f in found)


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
    assert run("hidden", "auto, watched", seed).late > 0.95
