"""Exact shares of the batch in the asynchronous loop (M1, M2), on a clock that jumps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from snoozing_env.gates import GateConfig, Ladder, LadderConfig
from snoozing_env.pacing import DurationConfig, Durations, PacingConfig, Planner
from snoozing_env.rollout.async_loop import AsyncLoop
from snoozing_env.rollout.loop import StepBatch
from snoozing_env.schedulers import build_scheduler
from snoozing_env.testing.clock import run_jumping
from snoozing_env.types import TaskInfo
from tests.rollout.async_world import World, play
from tests.rollout.test_async_loop import MIXED, TimedRunner, lags, long_tail, train

SHARES = {"a": 1.0, "b": 2.0, "c": 5.0}


def build(
    config: PacingConfig,
    *,
    sizes: dict[str, int],
    batch: int = 8,
    rewards: Callable[[int], np.ndarray] = lambda task: MIXED,
    partial_after: float = 32.0,
    **mixture: object,
) -> AsyncLoop:
    infos = [TaskInfo(key=f"{name}{i}", dataset=name) for name, n in sizes.items() for i in range(n)]
    planner = Planner(config, batch=batch)
    table = {"mixture": {"weights": dict.fromkeys(sizes, 1.0), "shares_of": "batch", **mixture}}
    return AsyncLoop(
        TimedRunner(planner, seconds=long_tail, rewards=rewards),
        build_scheduler(table, infos, 0),
        planner,
        Durations(DurationConfig(), [None] * len(infos)),
        gate=GateConfig(),
        ladder=Ladder(LadderConfig(partial_after=partial_after)),
        keys=tuple(info.key for info in infos),
    )


def by_dataset(loop: AsyncLoop, batches: list[StepBatch]) -> list[Counter[str]]:
    return [Counter(loop.keys[g.outcome.task][0] for g in batch.groups) for batch in batches]


@pytest.mark.parametrize("informative", [1.0, 0.5])
@pytest.mark.parametrize("bound", [0, 1, 2, 8])
def test_every_batch_holds_its_shares_exactly_and_nothing_is_dropped(bound: int, informative: float):
    def turns(task: int) -> float:
        return 25.0 if task % 5 == 0 else 1.0

    world = World(turns=turns, batch=8, n=300, shares=SHARES, informative=informative, seed=1)
    history = play(PacingConfig(max_staleness=bound, max_running=64), world, steps=40)
    names = sorted(SHARES)
    trained = Counter[str]()
    for task, n in history.trained.items():
        trained[names[task % 3]] += n
    assert trained == {"a": 40, "b": 80, "c": 200}
    assert (history.places, history.misplaced) == (320, 0)
    assert max(history.lags) <= bound
    assert history.counts.over_age + history.counts.expired < 0.02 * history.counts.started


def test_shares_cost_no_throughput_worth_the_name():
    seconds = []
    for shares in ({}, SHARES):
        world = World(
            turns=lambda task: 25.0 if task % 5 == 0 else 1.0, batch=8, n=300, shares=shares, seed=1
        )
        seconds.append(play(PacingConfig(max_staleness=8, max_running=64), world, steps=60).seconds)
    assert seconds[1] < 1.1 * seconds[0]


@pytest.mark.parametrize("bound", [0, 2])
def test_a_dataset_that_is_never_informative_lends_its_places_and_is_looked_at_now_and_then(bound: int):
    sizes = {"a": 40, "b": 40}
    loop = build(
        PacingConfig(max_staleness=bound),
        sizes=sizes,
        rewards=lambda task: np.zeros(4) if task < 40 else MIXED,
        lend_after=4.0,
        owe_at_most=8,
    )
    batches, _ = train(loop, steps=30)
    assert [c["b"] for c in by_dataset(loop, batches)] == [8] * 30, "full batches all along"
    assert max(lags(batches)) <= bound
    started = Counter(loop.keys[task][0] for task in loop.runner.started)  # type: ignore[attr-defined]
    first = (bound + 1) * 4 * 4.0  # what the first batches paid until it was known
    assert 25 <= started["a"] < first + 30 * 4.0 + 8, "one place a batch, at lend_after groups"
    assert loop.planner.counts.over_age + loop.planner.counts.expired <= 0.02 * loop.planner.counts.started


def test_a_dataset_with_fewer_tasks_than_places_gives_them_again_and_again():
    loop = build(PacingConfig(max_staleness=2), sizes={"a": 1, "b": 60})
    batches, _ = train(loop, steps=20)
    assert [c["a"] for c in by_dataset(loop, batches)] == [4] * 20


def test_a_dataset_that_sleeps_lends_at_once_and_is_repaid():
    sizes = {"a": 6, "b": 60}
    mastered = np.ones(4)
    loop = build(
        PacingConfig(max_staleness=1),
        sizes=sizes,
        rewards=lambda task: mastered if task < 6 else MIXED,
        owe_at_most=0,
    )
    batches, _ = train(loop, steps=20)
    assert [len(batch.groups) for batch in batches] == [8] * 20
    assert sum(batch.generated_groups for batch in batches) < 20 * 8 * 1.5


def test_a_smaller_batch_keeps_the_proportions_and_drops_nothing():
    loop = build(PacingConfig(max_staleness=2), sizes={"a": 60, "b": 60})

    async def program() -> list[StepBatch]:
        batches = []
        for step in range(12):
            loop.planner.resize(8 if step < 4 else 4)
            batches.append(await loop.next_batch())
            loop.publish(step + 1)
        await loop.close()
        return batches

    shares = by_dataset(loop, run_jumping(program()))
    assert shares[:4] == [{"a": 4, "b": 4}] * 4
    assert shares[-4:] == [{"a": 2, "b": 2}] * 4
    assert loop.planner.counts.over_age == loop.planner.counts.expired == 0


def test_a_resumed_run_goes_on_with_the_places_that_were_asked_for():
    loop = build(PacingConfig(max_staleness=2), sizes={"a": 60, "b": 60}, weights={"a": 1.0, "b": 2.0})
    train(loop, steps=5)
    quotas = loop.planner.quotas
    assert quotas is not None
    saved = quotas.state()
    assert len(saved) == 3, "one batch for each step that groups may start for"
    again = build(PacingConfig(max_staleness=2), sizes={"a": 60, "b": 60}, weights={"a": 1.0, "b": 2.0})
    assert again.planner.quotas is not None
    again.planner.quotas.restore(saved)
    batches, _ = train(again, steps=3)
    assert by_dataset(again, batches) == [places["shares"] for places in saved]
