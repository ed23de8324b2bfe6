"""The asynchronous loop on a clock that jumps, with a real scheduler and rollouts that only take time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest

from snoozing_env.errors import EngineError, SaturationError
from snoozing_env.gates import GateConfig, Ladder, LadderConfig
from snoozing_env.pacing import DurationConfig, Durations, PacingConfig, Planner
from snoozing_env.rollout.async_loop import AsyncLoop
from snoozing_env.rollout.loop import StepBatch
from snoozing_env.schedulers import Curriculum, build_scheduler
from snoozing_env.testing.clock import run_jumping
from snoozing_env.types import Group, GroupOutcome, TaskInfo

MIXED = np.array([0.0, 1.0, 1.0, 0.0])


@dataclass
class TimedRunner:
    """Rollouts that take `seconds(task)` and give `rewards(task)`; `stragglers(task)` of the last ones never end, and
    `down` is when the engine answers nothing."""

    planner: Planner
    seconds: Callable[[int], float] = lambda task: 1.0
    rewards: Callable[[int], np.ndarray] = lambda task: MIXED
    stragglers: Callable[[int], int] = lambda task: 0
    down: tuple[float, float] = (0.0, 0.0)
    started: list[int] = field(default_factory=list)

    async def run(self, index: int, *, group_id: int, within_s: float | None = None) -> Group:
        loop = asyncio.get_running_loop()
        version = self.planner.version
        self.started.append(index)
        if self.down[0] <= loop.time() < self.down[1]:
            raise EngineError("connection refused")
        stragglers = self.stragglers(index)
        takes = 1e9 if stragglers else self.seconds(index)
        cut = within_s is not None and takes > within_s
        await asyncio.sleep(within_s if cut and within_s else takes)
        if self.down[0] <= loop.time() < self.down[1]:
            raise EngineError("connection reset")
        rewards = self.rewards(index)
        valid = np.arange(rewards.size) < (
            rewards.size - (stragglers or rewards.size) if cut else rewards.size
        )
        outcome = GroupOutcome(
            task=index,
            rewards_G=rewards,
            valid_G=valid,
            version=version,
            duration_s=within_s if cut and within_s else takes,
            tokens=8,
        )
        return Group(id=group_id, key=f"t{index}", outcome=outcome, trajectories=())


def build(
    config: PacingConfig, *, n: int = 200, batch: int = 4, steps: int | None = None, **runner: object
) -> AsyncLoop:
    planner = Planner(config, batch=batch, steps=steps)
    scheduler = build_scheduler({"kind": "uniform"}, [TaskInfo(key=f"t{i}") for i in range(n)], 0)
    return AsyncLoop(
        TimedRunner(planner, **runner),  # type: ignore[arg-type]
        scheduler,
        planner,
        Durations(DurationConfig(), [None] * n),
        gate=GateConfig(),
        ladder=Ladder(LadderConfig(partial_after=8.0, dead_steps=2)),
        keys=tuple(f"t{i}" for i in range(n)),
    )


def train(loop: AsyncLoop, *, steps: int, train_s: float = 1.0) -> tuple[list[StepBatch], float]:
    """Train `steps` steps of `train_s` each; the batches, and the seconds it took on the loop's clock."""

    async def program() -> tuple[list[StepBatch], float]:
        batches = []
        for step in range(steps):
            batches.append(await loop.next_batch())
            await asyncio.sleep(train_s)
            loop.publish(step + 1)
        await loop.close()
        return batches, asyncio.get_running_loop().time()

    return run_jumping(program())


def lags(batches: list[StepBatch]) -> list[int]:
    return [b.version - g.outcome.version for b in batches for g in b.groups]


def long_tail(task: int) -> float:
    """The slowest fifth takes 25 times as long (seed S4)."""
    return 25.0 if task % 5 == 0 else 1.0


@pytest.mark.parametrize("bound", [0, 1, 2, 8])
def test_no_trained_group_is_older_than_the_bound(bound: int):
    batches, _ = train(build(PacingConfig(max_staleness=bound), seconds=long_tail), steps=40)
    assert max(lags(batches)) <= bound
    assert all(len(batch.groups) == 4 for batch in batches)


def test_a_larger_bound_overlaps_generation_with_training_and_with_stragglers():
    seconds = [train(build(PacingConfig(max_staleness=k), seconds=long_tail), steps=40)[1] for k in (0, 1, 8)]
    assert seconds[0] > seconds[1] > 2 * seconds[2]


def test_waiting_for_stragglers_keeps_the_share_of_slow_tasks_and_letting_go_does_not():
    def slow_share(stragglers: str) -> float:
        config = PacingConfig(max_staleness=1, stragglers=stragglers)  # type: ignore[arg-type]
        batches, _ = train(build(config, seconds=long_tail), steps=100)
        return float(np.mean([g.outcome.task % 5 == 0 for b in batches for g in b.groups]))

    assert slow_share("wait") == pytest.approx(0.2, abs=0.03)
    assert slow_share("let-go") < 0.1


@pytest.mark.parametrize("policy", ["drop", "requeue"])
def test_over_age_groups_teach_the_scheduler_whatever_becomes_of_them(policy: str):
    config = PacingConfig(max_staleness=1, stragglers="let-go", over_age=policy)  # type: ignore[arg-type]
    loop = build(config, seconds=long_tail)
    train(loop, steps=40)
    counts = loop.planner.counts
    assert counts.over_age > 0
    assert loop.scheduler.metrics()["observed_groups"] == counts.started - counts.lost - len(
        loop.planner.running
    )


def test_a_requeued_task_is_started_again_before_any_other():
    loop = build(PacingConfig(max_staleness=1, stragglers="let-go", over_age="requeue"), seconds=long_tail)
    train(loop, steps=40)
    started = loop.runner.started  # type: ignore[attr-defined]
    assert max(np.bincount(started)) > 1, "in one pass over 200 tasks only requeued ones come twice"


def test_keep_corrected_trains_past_the_aim_and_never_past_its_own_bound():
    config = PacingConfig(max_staleness=1, stragglers="let-go", over_age="keep-corrected", keep_until=6)
    seen = lags(train(build(config, seconds=lambda task: 5.0 if task % 5 == 0 else 1.0), steps=60)[0])
    assert 1 < max(seen) <= 6


def test_an_engine_that_comes_back_costs_its_groups_and_no_more():
    loop = build(PacingConfig(max_staleness=2), down=(5.0, 30.0))
    batches, _ = train(loop, steps=30)
    assert len(batches) == 30
    assert loop.planner.counts.lost > 0
    assert loop.planner.balance() == 0
    trained = [g.id for b in batches for g in b.groups]
    assert len(set(trained)) == len(trained) == 120


def test_an_engine_that_stays_away_ends_the_run_with_its_reason():
    loop = build(PacingConfig(max_staleness=2, patience_s=60.0), down=(5.0, 1e9))
    with pytest.raises(
        EngineError, match=r"no group finished in \d+ s of failing dispatches; last: connection refused"
    ):
        train(loop, steps=30)


def test_a_group_past_its_deadline_is_cancelled_teaches_nothing_and_is_counted():
    loop = build(PacingConfig(max_staleness=1, group_s=10.0), seconds=long_tail)
    batches, _ = train(loop, steps=20)
    assert loop.planner.counts.lost > 0
    assert {g.outcome.task % 5 for b in batches for g in b.groups} == {1, 2, 3, 4}
    scheduler = loop.scheduler
    assert isinstance(scheduler, Curriculum)
    assert not scheduler.difficulty.visits_N[::5].any()


def test_a_group_with_enough_rollouts_at_its_deadline_is_trained_without_its_stragglers():
    loop = build(PacingConfig(max_staleness=1, group_s=10.0), stragglers=lambda task: task % 4)
    batches, _ = train(loop, steps=40)
    valid = {g.outcome.task % 4: g.outcome.valid_rewards.tolist() for b in batches for g in b.groups}
    assert valid == {0: [0, 1, 1, 0], 1: [0, 1, 1], 2: [0, 1]}, "one rollout alone has no baseline"
    assert loop.planner.counts.lost > 0
    assert loop.planner.balance() == 0
    scheduler = loop.scheduler
    assert isinstance(scheduler, Curriculum)
    assert scheduler.difficulty.visits_N[2::4].any()
    assert not scheduler.difficulty.visits_N[3::4].any(), "unfinished is not failed"


def test_a_pool_whose_groups_never_end_in_time_is_a_saturated_one_and_no_endless_wait():
    loop = build(PacingConfig(max_staleness=1, group_s=10.0), seconds=lambda task: 1e6)
    with pytest.raises(SaturationError, match=r"with too few valid rollouts"):
        train(loop, steps=3)


def test_a_saturated_pool_ends_with_the_reason():
    loop = build(PacingConfig(max_staleness=2), rewards=lambda task: np.ones(4))
    with pytest.raises(SaturationError, match="all correct"):
        train(loop, steps=5)


def test_a_pool_of_one_task_is_trained_on():
    batches, _ = train(build(PacingConfig(max_staleness=2), n=1), steps=5)
    assert [len(b.groups) for b in batches] == [4] * 5


def test_nothing_is_generated_past_the_last_step():
    loop = build(PacingConfig(max_staleness=8), steps=10)
    train(loop, steps=10)
    assert loop.planner.counts.started == 40


def test_a_bug_in_a_rollout_reaches_the_trainer():
    def broken(task: int) -> float:
        raise ZeroDivisionError("bug")

    with pytest.raises(ZeroDivisionError, match="bug"):
        train(build(PacingConfig(max_staleness=1), seconds=broken), steps=3)


def test_a_trainer_that_forgets_to_publish_is_told():
    loop = build(PacingConfig(max_staleness=0))

    async def program() -> None:
        await loop.next_batch()
        await loop.next_batch()

    with pytest.raises(RuntimeError, match="publish newer weights before the next batch"):
        run_jumping(program())
