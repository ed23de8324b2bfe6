"""Whole verifiers episodes that a deadline cuts off: through harness, interception and HTTP down to the engine (A5)."""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoModelForCausalLM, AutoTokenizer

from snoozing_env.rollout.engines.base import Completion
from snoozing_env.rollout.engines.local import LocalEngine
from snoozing_env.rollout.runner import GroupRunner, RolloutConfig
from snoozing_env.types import Group
from tests.rollout.test_episodes import load, policy

DEADLINE_S = 30.0


class PushedLoop(asyncio.SelectorEventLoop):
    """A loop whose clock can be pushed past a deadline: nobody waits for it, and no load makes it come too early."""

    pushed_s = 0.0

    def time(self) -> float:
        return super().time() + self.pushed_s


class SlowEngine(LocalEngine):
    """Answers `slow_from` requests and no more. Once `stuck` wait in vain the deadline comes; who gives up is noted."""

    def __init__(self, folder: Path, *, slow_from: int, stuck: int = 1) -> None:
        model = AutoModelForCausalLM.from_pretrained(folder, dtype="float32")
        super().__init__(model, AutoTokenizer.from_pretrained(folder, padding_side="left"))
        self.slow_from, self.asked, self.aborted, self.decoded = slow_from, 0, 0, 0
        self.stuck, self.waiting = stuck, 0
        self.told = asyncio.Event()

    async def sample_ids(self, *args: Any, **options: Any) -> list[Completion]:
        self.asked += 1
        if self.asked <= self.slow_from:
            return await super().sample_ids(*args, **options)
        self.waiting += 1
        loop = asyncio.get_running_loop()
        if self.waiting == self.stuck and isinstance(loop, PushedLoop):
            loop.pushed_s += DEADLINE_S + 1.0
        try:
            return await asyncio.Event().wait() and []
        except asyncio.CancelledError:
            self.aborted += 1
            self.told.set()
            raise

    def _generate(self, batch: Any) -> list[list[Completion]]:
        self.decoded += sum(request.n for request in batch)
        return super()._generate(batch)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return policy(tmp_path_factory.mktemp("lab"), context=256, seed=3)


def roll(engine: SlowEngine, name: str, *, within_s: float | None = DEADLINE_S, **options: Any) -> Group:
    async def program() -> Group:
        await engine.start()
        config = RolloutConfig(group_size=2, max_tokens=4, **options)
        runner = GroupRunner(load(name, harness="snooze-kit"), engine, config, seed=5)
        try:
            return await runner.run(0, group_id=1, within_s=within_s)
        finally:
            await runner.close()
            await engine.told.wait()
            await engine.close()

    async def watched() -> Group:
        group = await program()
        assert len(asyncio.all_tasks()) == 1, "nothing is left running"
        return group

    with closing(asyncio.Runner(loop_factory=PushedLoop)) as loop:
        return loop.run(watched())


def test_a_model_call_of_an_episode_that_is_cut_off_is_aborted_at_the_engine(folder: Path) -> None:
    engine = SlowEngine(folder, slow_from=0, stuck=2)
    group = roll(engine, "plain-quiz")
    assert [t.valid for t in group.trajectories] == [False, False]
    assert {t.error for t in group.trajectories} == {"cancelled: unfinished at its group's deadline of 30 s"}
    assert engine.aborted == 2


def test_what_an_episode_had_sampled_when_it_was_cut_off_is_counted_and_never_graded(folder: Path) -> None:
    # Each student's first turn is answered; neither coach is ever heard.
    group = roll(SlowEngine(folder, slow_from=2, stuck=2), "plain-talk")
    assert group.outcome.valid_rewards.size == 0
    assert group.outcome.tokens == sum(sum(t.mask) for t in group.trajectories) > 0
    assert all(sum(t.mask) for t in group.trajectories)


def test_the_first_of_redundant_episodes_are_used_and_the_engine_drops_the_rest(folder: Path) -> None:
    engine = SlowEngine(folder, slow_from=2, stuck=99)
    group = roll(engine, "plain-quiz", within_s=None, spare=1)
    assert [t.valid for t in group.trajectories] == [True, True]
    assert engine.aborted == 1


def test_the_local_engine_generates_nothing_for_who_was_cancelled_while_it_waited(folder: Path) -> None:
    engine = SlowEngine(folder, slow_from=99)

    async def program() -> list[Completion]:
        await engine.start()
        ids = engine.render([{"role": "user", "content": "1+1="}])
        first, second = (
            asyncio.create_task(
                engine.sample_ids(ids, n=n, seed=0, params=RolloutConfig(max_tokens=2).sampling)
            )
            for n in (3, 2)
        )
        await asyncio.sleep(0)
        first.cancel()
        kept = await second
        await engine.close()
        return kept

    with closing(asyncio.Runner()) as loop:
        assert len(loop.run(program())) == 2
    assert engine.decoded == 2
