"""The `auto` snooze factor: luck told from forgetting, and how long a task may sleep (Z9)."""

import json

import numpy as np
import pytest

from snoozing_env import ConfigError, GroupOutcome, TaskInfo, build_scheduler
from snoozing_env.schedulers import Curriculum
from snoozing_env.schedulers.forgetting import AutoConfig, Forgetting
from tests.core.appearances import EASY, MIXED, build, draws_per_pass, gaps

AUTO = {"skip_passes": "auto"}


def rechecked(
    luck: float, hazard: float, lengths: list[int], n: int = 4000, seed: int = 0, **config: float
) -> Forgetting:
    """A cell after n re-checks, evenly over the lengths, of tasks that lapse as the model says."""
    rng = np.random.default_rng(seed)
    cell = Forgetting(AutoConfig(**config), ["qa"], {})
    length_B = rng.choice(lengths, n)
    lapsed_B = rng.random(n) > (1 - luck) * np.exp(-hazard * length_B)
    zeros = np.zeros(n, np.int64)
    cell.observe(zeros, passes_B=length_B, lapsed_B=lapsed_B, now_B=zeros)
    return cell


def test_without_rechecks_the_factor_is_the_prior_s() -> None:
    assert Forgetting(AutoConfig(), ["a"], {}).factor_C == pytest.approx([5.0])
    assert Forgetting(AutoConfig(prior_passes=3), ["a"], {}).factor_C == pytest.approx([3.0])


def test_a_few_rechecks_leave_it_near_the_prior() -> None:
    held = rechecked(0.0, 0.0, [6], n=3)
    assert 5.0 < held.factor_C[0] < 8.0
    lapsed = rechecked(1.0, 0.0, [6], n=1)
    assert 1.5 < lapsed.factor_C[0] < 5.0


@pytest.mark.parametrize("hazard", [0.005, 0.02, 0.1])
@pytest.mark.parametrize("luck", [0.0, 0.104, 0.296])
def test_the_posterior_finds_the_hazard_whatever_the_luck(luck: float, hazard: float) -> None:
    found = rechecked(luck, hazard, [2, 4, 7, 12], n=100_000).hazard_C[0]
    assert found == pytest.approx(hazard, rel=0.1, abs=0.0015)


def test_failures_that_do_not_depend_on_the_sleep_are_no_forgetting() -> None:
    standalone = rechecked(0.25, 0.0, [2, 6, 10])
    conflicting = rechecked(0.02, 0.04, [2, 6, 10])
    share = [cell._lapsed_C_T.sum() / cell.rechecks()[0] for cell in (standalone, conflicting)]
    assert share[0] > share[1], "the standalone set fails more often"
    assert standalone.factor_C[0] > 12
    assert conflicting.factor_C[0] < 2


def test_the_factor_is_the_longest_sleep_whose_forgotten_share_is_within_the_price() -> None:
    cell = rechecked(0.1, 0.01, [2, 5, 9, 14], forgotten_share=0.1)
    hazard = float(cell.hazard_C[0])

    def forgotten(passes: float) -> float:
        """Share of the sleep in which a task of this hazard is forgotten, integrated by hand."""
        t = np.linspace(0, passes + 1, 100_001)
        return float((1 - np.exp(-hazard * t)).mean())

    assert forgotten(float(cell.factor_C[0])) == pytest.approx(0.1, rel=1e-3)


def test_the_factor_stays_within_its_bounds() -> None:
    assert rechecked(0.0, 0.0, [2, 50], max_passes=30).factor_C[0] == 30
    assert rechecked(0.0, 1.0, [2, 3]).factor_C[0] == 1
    with pytest.raises(ConfigError, match=r"min_passes 6, prior_passes 5, max_passes 50: .* in this order"):
        build({**AUTO, "auto": {"min_passes": 6}}, 3)


def test_sleepers_that_are_still_out_do_not_bias_the_hazard() -> None:
    """Cut off at pass 12, two thirds of the long sleeps are still running; what came back is read given its length."""
    rng, hazard, n = np.random.default_rng(3), 0.03, 20_000
    length_N = rng.geometric(1 / 8, n) + 1
    lapsed_N = rng.random(n) > np.exp(-hazard * length_N)
    back = np.flatnonzero(length_N <= 12)
    cell = Forgetting(AutoConfig(), ["qa"], {})
    zeros = np.zeros(len(back), np.int64)
    cell.observe(zeros, passes_B=length_N[back], lapsed_B=lapsed_N[back], now_B=zeros)
    assert cell.hazard_C[0] == pytest.approx(hazard, rel=0.05)
    assert (lapsed_N[back].sum() / length_N.sum()) < 0.7 * hazard, "what counting sleepers as held would find"


def test_old_evidence_fades_by_passes() -> None:
    cell = rechecked(0.0, 0.2, [2, 4, 6], n=300)
    assert cell.factor_C[0] == 1
    lengths, n = np.tile([2, 5, 9], 100), 300
    cell.observe(np.zeros(n, np.int64), passes_B=lengths, lapsed_B=np.zeros(n, bool), now_B=np.full(n, 500))
    assert cell.factor_C[0] > 20
    assert cell.rechecks()[0] == pytest.approx(300, abs=1), "ten half-lives leave a thousandth"


def test_each_dataset_and_named_cluster_measures_its_own_and_numbers_stay_numbers() -> None:
    tasks = [TaskInfo(key=f"a{i}", dataset="a") for i in range(20)]
    tasks += [TaskInfo(key=f"b{i}", dataset="b", cluster="hard" if i < 5 else None) for i in range(20)]
    tasks += [TaskInfo(key=f"c{i}", dataset="c") for i in range(20)]
    tasks += [TaskInfo(key="own", dataset="a", snooze_factor=7)]
    scheduler = build({**AUTO, "clusters": {"hard": "auto"}, "datasets": {"c": 3}}, tasks)
    names = {name for name in scheduler.metrics() if name.startswith("auto_factor/")}
    assert names == {"auto_factor/a", "auto_factor/b", "auto_factor/hard"}
    drawn = draws_per_pass(scheduler, len(tasks), 60, lambda t, p: MIXED if t < 20 else EASY)
    factors = scheduler.snooze.factors(np.array([0, 20, 39, 40, 60]))
    assert factors[3:].tolist() == [3, 7]
    assert factors[1] == scheduler.metrics()["auto_factor/hard"]
    assert factors[2] == scheduler.metrics()["auto_factor/b"] > 10, "never imperfect: it may sleep"
    assert set(gaps(drawn[:, 40:60]).tolist()) == {3}


def test_a_factor_between_two_numbers_is_met_on_average() -> None:
    scheduler = build({**AUTO, "auto": {"prior_passes": 2.4}}, 2000)
    skips = scheduler.snooze._draw_skips(np.arange(2000))
    assert set(skips.tolist()) == {2, 3}
    assert skips.mean() == pytest.approx(2.4, abs=0.05)


@pytest.mark.parametrize("value", ["aut", -1, float("nan")])
def test_a_factor_that_is_neither_is_answered_with_both(value: object) -> None:
    with pytest.raises(ConfigError, match=r"'snooze\.datasets\.qa': wanted is 'auto' or a number of passes"):
        build({"datasets": {"qa": value}}, 3)


@pytest.mark.parametrize("mode", ["permanent", "literal"])
def test_auto_is_refused_where_no_recheck_would_tell(mode: str) -> None:
    with pytest.raises(ConfigError, match=rf"'auto' learns from re-checks .* mode '{mode}' does not make"):
        build({**AUTO, "mode": mode}, 3)


def test_what_was_measured_survives_a_restart_bit_for_bit() -> None:
    def build_one(seed: int) -> Curriculum:
        tasks = [TaskInfo(key=str(i), dataset="ab"[i % 2]) for i in range(60)]
        return build_scheduler({"snooze": AUTO}, tasks, seed)

    scheduler = build_one(0)
    draws_per_pass(scheduler, 60, 30, lambda t, p: EASY if (t * 7 + p) % 5 else MIXED)
    twin = build_one(4)
    twin.load_state_dict(json.loads(json.dumps(scheduler.state_dict(), allow_nan=False)))
    assert twin.snooze.forgetting.factor_C.tolist() == scheduler.snooze.forgetting.factor_C.tolist()
    assert [twin.draw(9).tolist() for _ in range(4)] == [scheduler.draw(9).tolist() for _ in range(4)]


def test_a_sleep_that_was_cut_short_counts_with_the_length_it_had() -> None:
    scheduler = build({**AUTO, "auto": {"prior_passes": 40}}, 1)
    for _ in range(4):  # the only task: every draw wakes it early
        task = int(scheduler.draw(1)[0])
        scheduler.observe(GroupOutcome(task=task, rewards_G=EASY))
    held = scheduler.snooze.forgetting._held_C_T[0]
    assert held.sum() == pytest.approx(3, abs=0.2)
    assert held[:3].sum() == held.sum(), "after a pass or two, not after forty"
