"""The conflict monitor: looks, alarms, caps and their release (M4)."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from snoozing_env import ConfigError, TaskInfo, build_scheduler
from snoozing_env.schedulers import Curriculum
from snoozing_env.schedulers.conflict import NO_CAP
from snoozing_env.testing import LAWS, Law, Subject, outcome

PAIRS = [["answer", "abstain"]]


def build(
    n: int = 200,
    share: float = 0.5,
    *,
    seed: int = 0,
    snooze: Mapping[str, Any] | None = None,
    **conflict: Any,
) -> Curriculum:
    """n tasks of one dataset, of which a share is to be answered and the rest to be abstained from."""
    tasks = [
        TaskInfo(key=str(i), dataset="qa", side="answer" if i < share * n else "abstain") for i in range(n)
    ]
    config = {"snooze": snooze or {"skip_passes": 8}, "conflict": {"pairs": PAIRS, "window": 24, **conflict}}
    return build_scheduler(config, tasks, seed)


def rounds(
    scheduler: Curriculum, count: int, answer: float, abstain: float = 0.5, batch: int = 16
) -> list[int]:
    """So many draws in which each side's tasks are solved at its rate (of 4); which tasks were drawn."""
    drawn: list[int] = []
    for _ in range(count):
        tasks = scheduler.draw(batch).tolist()
        drawn += tasks
        solved = {"answer": round(4 * answer), "abstain": round(4 * abstain)}
        scheduler.observe_many([outcome(t, solved[scheduler.tasks[t].side or ""]) for t in tasks])
    return drawn


def mastered(scheduler: Curriculum) -> None:
    """Every answerable task is solved once and sleeps; the other side is trained on."""
    rounds(scheduler, 30, answer=1.0)


def answered(scheduler: Curriculum, drawn: Sequence[int]) -> int:
    return sum(scheduler.tasks[t].side == "answer" for t in drawn)


def test_a_side_that_nobody_looks_at_is_looked_at_while_the_other_is_trained() -> None:
    watched, unwatched = build(snooze={"mode": "permanent"}), build(snooze={"mode": "permanent"})
    unwatched.conflict.config = unwatched.conflict.config.model_copy(update={"vanished": 1e-9})
    for scheduler in (watched, unwatched):
        mastered(scheduler)
    assert answered(unwatched, rounds(unwatched, 30, answer=1.0)) == 0
    looks = answered(watched, rounds(watched, 30, answer=1.0))
    assert 0.1 * 30 * 16 < looks < 0.5 * 30 * 16, "some, and the other side is still what is trained"
    assert watched.warnings() == [], "the looks found it mastered: nothing to warn of"
    assert watched.conflict.cap_S.tolist() == [NO_CAP, NO_CAP]


def test_nobody_is_woken_while_neither_side_is_trained() -> None:
    scheduler = build(snooze={"mode": "permanent"})
    rounds(scheduler, 12, answer=1.0, abstain=1.0)
    assert scheduler.metrics()["conflict_looks"] == 0


def test_a_side_that_came_back_worse_raises_one_alarm_caps_its_sleep_and_wakes_it() -> None:
    scheduler = build(snooze={"mode": "permanent"})
    mastered(scheduler)
    assert scheduler.metrics()["asleep_share"] > 0.4
    rounds(scheduler, 6, answer=0.5)
    (message,) = scheduler.warnings()
    assert message.startswith("conflict: 'answer' came back at a pass rate of 0.")
    assert "while 'abstain' is" in message
    assert message.endswith("its tasks now sleep 2 passes at most")
    assert scheduler.warnings() == [], "said once"
    metrics = scheduler.metrics()
    assert metrics["conflict/answer/alarmed"] == 1
    assert metrics["conflict/abstain/alarmed"] == 0
    skips = scheduler.snooze.wake_pass_N - scheduler.snooze.slept_pass_N - 1
    assert skips[scheduler.snooze.wake_pass_N > 0].max() == 2, "even of those that were to sleep for good"


def test_the_cap_halves_while_the_alarm_lasts_and_bounds_every_sleep_of_the_side() -> None:
    scheduler = build(cap=4)
    mastered(scheduler)
    caps = []
    for _ in range(20):
        rounds(scheduler, 1, answer=0.5)
        caps.append(scheduler.metrics()["conflict/answer/cap"])
    assert sorted({*caps} - {0}, reverse=True) == [4, 2, 1]
    assert caps == sorted(caps, key=lambda c: -c if c else -9), "down only"
    assert len(scheduler.warnings()) == 1, "one episode, one warning"
    rounds(scheduler, 4, answer=1.0)
    asleep = np.flatnonzero(scheduler.snooze.asleep_N(scheduler.queue.number))
    skips = scheduler.snooze.wake_pass_N[asleep] - scheduler.snooze.slept_pass_N[asleep] - 1
    assert len(asleep) > 10
    assert set(skips.tolist()) == {1}


def test_a_cap_is_released_slowly_once_the_rate_holds_and_more_slowly_after_each_alarm() -> None:
    def calm_until_free(scheduler: Curriculum) -> int:
        for k in range(2000):
            if scheduler.conflict.cap_S[0] == NO_CAP:
                return k
            rounds(scheduler, 1, answer=1.0)
        raise AssertionError("never released")

    scheduler = build(calm=2, release=4)
    mastered(scheduler)
    rounds(scheduler, 10, answer=0.5)
    first = calm_until_free(scheduler)
    assert first * 16 > 2 * 24, "more groups than one window of calm"
    assert scheduler.metrics()["conflict/answer/alarmed"] == 0
    rounds(scheduler, 20, answer=0.5)
    assert scheduler.metrics()["conflict_alarms"] == 2
    assert calm_until_free(scheduler) > 1.5 * first


@pytest.mark.parametrize("seed", range(8))
def test_sides_whose_lucky_tasks_come_back_at_their_level_are_no_alarm(seed: int) -> None:
    """Of a half-learned side only the lucky fall asleep; that they come back half solved is no unlearning."""
    scheduler = build(snooze={"skip_passes": 2}, seed=seed)
    rng = np.random.default_rng(seed)
    for _ in range(120):
        tasks = scheduler.draw(16).tolist()
        rate = {"answer": 0.95, "abstain": 0.5}
        scheduler.observe_many(
            [outcome(t, int(rng.binomial(4, rate[scheduler.tasks[t].side or ""]))) for t in tasks]
        )
    assert scheduler.metrics()["woken"] > 100
    assert scheduler.warnings() == []


def test_sides_are_found_by_label_then_cluster_then_dataset() -> None:
    tasks = [
        TaskInfo(key="0", dataset="refuse", side="comply"),
        TaskInfo(key="1", dataset="refuse", cluster="comply"),
        TaskInfo(key="2", dataset="refuse", cluster="else"),
        TaskInfo(key="3", dataset="other"),
    ]
    scheduler = build_scheduler({"conflict": {"pairs": [["refuse", "comply"]]}}, tasks, 0)
    assert scheduler.conflict.sides.side_N.tolist() == [1, 1, 0, -1]
    assert scheduler.conflict.most(np.arange(4)).tolist() == [NO_CAP] * 4


def test_the_sides_of_a_hidden_mixture_measure_their_forgetting_apart_and_sleep_in_step() -> None:
    scheduler = build(snooze={"skip_passes": "auto"})
    assert {n for n in scheduler.metrics() if n.startswith("auto_factor")} == {
        "auto_factor/answer",
        "auto_factor/abstain",
    }
    forgetting, n = scheduler.snooze.forgetting, 300
    lengths = np.tile([2, 5, 9], n // 3)
    zeros = np.zeros(n, np.int64)
    forgetting.observe(zeros, passes_B=lengths, lapsed_B=lengths > 4, now_B=zeros)
    forgetting.observe(zeros + 1, passes_B=lengths, lapsed_B=lengths < 0, now_B=zeros)
    assert forgetting.hazard_C[1] < 0.1 * forgetting.hazard_C[0]
    assert forgetting.factor_C.tolist() == [1, 1]


def test_mistaken_sides_are_named() -> None:
    with pytest.raises(ConfigError, match=r"names the side 'abstian', .* Did you mean 'abstain'\?"):
        build(pairs=[["answer", "abstian"]])
    with pytest.raises(
        ConfigError, match=r"pairs name \['abstain'\] more than once; a side has one opponent"
    ):
        build(pairs=[["answer", "abstain"], ["abstain", "x"]])


def test_nothing_is_watched_without_pairs() -> None:
    scheduler = build_scheduler({}, [TaskInfo(key=str(i), side="answer") for i in range(9)], 0)
    assert not [name for name in scheduler.metrics() if name.startswith("conflict")]


def test_an_alarm_survives_a_restart_bit_for_bit() -> None:
    scheduler = build(snooze={"mode": "permanent"})
    mastered(scheduler)
    rounds(scheduler, 6, answer=0.5)
    twin = build(snooze={"mode": "permanent"}, seed=3)
    twin.load_state_dict(json.loads(json.dumps(scheduler.state_dict(), allow_nan=False)))
    assert twin.warnings() == scheduler.warnings() != []
    assert rounds(twin, 8, answer=0.75) == rounds(scheduler, 8, answer=0.75)
    assert twin.state_dict() == scheduler.state_dict()


def opposed(kind: str) -> Subject:
    """Every second task on the other side, `auto` wherever the mode can."""

    def make(tasks: Sequence[TaskInfo], seed: int, snooze: Mapping[str, Any]) -> Curriculum:
        sided = [replace(task, side="ab"[i % 2]) for i, task in enumerate(tasks)]
        auto = snooze.get("mode") == "probabilistic"
        config: dict[str, Any] = {
            "kind": kind,
            "snooze": {**snooze, **({"skip_passes": "auto"} if auto else {})},
        }
        if kind != "uniform":
            config["epsilon"] = 0.2
        if len(tasks) > 1:
            config["conflict"] = {"pairs": [["a", "b"]], "window": 3, "looks": 2, "calm": 1}
        return build_scheduler(config, sided, seed)

    return Subject(build=make, floor=1.0 if kind == "uniform" else 0.2, examples=15)


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
@pytest.mark.parametrize("kind", ["uniform", "learnability"])
def test_a_watched_scheduler_keeps_the_contract(kind: str, law: Law) -> None:
    law(opposed(kind))
