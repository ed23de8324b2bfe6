"""The goodput account of the real asynchronous loop, over a simulated engine and trainer on a clock that jumps."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import pytest

from snoozing_env.gates import GateConfig, Ladder, LadderConfig
from snoozing_env.goodput import LOST, PHASES, STATES, Account
from snoozing_env.pacing import DurationConfig, Durations, Fate, PacingConfig, Planner
from snoozing_env.rollout.accounted import AccountedRunner
from snoozing_env.rollout.async_loop import AsyncLoop, Watcher
from snoozing_env.schedulers import build_scheduler
from snoozing_env.testing.clock import run_jumping
from snoozing_env.types import Group, TaskInfo
from tests.rollout.async_world import SimulatedEngine, World, random_pacing, random_world


@dataclass
class Books(Watcher):
    """Feeds the account as a run does."""

    account: Account
    finished_groups: int = 0
    cut_off_groups: int = 0

    def finished(self, group: Group, fate: Fate) -> None:
        self.finished_groups += 1
        self.account.engine.finish(group, fate)

    def cut_off(self, group: Group) -> None:
        self.cut_off_groups += 1
        self.account.engine.finish(group, "filtered")

    def expired(self, groups: Sequence[Group]) -> None:
        self.account.engine.expire(groups)


async def train(
    config: PacingConfig, world: World, steps: int
) -> tuple[list[dict[str, float]], Books, AsyncLoop]:
    """The account of each step, the books, and the loop as it ended."""
    account = Account(GateConfig(), asyncio.get_running_loop().time)
    books, planner = Books(account), Planner(config, batch=world.batch, steps=steps)
    engine = SimulatedEngine(planner, world, np.random.default_rng(world.seed))
    keys = tuple(f"t{i}" for i in range(world.n))
    loop = AsyncLoop(
        AccountedRunner(cast(Any, engine), account.engine),
        build_scheduler({"kind": "uniform"}, [TaskInfo(key=key) for key in keys], world.seed),
        planner,
        Durations(DurationConfig(), [None] * world.n),
        gate=GateConfig(),
        ladder=Ladder(LadderConfig()),
        keys=keys,
        watcher=books,
    )
    logged: list[dict[str, float]] = []
    for step in range(steps):
        account.trainer.enter("waiting")
        batch = await loop.next_batch()
        account.engine.train(batch.groups)
        account.trainer.enter("training")
        await asyncio.sleep(world.train_s)
        logged.append(account.step(close=True))
        with account.trainer.during("syncing"):
            await engine.take_weights()
            loop.publish(step + 1)
    await loop.close()
    return logged, books, loop


def added_up(logged: Sequence[dict[str, float]]) -> dict[str, float]:
    names = {name for step in logged for name in step}
    return {name: sum(step.get(name, 0) for step in logged) for name in names}


@pytest.mark.parametrize("seed", range(60))
def test_every_second_and_every_token_is_accounted_for_whatever_happens(seed: int) -> None:
    config, world = random_pacing(seed), replace(random_world(seed), kills=0)
    logged, books, loop = run_jumping(train(config, world, 6))
    account, counts = books.account, loop.planner.counts
    now = account.engine.reading()
    assert sum(now[f"engine/{state}_s"] for state in STATES) == pytest.approx(account.seconds)
    work = sum(value for name, value in now.items() if name.startswith("work/"))
    assert work == pytest.approx(now["engine/generating_s"])
    assert account.engine.fates.balance() == 0
    assert now["tokens/generated"] == 8 * (books.finished_groups + books.cut_off_groups)
    assert now["tokens/trained"] == 8 * counts.trained
    assert now["tokens/waiting"] == 8 * len(loop.planner.accepted)
    assert now["tokens/lost_staleness"] == 8 * (counts.over_age + counts.expired)
    verdicts = ("all_max", "all_min", "no_spread", "too_few_valid")
    untaught = sum(
        value for name, value in now.items() if name.endswith(verdicts) and name.startswith("tokens/")
    )
    assert untaught == 8 * (counts.filtered + books.cut_off_groups)
    sums = added_up(logged)
    assert sum(sums.get(f"time/{phase}_s", 0) for phase in PHASES) == pytest.approx(account.closed_s)
    gone = sum(sums.get(f"tokens/lost_{family}", 0) for family in LOST)
    left = logged[-1].get("tokens/waiting", 0)
    assert sums["tokens/generated"] == sums["tokens/trained"] + gone + left


@pytest.mark.parametrize(("staleness", "seconds"), [(0, 20.0), (1, 11.0)])
def test_overlap_wins_the_time_that_sides_that_take_turns_spend_waiting(
    staleness: int, seconds: float
) -> None:
    """By hand: two groups at a time take a second and so does training, ten steps. In turns that is 20 s, of which
    each side is useful in 10; overlapped only the first batch is waited for."""
    config = PacingConfig(max_staleness=staleness, max_running=2, weight_updates="in-flight")
    world = World(turns=lambda task: 1.0, train_s=1.0, batch=2)
    logged, books, _ = run_jumping(train(config, world, 10))
    last, sums = logged[-1], added_up(logged)
    assert books.account.closed_s == seconds
    assert sums["time/training_s"] == sums["engine/generating_s"] == 10.0
    assert sums["time/waiting_s"] == sums["engine/waiting_s"] == seconds - 10.0
    assert last["goodput/time"] == pytest.approx(10.0 / seconds)
    assert last["goodput/waiting_on_rollouts"] == pytest.approx(1 - 10.0 / seconds)
    assert last["goodput/tokens"] == 1.0


def test_an_outage_of_the_engine_is_failed_time_and_its_groups_are_lost_to_failures() -> None:
    """The first two dispatches run for .1 s into an error, then the loop holds still for half a second."""

    @dataclass
    class Down(SimulatedEngine):
        refuses: int = 2

        async def run(self, index: int, *, group_id: int, within_s: float | None = None) -> Group:
            self.refuses, failing = self.refuses - 1, self.refuses > 0
            return await (replace(self, world=replace(self.world, fail=1.0)) if failing else super()).run(
                index, group_id=group_id
            )

    async def program() -> dict[str, float]:
        account = Account(GateConfig(), asyncio.get_running_loop().time)
        planner = Planner(PacingConfig(max_running=2), batch=2)
        engine = Down(planner, World(turns=lambda task: 1.0, batch=2), np.random.default_rng(0))
        loop = AsyncLoop(
            AccountedRunner(cast(Any, engine), account.engine),
            build_scheduler({"kind": "uniform"}, [TaskInfo(key=f"t{i}") for i in range(9)], 0),
            planner,
            Durations(DurationConfig(), [None] * 9),
            gate=GateConfig(),
            ladder=Ladder(LadderConfig()),
            keys=tuple(f"t{i}" for i in range(9)),
            watcher=Books(account),
        )
        account.engine.train((await loop.next_batch()).groups)
        await loop.close()
        return account.engine.reading()

    found = run_jumping(program())
    assert found["engine/failed_s"] == pytest.approx(0.5)
    assert found["work/lost_failures_s"] == pytest.approx(0.1)
    assert found["work/trained_s"] == pytest.approx(1.0)
