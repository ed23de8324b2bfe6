"""A simulated engine and trainer around the real asynchronous loop, on a clock that jumps.

Episodes are turns of one unit of time. Weights reach a busy engine as in a run: drained, after the turns in progress,
or in flight, between two of them. A kill throws the loop away; what was in the journal comes back.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from snoozing_env.errors import EngineError
from snoozing_env.gates import GateConfig, Ladder, LadderConfig
from snoozing_env.pacing import DurationConfig, Durations, Fate, Flight, PacingConfig, Planner
from snoozing_env.pacing.planner import Counts
from snoozing_env.rollout.async_loop import AsyncLoop, Watcher
from snoozing_env.schedulers import build_scheduler
from snoozing_env.testing.clock import run_jumping
from snoozing_env.types import Group, GroupOutcome, TaskInfo

MIXED, SOLVED = np.array([0.0, 1.0, 1.0, 0.0]), np.ones(4)


@dataclass
class World:
    """How long things take and how often they fail; times in units of one turn."""

    turns: Callable[[int], float]
    """Turns of an episode of a task."""
    train_s: float = 1.0
    fail: float = 0.0
    """Share of dispatches that the engine answers with an error."""
    informative: float = 1.0
    kills: int = 0
    """Times that the process dies, at random moments."""
    batch: int = 4
    n: int = 200
    seed: int = 0


@dataclass
class SimulatedEngine:
    """Serves one policy; `publish` takes new weights the way the config says."""

    planner: Planner
    world: World
    rng: np.random.Generator
    running_turns: int = 0
    open: asyncio.Event = field(default_factory=asyncio.Event)
    idle: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.open.set()

    async def run(self, index: int, *, group_id: int) -> Group:
        if self.rng.random() < self.world.fail:
            await asyncio.sleep(0.1)
            raise EngineError("connection reset")
        started = asyncio.get_running_loop().time()
        await self.open.wait()
        version = self.planner.version  # of the first token
        left = self.world.turns(index)
        while left > 0:
            await self.open.wait()
            self.running_turns += 1
            await asyncio.sleep(min(left, 1.0))
            self.running_turns -= 1
            self.idle.set()
            left -= 1.0
        rewards = MIXED if self.rng.random() < self.world.informative else SOLVED
        outcome = GroupOutcome(
            task=index,
            rewards_G=rewards,
            version=version,
            duration_s=asyncio.get_running_loop().time() - started,
            tokens=8,
        )
        return Group(id=group_id, key=f"t{index}", outcome=outcome, trajectories=())

    async def take_weights(self) -> None:
        """Drained: nobody starts a turn until those in progress have ended."""
        if self.planner.config.weight_updates == "in-flight":
            return
        self.open.clear()
        while self.running_turns:
            self.idle.clear()
            await self.idle.wait()
        self.open.set()


@dataclass
class History:
    """What a run did, across its kills."""

    events: list[dict[str, Any]] = field(default_factory=list)
    lags: list[int] = field(default_factory=list)
    started: Counter[int] = field(default_factory=Counter)
    trained: Counter[int] = field(default_factory=Counter)
    dropped: Counter[int] = field(default_factory=Counter)
    """By task: finished and informative, but too old."""
    kills: int = 0
    seconds: float = 0.0
    counts: Counts = field(default_factory=Counts)
    steps: int = 0


@dataclass
class _Disk:
    """What outlives a kill: the newest checkpoint and what finished since."""

    step: int = 0
    accepted: tuple[Group, ...] = ()
    next_id: int = 0
    journal: list[Group] = field(default_factory=list)


class _Killed(Exception):
    """The process dies here."""


def play(config: PacingConfig, world: World, *, steps: int, save_every: int = 3) -> History:
    """Train `steps` steps, dying and resuming on the way; the clock jumps."""
    history, rng = History(), np.random.default_rng(world.seed)
    disk, kills_left = _Disk(), world.kills

    async def life() -> None:
        nonlocal kills_left
        books = _Books(history, disk)
        loop = _build(config, world, rng, steps, books)
        _restore(loop, disk, history)
        dies_at = (
            asyncio.get_running_loop().time() + float(rng.exponential(30.0)) if kills_left else float("inf")
        )
        try:
            async with asyncio.timeout_at(dies_at if kills_left else None):
                while loop.planner.step < steps:
                    await _step(loop, world, history, disk, save_every)
        except TimeoutError:
            kills_left -= 1
            history.kills += 1
            raise _Killed from None
        finally:
            history.seconds += asyncio.get_running_loop().time()
            history.counts, history.steps = loop.planner.counts, loop.planner.step
            books.open = False  # what is cancelled now died with the process and tells nobody
            await loop.close()

    while history.steps < steps:
        try:
            run_jumping(life())
        except _Killed:
            continue
    return history


async def _step(loop: AsyncLoop, world: World, history: History, disk: _Disk, save_every: int) -> None:
    step = loop.planner.step
    batch = await loop.next_batch()
    history.events.append({"event": "take", "step": step, "ids": [g.id for g in batch.groups]})
    history.lags += [step - g.outcome.version for g in batch.groups]
    history.trained.update(g.outcome.task for g in batch.groups)
    await asyncio.sleep(world.train_s)
    if (step + 1) % save_every == 0:
        disk.step, disk.accepted, disk.next_id = step + 1, loop.planner.accepted, loop.next_group_id
        disk.journal.clear()
    engine = loop.runner
    assert isinstance(engine, SimulatedEngine)
    await engine.take_weights()
    loop.publish(step + 1)


@dataclass
class _Books(Watcher):
    """A ledger and a journal in memory."""

    history: History
    disk: _Disk
    open: bool = True

    def finished(self, group: Group, fate: Fate, told: GroupOutcome) -> None:
        task, version = group.outcome.task, group.outcome.version
        self.history.events.append({"event": "finish", "id": group.id, "fate": fate, "version": version})
        self.history.started[task] += 1
        if fate == "accepted":
            self.disk.journal.append(group)
        elif fate == "over_age":
            self.history.dropped[task] += 1

    def lost(self, flight: Flight) -> None:
        if self.open:
            self.history.events.append({"event": "lose", "id": flight.id})

    def expired(self, groups: Sequence[Group]) -> None:
        self.history.events.append({"event": "expire", "ids": [g.id for g in groups]})
        self.history.dropped.update(g.outcome.task for g in groups)


def _build(
    config: PacingConfig, world: World, rng: np.random.Generator, steps: int, books: _Books
) -> AsyncLoop:
    planner = Planner(config, batch=world.batch, steps=steps)
    keys = tuple(f"t{i}" for i in range(world.n))
    return AsyncLoop(
        SimulatedEngine(planner, world, rng),
        build_scheduler({"kind": "uniform"}, [TaskInfo(key=key) for key in keys], world.seed),
        planner,
        Durations(DurationConfig(), [None] * world.n),
        gate=GateConfig(),
        ladder=Ladder(LadderConfig()),
        keys=keys,
        watcher=books,
    )


def _restore(loop: AsyncLoop, disk: _Disk, history: History) -> None:
    if not history.events:
        return
    groups = {g.id: g for g in (*disk.accepted, *disk.journal)}
    ids = [int(e["id"]) for e in history.events if e["event"] in ("finish", "lose")]
    loop.planner.restore(step=disk.step, accepted=groups.values(), counts=Counts(started=len(groups)))
    loop.next_group_id = max([disk.next_id, *(id + 1 for id in ids)])
    history.events.append({"event": "resume", "step": disk.step, "ids": sorted(groups)})


def random_world(seed: int) -> World:
    """Durations of every scale, failures, filters and kills."""
    rng = np.random.default_rng([seed, 2])
    spread = float(rng.choice([0.0, 1.0, 2.0]))

    def turns(task: int) -> float:
        return float(np.exp(spread * np.random.default_rng([seed, task]).standard_normal()))

    return World(
        turns=turns,
        train_s=float(rng.choice([0.0, 0.3, 3.0])),
        fail=float(rng.choice([0.0, 0.1, 0.3])),
        informative=float(rng.choice([0.5, 1.0])),
        kills=int(rng.integers(0, 3)),
        batch=int(rng.integers(1, 5)),
        n=int(rng.choice([1, 5, 100])),
        seed=seed,
    )


def random_pacing(seed: int) -> PacingConfig:
    rng = np.random.default_rng([seed, 3])
    return PacingConfig(
        max_staleness=int(rng.choice([0, 1, 2, 8])),
        weight_updates=str(rng.choice(["drain", "in-flight"])),  # type: ignore[arg-type]
        stragglers=str(rng.choice(["wait", "let-go"])),  # type: ignore[arg-type]
        over_age=str(rng.choice(["drop", "requeue", "keep-corrected"])),  # type: ignore[arg-type]
        max_running=int(rng.choice([3, 16, 64])),
    )
