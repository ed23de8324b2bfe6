"""Deadlines of rollouts and groups, and redundant rollouts: what is used, what is cancelled, and what reaches the engine (A5)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pytest

from snoozing_env.errors import EngineError
from snoozing_env.rollout.catalogue import Catalogue
from snoozing_env.rollout.cutoff import Attempt, Cutoff
from snoozing_env.rollout.engines.base import Completion, Message, SamplingParams
from snoozing_env.rollout.plan import Deadline
from snoozing_env.rollout.runner import GroupRunner, RolloutConfig
from snoozing_env.testing.clock import run_jumping
from snoozing_env.types import Group, Trajectory
from tests.rollout.scripted import ScriptedEngine

T = TypeVar("T")
Load = Callable[..., Catalogue]


def made(k: int, *, valid: bool = True, reason: str = "", tokens: int = 1) -> Trajectory:
    return Trajectory(
        prompt_ids=(0,), completion_ids=(k,) * tokens, logprobs=(0.0,) * tokens, mask=(1,) * tokens, reward=1.0, valid=valid,
        error=reason,
    )  # fmt: skip


def attempt(k: int, seconds: float, *, valid: bool = True, ends_s: float = 0.0) -> Attempt:
    """Rollout k, whose one token is k; cancelled, it takes `ends_s` to end and has made five."""

    async def play() -> Trajectory:
        try:
            await asyncio.sleep(seconds)
        except asyncio.CancelledError:
            await asyncio.sleep(ends_s)
            raise
        return made(k, valid=valid)

    return Attempt(play, lambda reason: made(k, valid=False, reason=reason, tokens=5))


def race(
    attempts: Sequence[Attempt], *, wanted: int, within_s: float | None = None, spare_wait: float = 0.0
) -> tuple[list[Trajectory], float, Cutoff]:
    """The kept trajectories, when they were there, and the books."""

    async def program() -> tuple[list[Trajectory], float, Cutoff]:
        cutoff = Cutoff(spare_wait)
        deadline = None if within_s is None else Deadline.within(within_s)
        kept = await cutoff.run(attempts, wanted=wanted, deadline=deadline)
        seconds = asyncio.get_running_loop().time()
        await cutoff.close()
        assert len(asyncio.all_tasks()) == 1, "nothing is left running"
        return kept, seconds, cutoff

    return run_jumping(program())


def ids(kept: Sequence[Trajectory]) -> list[int]:
    return [t.completion_ids[0] for t in kept]


def test_what_is_unfinished_at_the_deadline_is_invalid_with_its_reason_and_the_rest_is_kept():
    kept, seconds, cutoff = race([attempt(k, 4.0 * k) for k in range(4)], wanted=4, within_s=10.0)
    assert [t.valid for t in kept] == [True, True, True, False]
    assert kept[3].error == "cancelled: unfinished at its group's deadline of 10 s"
    assert seconds == 10.0
    assert cutoff.metrics() == {"rollouts/cancelled_late": 1.0}


def test_without_a_deadline_everybody_is_waited_for():
    kept, seconds, cutoff = race([attempt(k, 4.0 * k) for k in range(4)], wanted=4)
    assert (ids(kept), seconds, cutoff.metrics()["rollouts/cancelled_late"]) == ([0, 1, 2, 3], 12.0, 0.0)


def test_the_first_g_valid_of_g_and_r_are_used_and_the_rest_is_cancelled_and_counted():
    slow_first = [
        attempt(0, 9.0),
        attempt(1, 1.0, valid=False),
        attempt(2, 3.0),
        attempt(3, 2.0),
        attempt(4, 4.0),
    ]
    kept, seconds, cutoff = race(slow_first, wanted=3)
    assert (ids(kept), seconds) == ([2, 3, 4], 4.0)
    assert all(t.valid for t in kept)
    assert cutoff.counts.spare == 1
    assert cutoff.metrics()["rollouts/spare_length_ratio"] == 5.0, (
        "five tokens were thrown away, one each was kept"
    )


def test_waiting_on_for_spares_gives_those_that_were_started_first_their_place_back():
    attempts = [attempt(k, seconds) for k, seconds in enumerate([6.0, 2.0, 4.0, 3.0, 99.0])]
    assert ids(race(attempts, wanted=3)[0]) == [1, 2, 3]
    kept, seconds, _ = race(attempts, wanted=3, spare_wait=0.5)
    assert (ids(kept), seconds) == ([0, 1, 2], 6.0), "half of four seconds more, and the first has made it"


def test_a_group_has_g_rollouts_even_where_fewer_are_valid():
    kept, _, _ = race([attempt(k, 1.0 + k, valid=k == 3) for k in range(5)], wanted=3, within_s=4.5)
    assert (ids(kept), [t.valid for t in kept]) == ([0, 1, 3], [False, False, True])


def test_nobody_waits_for_a_cancelled_rollout_to_end_but_close_does(caplog: pytest.LogCaptureFixture):
    async def program() -> tuple[float, float]:
        cutoff, loop = Cutoff(), asyncio.get_running_loop()
        await cutoff.run(
            [attempt(0, 1.0), attempt(1, 99.0, ends_s=8.0)], wanted=2, deadline=Deadline.within(2.0)
        )
        there = loop.time()
        await cutoff.close()
        return there, loop.time()

    assert run_jumping(program()) == (2.0, 10.0)

    async def hangs() -> None:
        cutoff = Cutoff()
        await cutoff.run([attempt(0, 99.0, ends_s=1e6)], wanted=1, deadline=Deadline.within(1.0))
        await cutoff.close()

    with caplog.at_level(logging.WARNING):
        run_jumping(hangs())
    assert "1 cancelled rollouts have not ended within 30 s" in caplog.text


def test_an_error_cancels_the_others_and_is_raised_as_it_is():
    async def fails() -> Trajectory:
        await asyncio.sleep(1.0)
        raise EngineError("connection refused")

    with pytest.raises(EngineError, match="connection refused"):
        race([attempt(0, 99.0), Attempt(fails, lambda reason: made(1)), attempt(2, 99.0)], wanted=3)


# -- single turns ---------------------------------------------------------------------------------------


@dataclass
class TimedEngine(ScriptedEngine):
    """The k-th request takes `seconds(k)`; who gives up waiting is noted."""

    seconds: Callable[[int], float] = lambda k: 1.0
    requests: list[tuple[int, int]] = field(default_factory=list)
    """(n, seed) of each."""
    aborted: list[int] = field(default_factory=list)
    """Seeds of requests that were cancelled."""

    def __post_init__(self) -> None:
        super().__init__(lambda prompt, k: prompt.removeprefix("Say ") if k % 2 else "mauve")

    async def sample(
        self, messages: Sequence[Message], *, n: int, seed: int, params: SamplingParams
    ) -> list[Completion]:
        self.requests.append((n, seed))
        try:
            await asyncio.sleep(self.seconds(len(self.requests) - 1))
        except asyncio.CancelledError:
            self.aborted.append(seed)
            raise
        return await super().sample(messages, n=n, seed=seed, params=params)


def roll(
    catalogue: Catalogue, engine: ScriptedEngine, *, within_s: float | None = None, **config: Any
) -> tuple[Group, float]:
    async def program() -> tuple[Group, float]:
        runner = GroupRunner(catalogue, engine, RolloutConfig(group_size=4, **config), seed=0)
        group = await runner.run(0, group_id=7, within_s=within_s)
        seconds = asyncio.get_running_loop().time()
        await runner.close()
        assert len(asyncio.all_tasks()) == 1
        return group, seconds

    return run_jumping(program())


def valid(group: Group) -> list[bool]:
    assert group.outcome.valid_G is not None
    return group.outcome.valid_G.tolist()


def straggling(straggler: int) -> TimedEngine:
    """One of the requests takes for ever."""
    return TimedEngine(seconds=lambda k: 1e6 if k == straggler else 1.0)


def test_one_request_past_the_rollouts_deadline_is_aborted_and_makes_all_of_them_invalid(echo: Load):
    engine = TimedEngine(seconds=lambda k: 1e6)
    group, seconds = roll(echo(), engine, episode_s=30.0)
    assert (valid(group), seconds, len(engine.aborted)) == ([False] * 4, 30.0, 1)
    assert "the completion took longer than rollout.episode_s = 30 s" in group.trajectories[0].error
    assert group.outcome.valid_rewards.size == 0, "never a zero"


def test_requests_of_their_own_are_aborted_one_by_one(echo: Load):
    engine = straggling(2)
    group, seconds = roll(echo(), engine, split=True, episode_s=30.0)
    assert (valid(group), seconds) == ([True, True, False, True], 30.0)
    assert engine.aborted == [engine.requests[2][1]]


def test_the_groups_deadline_cuts_stragglers_off_and_the_engine_is_told(echo: Load):
    engine = straggling(1)
    group, seconds = roll(echo(), engine, split=True, within_s=12.0)
    assert (valid(group), seconds) == ([True, False, True, True], 12.0)
    assert group.trajectories[1].error == "cancelled: unfinished at its group's deadline of 12 s"
    assert engine.aborted == [engine.requests[1][1]]


def test_a_verdict_that_is_not_there_at_the_groups_deadline_costs_its_rollout_alone(echo: Load):
    engine = TimedEngine()
    engine.script = lambda prompt, k: "slow" if k == 3 else "mauve"
    group, seconds = roll(echo(), engine, within_s=20.0)
    assert (valid(group), seconds, engine.aborted) == ([True, True, True, False], 20.0, [])
    assert group.outcome.tokens == 3 * len("mauve") + len("slow"), "what was generated is counted"


def test_the_wait_for_a_free_place_counts(echo: Load):
    async def program() -> list[Group]:
        engine = TimedEngine(seconds=lambda k: 8.0)
        runner = GroupRunner(echo(), engine, RolloutConfig(group_size=2, concurrency=1), seed=0)
        groups = await asyncio.gather(*(runner.run(i, group_id=i, within_s=6.0 + 4.0 * i) for i in range(2)))
        await runner.close()
        return groups

    first, second = run_jumping(program())
    assert valid(first) == valid(second) == [False, False]
    assert "deadline of 10 s" in second.trajectories[0].error


def test_each_request_has_noise_of_its_own_that_the_dispatch_number_fixes(echo: Load):
    seeds = []
    for _ in range(2):
        engine = TimedEngine()
        roll(echo(), engine, split=True)
        seeds.append([seed for n, seed in engine.requests])
        assert [n for n, _ in engine.requests] == [1] * 4
    assert seeds[0] == seeds[1]
    assert len(set(seeds[0])) == 4


def test_spares_of_single_turns_need_requests_of_their_own(echo: Load):
    engine = TimedEngine()
    assert valid(roll(echo(), engine, spare=2)[0]) == [True] * 4
    assert [n for n, _ in engine.requests] == [4]
    engine = straggling(0)
    group, seconds = roll(echo(), engine, spare=2, split=True)
    assert (len(engine.requests), valid(group), seconds) == (6, [True] * 4, 1.0)
    assert len(engine.aborted) == 1


def test_an_evaluation_starts_no_spares(echo: Load):
    async def program() -> int:
        engine = TimedEngine()
        runner = GroupRunner(echo(), engine, RolloutConfig(group_size=4, spare=2, split=True), seed=0)
        await runner.run(0, group_id=0, n=4)
        await runner.close()
        return len(engine.requests)

    assert run_jumping(program()) == 4


def test_an_engine_that_fails_one_request_fails_the_group(echo: Load):
    engine = TimedEngine()
    engine.down = True
    with pytest.raises(EngineError, match="no vLLM server answers"):
        roll(echo(), engine, split=True)
