"""New weights for several servers; the servers here only remember what they were sent."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch

from snoozing_env.errors import EngineError, WeightTransferError
from snoozing_env.rollout.engines.base import Completion, Endpoint, SamplingParams
from snoozing_env.rollout.engines.fleet import FleetEngine
from snoozing_env.rollout.loop_thread import LoopThread
from snoozing_env.train.weights_fleet import FleetTransfer

WEIGHTS = [("w", torch.ones(2))]


@dataclass
class Server:
    """An engine and the transfer that reaches it, in one."""

    up: bool = True
    version: int = 0
    model: str = "policy"
    pushed: list[int] = field(default_factory=list)
    expected: list[int] = field(default_factory=list)
    release: threading.Event = field(default_factory=threading.Event)

    def set_version(self, version: int) -> None:
        self.version = version

    def expect(self, version: int) -> None:
        assert version not in self.pushed, "told before the push, not after it"
        self.expected.append(version)

    async def start(self) -> None:
        if not self.up:
            raise EngineError("connection refused")

    async def sample(self, messages: Any, *, n: int, seed: int, params: SamplingParams) -> list[Completion]:
        raise NotImplementedError

    async def endpoint(self) -> Endpoint:
        raise NotImplementedError

    async def close_engine(self) -> None: ...

    def connect(self) -> None:
        if not self.up:
            raise WeightTransferError("connection refused")

    def push(self, named_tensors: Iterable[tuple[str, torch.Tensor]], version: int) -> None:
        assert len(list(named_tensors)) == 1, "every server must get every tensor"
        if not self.up:
            raise WeightTransferError("step 'update' got no answer")
        self.pushed.append(version)

    def close(self) -> Any:
        async def nothing() -> None: ...

        return nothing()


@pytest.fixture
def loop() -> Iterator[LoopThread]:
    thread = LoopThread()
    yield thread
    thread.close()


def until(true: Callable[[], bool]) -> None:
    limit = time.monotonic() + 10
    while not true():
        assert time.monotonic() < limit, "it never happened"
        time.sleep(0.01)


@dataclass
class Fleet:
    servers: list[Server]
    engine: FleetEngine
    transfer: FleetTransfer


def build(loop: LoopThread, order: str = "one-by-one") -> Fleet:
    servers = [Server(), Server()]

    async def make() -> FleetEngine:
        return FleetEngine({f"server {i}": s for i, s in enumerate(servers)}, probe_s=0.01)  # type: ignore[misc]

    engine = loop.run(make())
    return Fleet(servers, engine, FleetTransfer(servers, engine, loop.run, order=order))  # type: ignore[arg-type]


@pytest.mark.parametrize("order", ["one-by-one", "all-at-once"])
def test_every_server_gets_every_version(loop: LoopThread, order: str):
    fleet = build(loop, order)
    fleet.transfer.connect()
    fleet.transfer.push(iter(WEIGHTS), 1)
    fleet.transfer.push(iter(WEIGHTS), 2)
    assert [s.pushed for s in fleet.servers] == [[1, 2], [1, 2]]
    assert [s.expected for s in fleet.servers] == [[1, 2], [1, 2]], "an answer may come before a push returns"
    assert fleet.engine.version == 2


@pytest.mark.parametrize("order", ["one-by-one", "all-at-once"])
def test_a_dead_server_costs_only_itself_and_gets_the_present_weights_when_it_is_back(
    loop: LoopThread, order: str
):
    fleet = build(loop, order)
    loop.run(fleet.engine.start())
    fleet.servers[1].up = False
    fleet.transfer.push(iter(WEIGHTS), 1)
    assert [m.condition for m in fleet.engine.members] == ["serving", "down"]
    fleet.servers[1].up = True

    until(lambda: bool(fleet.engine.stale()))
    assert fleet.transfer.refresh(iter(WEIGHTS)) == [1]
    assert fleet.servers[1].pushed == [1]
    assert [m.condition for m in fleet.engine.members] == ["serving", "serving"]


def test_no_server_at_all_is_an_error_with_each_ones_reason(loop: LoopThread):
    fleet = build(loop)
    for server in fleet.servers:
        server.up = False
    with pytest.raises(
        WeightTransferError, match=r"no server took the weights \(server 0: .*; server 1: .*\)"
    ):
        fleet.transfer.push(iter(WEIGHTS), 1)
    with pytest.raises(WeightTransferError, match="no server is up"):
        fleet.transfer.push(iter(WEIGHTS), 2)


def test_one_transfer_per_engine(loop: LoopThread):
    fleet = build(loop)
    with pytest.raises(ValueError, match="1 transfers for 2 engines"):
        FleetTransfer(fleet.servers[:1], fleet.engine, loop.run)  # type: ignore[arg-type]


def test_a_push_waits_for_the_first_server_that_comes_back_and_keeps_asking_for_it(loop: LoopThread):
    fleet, asked = build(loop), 0

    def keep_alive() -> None:
        nonlocal asked
        asked += 1
        fleet.servers[1].up = asked >= 2

    fleet.transfer = FleetTransfer(
        fleet.servers,  # type: ignore[arg-type]
        fleet.engine,
        loop.run,
        patience_s=20.0,
        keep_alive=keep_alive,
    )
    loop.run(fleet.engine.start())
    fleet.transfer.push(iter(WEIGHTS), 1)
    for server in fleet.servers:
        server.up = False
    fleet.transfer.push(iter(WEIGHTS), 2)
    assert asked >= 2
    assert [s.pushed for s in fleet.servers] == [[1], [1, 2]]
    assert [m.condition for m in fleet.engine.members] == ["down", "serving"]


def test_patience_ends_and_weights_that_no_server_ever_took_are_not_waited_for(loop: LoopThread):
    fleet = build(loop)
    impatient = FleetTransfer(fleet.servers, fleet.engine, loop.run, patience_s=0.3)  # type: ignore[arg-type]
    loop.run(fleet.engine.start())
    impatient.push(iter(WEIGHTS), 1)
    for server in fleet.servers:
        server.up = False
    with pytest.raises(WeightTransferError, match="no server is up to take the weights"):
        impatient.push(iter(WEIGHTS), 2)
    never = build(loop)
    for server in never.servers:
        server.up = False
    patient = FleetTransfer(never.servers, never.engine, loop.run, patience_s=1e9)  # type: ignore[arg-type]
    with pytest.raises(WeightTransferError, match="no server took the weights"):
        patient.push(iter(WEIGHTS), 1)
