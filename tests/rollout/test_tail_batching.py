"""Tail batching through both loops: what it saves, what it may not cost, and what a kill gives back (seed S4)."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from snoozing_env.buffers.fresh import FreshBuffer, FreshConfig
from snoozing_env.config import parse_config
from snoozing_env.errors import ConfigError
from snoozing_env.gates import GateConfig, Ladder, LadderConfig
from snoozing_env.pacing import DurationConfig, Durations, PacingConfig, TailConfig
from snoozing_env.pacing.rounds import Rounds
from snoozing_env.rollout.loop import SyncLoop
from snoozing_env.schedulers import build_scheduler
from snoozing_env.testing.clock import run_jumping
from snoozing_env.types import Group, GroupOutcome, TaskInfo
from tests.rollout.async_world import World, play

N, BATCH, STEPS = 100, 8, 60


def turns(task: int) -> float:
    """The slowest fifth takes 25 times as long."""
    return 25.0 if task % 5 == 0 else 1.0


class TimedRunner:
    """Rollouts that take their turns."""

    def __init__(self) -> None:
        self.engine = SimpleNamespace(version=0)
        self.steps: list[list[int]] = []

    async def run(self, index: int, *, group_id: int, within_s: float | None = None) -> Group:
        self.steps[-1].append(index)
        await asyncio.sleep(turns(index))
        outcome = GroupOutcome(
            task=index,
            rewards_G=np.array([0.0, 1.0]),
            version=self.engine.version,
            duration_s=turns(index),
        )
        return Group(id=group_id, key=f"t{index}", outcome=outcome, trajectories=())


def synchronous(tail: TailConfig | None, *, n: int = N) -> tuple[TimedRunner, Rounds | None, float]:
    """Sixty steps of the synchronous loop; what ran in each, and the seconds it took."""
    infos = [TaskInfo(key=f"t{i}", duration_s=turns(i)) for i in range(n)]
    scheduler, runner = build_scheduler({"kind": "uniform"}, infos, 0), TimedRunner()
    durations = Durations(DurationConfig(), [info.duration_s for info in infos])
    rounds = None if tail is None else Rounds(scheduler, durations, tail)
    loop = SyncLoop(
        cast(Any, runner),
        scheduler,
        FreshBuffer(FreshConfig()),
        gate=GateConfig(),
        ladder=Ladder(LadderConfig()),
        rounds=rounds,
    )

    async def program() -> float:
        for step in range(STEPS):
            runner.steps.append([])
            runner.engine.version = step
            assert len((await loop.collect(BATCH, version=step)).groups) == BATCH
        return asyncio.get_running_loop().time()

    return runner, rounds, run_jumping(program())


def test_a_synchronous_run_is_twice_as_fast_and_trains_as_many_slow_tasks():
    plain, _, slow_s = synchronous(None)
    batched, rounds, fast_s = synchronous(TailConfig())
    assert fast_s < 0.5 * slow_s

    def slow(runner: TimedRunner) -> int:
        return sum(task % 5 == 0 for step in runner.steps for task in step)

    assert rounds is not None
    assert abs(slow(batched) - slow(plain)) <= 2 * BATCH
    mixed = [s for s in batched.steps if 0 < sum(task % 5 == 0 for task in s) < len(s)]
    assert len(mixed) <= 2, "a round is long or short"


@pytest.mark.parametrize("n", [9, 12, N])
def test_no_task_starves(n: int):
    runner, rounds, _ = synchronous(TailConfig(within=4), n=n)
    assert rounds is not None
    longest_pass = -(-n // BATCH)
    for task in range(n):
        ran = [-1, *(step for step, tasks in enumerate(runner.steps) if task in tasks), STEPS]
        # Its turn in a pass, twice because passes are shuffled; put off for four steps; and a round before it.
        assert max(np.diff(ran)) <= 2 * longest_pass + 4 + 2, f"task {task} ran at {ran}"


@pytest.mark.parametrize("bound", [0, 1])
def test_the_asynchronous_loop_keeps_its_bound_and_every_task_its_share(bound: int):
    world = World(turns=turns, batch=BATCH, n=N, known=True, seed=3)
    plain = play(PacingConfig(max_staleness=bound), world, steps=STEPS)
    batched = play(PacingConfig(max_staleness=bound, tail=TailConfig()), world, steps=STEPS)
    assert batched.seconds < 0.75 * plain.seconds
    assert max(batched.lags) <= bound
    assert batched.counts.over_age == batched.counts.expired == batched.unbalanced == 0
    slow = sum(k for task, k in batched.trained.items() if task % 5 == 0) / batched.trained.total()
    assert slow == pytest.approx(0.2, abs=0.04)


def test_what_is_put_off_goes_back_to_the_scheduler_and_comes_first():
    infos = [TaskInfo(key=f"t{i}", duration_s=turns(i)) for i in range(N)]
    scheduler = build_scheduler({"kind": "uniform"}, infos, 0)
    durations = Durations(DurationConfig(), [info.duration_s for info in infos])
    rounds = Rounds(scheduler, durations, TailConfig())
    started = rounds.draw(20, step=0, batch=BATCH).tolist()
    parked = list(rounds.parked)
    assert parked
    assert not set(parked) & set(started)
    assert not set(parked) & set(scheduler.draw(10).tolist()), "what is put off is taken"
    rounds.close()
    assert scheduler.draw(len(parked)).tolist() == parked


def test_durations_outlive_a_run_and_move_with_their_tasks():
    durations = Durations(DurationConfig(), [None, 5.0, None])
    for _ in range(5):
        durations.observe(0, 100.0)
    again = Durations(DurationConfig(), [None, None])
    again.from_parquet(durations.to_parquet(["a", "b", "c"]), {"x": 0, "a": 1})
    again.restore(durations.state())
    assert again.predict(np.array([1])) == pytest.approx(durations.predict(np.array([0])))


def test_exact_shares_of_the_batch_and_tail_batching_are_refused_together():
    from snoozing_env.train.recipe import Recipe

    table = {
        "pacing": {"tail": {}},
        "scheduler": {"kind": "uniform", "mixture": {"shares_of": "batch"}},
    }
    with pytest.raises(ConfigError, match="its share of every dataset in every batch"):
        parse_config(Recipe, table, where="recipe")
