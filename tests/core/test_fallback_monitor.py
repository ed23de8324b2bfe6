"""When a falling evaluation is acted on, and when it is noise (S11)."""

import json

import numpy as np
import pytest

from snoozing_env.fallback import Action, FallbackConfig, FallbackMonitor
from snoozing_env.intervals import clustered, paired

N = 200
KEYS = [str(i) for i in range(N)]
RNG_RATES = np.random.default_rng(7).beta(2, 1, N)


def watch(
    path: list[float], *, seed: int = 0, config: FallbackConfig | None = None, samples: int = 4
) -> list[Action | None]:
    """Actions over evaluations whose latent mean moves by `path` from where it starts."""
    monitor, rng = FallbackMonitor(config or FallbackConfig()), np.random.default_rng(seed)
    actions: list[Action | None] = []
    for step, change in enumerate(path):
        rate_N = np.clip(RNG_RATES + change, 0, 1)
        actions.append(monitor.judge(step, KEYS, rng.binomial(samples, rate_N) / samples).action)
    return actions


def test_a_policy_that_does_not_change_hardly_ever_falls_back() -> None:
    false = sum("fall_back" in watch([0.0] * 20, seed=seed) for seed in range(200))
    assert false <= 10, "at most a twentieth of runs of twenty evaluations"


def test_a_drop_is_noticed_at_its_second_evaluation_and_the_return_too() -> None:
    hits = 0
    for seed in range(50):
        actions = watch([0.0] * 4 + [-0.15] * 4 + [0.02] * 4, seed=seed)
        hits += actions.index("fall_back") == 5 and "recover" in actions[9:] if "fall_back" in actions else 0
    assert hits >= 45


def test_a_single_bad_evaluation_is_forgiven() -> None:
    assert watch([0.0, 0.0, -0.3, 0.0, -0.3, 0.0]) == [None] * 6


def test_a_drop_below_the_least_one_is_never_acted_on() -> None:
    config = FallbackConfig(min_drop=0.2)
    assert set(watch([0.0] * 3 + [-0.12] * 10, config=config, samples=64)) == {None}


def test_each_further_fall_doubles_what_a_return_takes() -> None:
    cycle = [-0.3] * 2 + [0.05] * 8
    actions = watch([0.0, *cycle, *cycle], config=FallbackConfig(patience=2), samples=16)
    falls = [i for i, a in enumerate(actions) if a == "fall_back"]
    returns = [i for i, a in enumerate(actions) if a == "recover"]
    assert [r - f for f, r in zip(falls, returns, strict=True)] == [2, 4]


def test_the_comparison_is_over_the_tasks_that_both_evaluations_judged() -> None:
    monitor = FallbackMonitor(FallbackConfig(patience=1))
    monitor.judge(0, ["a", "b", "c", "d"], np.array([1.0, 1.0, 1.0, 0.0]))
    judged = monitor.judge(1, ["a", "b", "c", "e"], np.array([1.0, 1.0, 1.0, 0.0]))
    assert (judged.accuracy, judged.best, judged.action) == (1.0, 1.0, None)


def test_the_state_is_json_and_a_restored_monitor_goes_on_alike() -> None:
    one, rng = FallbackMonitor(FallbackConfig()), np.random.default_rng(3)
    evaluations = [rng.binomial(4, np.clip(RNG_RATES + c, 0, 1)) / 4 for c in (0, 0, -0.2, -0.2, 0, 0, 0)]
    for step, means in enumerate(evaluations[:3]):
        one.judge(step, KEYS, means)
    other = FallbackMonitor(FallbackConfig())
    other.restore(json.loads(json.dumps(one.state())))
    rest = [
        [m.judge(step, KEYS, means) for step, means in enumerate(evaluations[3:], 3)] for m in (one, other)
    ]
    assert rest[0] == rest[1]
    assert rest[0][0].action == "fall_back"


def test_pairing_by_task_narrows_the_interval() -> None:
    rng = np.random.default_rng(0)
    before, after = (rng.binomial(16, np.clip(RNG_RATES - drop, 0, 1)) / 16 for drop in (0.0, 0.05))
    low, high = paired(after, before)
    assert low < -0.05 < high < 0
    alone = clustered(after)
    assert high - low < 0.7 * (alone.high - alone.low)


def test_a_change_without_spread_is_not_certain() -> None:
    low, high = paired(np.full(9, 0.5), np.full(9, 0.5))
    assert low < 0 < high
    with pytest.raises(ValueError, match=r"shapes \(3,\) and \(2,\); wanted two \[N\] arrays"):
        paired(np.zeros(3), np.zeros(2))
