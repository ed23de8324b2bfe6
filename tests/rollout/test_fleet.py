"""Several engines behind one, on a clock that jumps."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

import pytest

from snoozing_env.errors import EngineError
from snoozing_env.rollout.engines.base import Completion, Endpoint, OneAddress, SamplingParams
from snoozing_env.rollout.engines.fleet import FleetEngine
from snoozing_env.testing.clock import run_jumping

PARAMS = SamplingParams()


@dataclass
class Echo(OneAddress):
    """Answers after a second with its own number, unless it is down."""

    number: int
    version: int = 0
    up: bool = True
    model: str = "policy"
    asked: list[int] = field(default_factory=list)
    busiest: int = 0
    _now: int = 0

    def set_version(self, version: int) -> None:
        self.version = version

    async def start(self) -> None:
        if not self.up:
            raise EngineError("connection refused")

    async def sample(self, messages: Any, *, n: int, seed: int, params: SamplingParams) -> list[Completion]:
        self.asked.append(seed)
        self._now += n
        self.busiest = max(self.busiest, self._now)
        try:
            await asyncio.sleep(1.0)
        finally:
            self._now -= n
        if not self.up:
            raise EngineError("connection reset")
        one = Completion(
            prompt_ids=(1,),
            token_ids=(self.number,),
            logprobs=(0.0,),
            text="",
            finish_reason="stop",
            version=self.version,
            last_version=self.version,
        )
        return [one] * n

    async def endpoint(self) -> Endpoint:
        return Endpoint(base_url=f"http://{self.number}/v1", tokenizer="")

    async def close(self) -> None: ...


Program = Callable[[FleetEngine, list[Echo]], Coroutine[Any, Any, None]]


def with_fleet(program: Program, *, n: int = 2) -> None:
    async def main() -> None:
        echoes = [Echo(i) for i in range(n)]
        fleet = FleetEngine({f"engine {e.number}": e for e in echoes})
        await fleet.start()
        try:
            await program(fleet, echoes)
        finally:
            await fleet.close()

    run_jumping(main())


async def ask(fleet: FleetEngine, *seeds: int) -> list[int]:
    answers = await asyncio.gather(*(fleet.sample([], n=2, seed=s, params=PARAMS) for s in seeds))
    return [answer[0].token_ids[0] for answer in answers]


def test_requests_go_to_the_least_loaded_engine():
    async def program(fleet: FleetEngine, echoes: list[Echo]) -> None:
        await ask(fleet, *range(10))
        assert [e.busiest for e in echoes] == [10, 10]

    with_fleet(program)


def test_a_groups_later_requests_find_the_engine_of_its_first():
    async def program(fleet: FleetEngine, echoes: list[Echo]) -> None:
        first = await ask(fleet, *range(6))
        assert await ask(fleet, *reversed(range(6))) == first[::-1]

    with_fleet(program)


def test_requests_of_a_dying_engine_are_answered_by_another():
    async def program(fleet: FleetEngine, echoes: list[Echo]) -> None:
        echoes[0].up = False
        assert await ask(fleet, *range(4)) == [1, 1, 1, 1]
        asked = len(echoes[0].asked)
        await ask(fleet, *range(4, 8))
        assert len(echoes[0].asked) == asked, "it is not asked again before it answers"

    with_fleet(program)


def test_an_engine_that_came_back_serves_only_after_it_was_sent_weights():
    async def program(fleet: FleetEngine, echoes: list[Echo]) -> None:
        fleet.set_version(3)
        echoes[0].up = False
        await ask(fleet, 0, 1)
        echoes[0].up, echoes[0].version = True, 0
        await asyncio.sleep(10)
        assert fleet.stale() == [0]
        assert set(await ask(fleet, 2, 3, 4)) == {1}
        assert fleet.version == 3
        fleet.served(0, 3)
        assert set(await ask(fleet, 5, 6)) == {0, 1}

    with_fleet(program)


def test_when_no_engine_serves_each_ones_reason_is_given():
    async def program(fleet: FleetEngine, echoes: list[Echo]) -> None:
        for echo in echoes:
            echo.up = False
        with pytest.raises(
            EngineError,
            match=r"none of 2 engines serves \(engine 0: connection reset; engine 1: connection reset\)",
        ):
            await ask(fleet, 0)
        echoes[1].up = True
        await asyncio.sleep(10)
        with pytest.raises(EngineError, match=r"engine 0: connection refused; engine 1: waits for weights"):
            await ask(fleet, 0)

    with_fleet(program)


def test_a_push_that_failed_takes_an_engine_out_of_service():
    async def program(fleet: FleetEngine, echoes: list[Echo]) -> None:
        fleet.fail(1, "step 'update' failed")
        fleet.set_version(1)
        assert [e.version for e in echoes] == [1, 0]
        assert set(await ask(fleet, 0, 1)) == {0}

    with_fleet(program)


def test_a_fleet_starts_with_one_engine_down_and_not_with_none_up():
    async def main(up: list[bool]) -> None:
        fleet = FleetEngine({f"engine {i}": Echo(i, up=u) for i, u in enumerate(up)})
        try:
            await fleet.start()
        finally:
            await fleet.close()

    run_jumping(main([True, False]))
    with pytest.raises(EngineError, match="none of 2 engines serves"):
        run_jumping(main([False, False]))


def test_a_fleet_of_none_is_refused():
    with pytest.raises(ValueError, match="at least one engine"):
        FleetEngine({})


def test_draining_waits_for_what_was_sent_and_sends_the_rest_elsewhere():
    async def program(fleet: FleetEngine, echoes: list[Echo]) -> None:
        running = asyncio.create_task(ask(fleet, 0, 1))
        await asyncio.sleep(0.5)
        await fleet.drain(0)
        assert fleet.members[0].load == 0
        assert set(await ask(fleet, 2, 3, 4)) == {1}
        fleet.served(0, 1)
        assert 0 in await ask(fleet, 5, 6)
        await running

    with_fleet(program)


def test_while_all_engines_drain_requests_wait_for_the_first_that_serves_again():
    async def program(fleet: FleetEngine, echoes: list[Echo]) -> None:
        running = asyncio.create_task(ask(fleet, 0))
        await asyncio.sleep(0.5)
        await fleet.drain(0)
        waiting = asyncio.create_task(ask(fleet, 1))
        await asyncio.sleep(60)
        assert not waiting.done()
        fleet.served(0, 1)
        assert await waiting == [0]
        await running

    with_fleet(program, n=1)


def test_requests_that_wait_for_a_drain_are_told_when_the_engine_dies():
    async def program(fleet: FleetEngine, echoes: list[Echo]) -> None:
        await fleet.drain(0)
        waiting = asyncio.create_task(ask(fleet, 1))
        await asyncio.sleep(1)
        echoes[0].up = False
        fleet.fail(0, "connection reset")
        with pytest.raises(EngineError, match="engine 0: connection reset"):
            await waiting

    with_fleet(program, n=1)


def test_a_groups_episodes_keep_to_one_engine_and_groups_spread_over_all():
    async def program(fleet: FleetEngine, echoes: list[Echo]) -> None:
        async with fleet.lease(0, 8) as first, fleet.lease(1, 8) as second, fleet.lease(2, 4) as third:
            assert [first.base_url, second.base_url, third.base_url] == [f"http://{i}/v1" for i in (0, 1, 0)]
            assert [member.episodes for member in fleet.members] == [12, 8]
            assert await ask(fleet, 3) == [1], "requests know of the episodes"
        assert [member.episodes for member in fleet.members] == [0, 0]

    with_fleet(program)


def test_an_engine_that_fails_an_episode_is_out_of_service_and_the_next_group_plays_elsewhere():
    async def program(fleet: FleetEngine, echoes: list[Echo]) -> None:
        with pytest.raises(EngineError, match="connection reset"):
            async with fleet.lease(0, 8):
                raise EngineError("connection reset")
        assert [member.condition for member in fleet.members] == ["down", "serving"]
        async with fleet.lease(0, 8) as endpoint:
            assert endpoint.base_url == "http://1/v1"

    with_fleet(program)
