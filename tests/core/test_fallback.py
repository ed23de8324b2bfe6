"""Falling back to uniform and returning (S11)."""

import json
from collections import Counter

import numpy as np
import pytest

from snoozing_env import KINDS, TaskInfo, build_scheduler
from snoozing_env.schedulers import Curriculum
from snoozing_env.testing import outcome

N, BATCH = 60, 12


def drawn(scheduler: Curriculum, rounds: int) -> Counter[int]:
    """How often each task was drawn while task t earns 0, 2 or 4 of 4 by t modulo 3."""
    counts: Counter[int] = Counter()
    for _ in range(rounds):
        tasks = scheduler.draw(BATCH).tolist()
        counts.update(tasks)
        scheduler.observe_many([outcome(t, 2 * (t % 3)) for t in tasks])
    return counts


def seasoned(config: dict[str, object]) -> Curriculum:
    tasks = [TaskInfo(key=str(i), dataset="ab"[i >= N // 2], text=f"task {i}") for i in range(N)]
    scheduler = build_scheduler({"snooze": {"mode": "off"}, **config}, tasks, 0)
    drawn(scheduler, 20)
    return scheduler


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_fallen_back_scheduler_draws_every_task_once_per_pass(kind: str) -> None:
    scheduler = seasoned({"kind": kind})
    scheduler.fall_back()
    counts = drawn(scheduler, 10 * N // BATCH)
    assert all(9 <= counts[t] <= 11 for t in range(N)), counts
    assert scheduler.metrics()["fallback"] == 1.0


def test_the_selector_returns_and_knows_what_happened_meanwhile() -> None:
    scheduler = seasoned({"kind": "band", "epsilon": 0.01})
    assert sum(n for t, n in drawn(scheduler, 10).items() if t % 3 == 1) > 90, (
        "the band wants the half-solved"
    )
    scheduler.fall_back()
    drawn(scheduler, 10)
    visits = scheduler.difficulty.visits_N.copy()
    scheduler.recover()
    assert not scheduler.fallen_back
    assert visits.sum() == (20 + 10 + 10) * BATCH, "every group was learned from"
    assert sum(n for t, n in drawn(scheduler, 10).items() if t % 3 == 1) > 90


def test_a_mixture_keeps_its_shares_while_tasks_within_a_dataset_come_at_random() -> None:
    scheduler = seasoned({"kind": "band", "mixture": {"weights": {"a": 3, "b": 1}}})
    scheduler.fall_back()
    counts = drawn(scheduler, 100)
    share = sum(n for t, n in counts.items() if t < N // 2) / (100 * BATCH)
    assert share == pytest.approx(0.75, abs=0.01)
    third = np.array([sum(n for t, n in counts.items() if t % 3 == k) for k in range(3)]) / (100 * BATCH)
    assert np.allclose(third, 1 / 3, atol=0.05), third


def test_snoozing_stays_on_while_fallen_back() -> None:
    scheduler = seasoned({"kind": "band", "snooze": {"mode": "permanent"}})
    scheduler.fall_back()
    drawn(scheduler, 10)
    assert not {t for t in drawn(scheduler, 20) if t % 3 == 2}, "what is mastered sleeps"


@pytest.mark.parametrize("kind", ["uniform", "thompson"])
def test_the_fallback_survives_a_restart_bit_for_bit(kind: str) -> None:
    scheduler = seasoned({"kind": kind})
    scheduler.fall_back()
    twin = build_scheduler({"kind": kind, "snooze": {"mode": "off"}}, scheduler.tasks, 5)
    twin.load_state_dict(json.loads(json.dumps(scheduler.state_dict())))
    assert twin.fallen_back
    assert drawn(twin, 5) == drawn(scheduler, 5)
    twin.recover()
    scheduler.recover()
    assert [twin.draw(7).tolist() for _ in range(4)] == [scheduler.draw(7).tolist() for _ in range(4)]
