"""A simulated engine and trainer around the real asynchronous loop, on a clock that jumps.

Rollouts are turns of one unit of time, cut off by the real `Cutoff`. Weights reach a busy engine as in a run: drained,
after the turns in progress, or in flight, between two of them. A kill throws the loop away; what was in the journal
comes back, and the scheduler starts anew.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from snoozing_env.errors import EngineError, SaturationError
from snoozing_env.gates import GateConfig, Ladder, LadderConfig
from snoozing_env.pacing import DurationConfig, Durations, Fate, Flight, PacingConfig, Planner, TailConfig
from snoozing_env.pacing.planner import Counts
from snoozing_env.rollout.async_loop import AsyncLoop, Watcher
from snoozing_env.rollout.cutoff import Attempt, Cutoff
from snoozing_env.rollout.plan import Deadline
from snoozing_env.schedulers import Curriculum, UniformConfig
from snoozing_env.testing.clock import run_jumping
from snoozing_env.types import Group, GroupOutcome, TaskInfo, Trajectory

UNFINISHED = Trajectory(
    prompt_ids=(0,), completion_ids=(0,), logprobs=(0.0,), mask=(0,), reward=0.0, valid=False
)


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
    size: int = 2
    """G: rollouts of a group."""
    uneven: float = 0.0
    """Spread (in log turns) of the rollouts of one group."""
    spare: int = 0
    spare_wait: float = 0.0
    known: bool = False
    """Whether the tasks say how long they take."""
    shares: Mapping[str, float] = field(default_factory=dict)
    """Exact shares of the batch; task i is of dataset i mod D. Empty = none."""

    @property
    def tasks(self) -> list[TaskInfo]:
        names = sorted(self.shares) or [""]
        return [
            TaskInfo(
                key=f"t{i}",
                dataset=names[i % len(names)],
                duration_s=self.turns(i) if self.known else None,
            )
            for i in range(self.n)
        ]


class SettledCurriculum(Curriculum):
    """Keeps what became of the places it gave out."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.settled: list[tuple[Mapping[str, int], Mapping[str, int]]] = []
        """(asked, trained) of every step."""

    def settle_batch(
        self, asked: Mapping[str, int], trained: Mapping[str, int], barren: Collection[str] = ()
    ) -> None:
        self.settled.append((asked, trained))
        super().settle_batch(asked, trained, barren)


@dataclass
class SimulatedEngine:
    """Serves one policy; `publish` takes new weights the way the config says."""

    planner: Planner
    world: World
    rng: np.random.Generator
    cutoff: Cutoff = field(default_factory=Cutoff)
    running_turns: int = 0
    open: asyncio.Event = field(default_factory=asyncio.Event)
    idle: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.open.set()

    async def run(self, index: int, *, group_id: int, within_s: float | None = None) -> Group:
        world = self.world
        if self.rng.random() < world.fail:
            await asyncio.sleep(0.1)
            raise EngineError("connection reset")
        started = asyncio.get_running_loop().time()
        mixed = bool(self.rng.random() < world.informative)
        attempts = [self._attempt(index, mixed and k % 2 == 0) for k in range(world.size + world.spare)]
        deadline = None if within_s is None else Deadline.within(within_s)
        made = await self.cutoff.run(attempts, wanted=world.size, deadline=deadline)
        outcome = GroupOutcome(
            task=index,
            rewards_G=np.array([t.reward for t in made]),
            valid_G=np.array([t.valid for t in made]),
            version=min(t.version for t in made),
            duration_s=asyncio.get_running_loop().time() - started,
            tokens=8,
        )
        return Group(id=group_id, key=f"t{index}", outcome=outcome, trajectories=())

    def _attempt(self, index: int, wrong: bool) -> Attempt:
        dispatched, uneven = self.planner.version, self.world.uneven
        turns = self.world.turns(index) * float(np.exp(uneven * self.rng.standard_normal()) if uneven else 1)

        async def play() -> Trajectory:
            await self.open.wait()
            version = self.planner.version  # of the first token
            await self._turns(turns)
            return replace(UNFINISHED, reward=float(not wrong), valid=True, version=version)

        return Attempt(play, lambda reason: replace(UNFINISHED, version=dispatched, error=reason))

    async def _turns(self, left: float) -> None:
        while left > 0:
            await self.open.wait()
            self.running_turns += 1
            try:
                await asyncio.sleep(min(left, 1.0))
            finally:
                self.running_turns -= 1
                self.idle.set()
            left -= 1.0

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
    saturated: int = 0
    """Whether it ended early, with nothing to train on."""
    seconds: float = 0.0
    counts: Counts = field(default_factory=Counts)
    steps: int = 0
    cancelled_late: int = 0
    cancelled_spare: int = 0
    partial: int = 0
    """Trained groups that lack a rollout."""
    parked: int = 0
    """Tasks that were put off, counted once a step."""
    places: int = 0
    """Places that batches had by exact shares."""
    misplaced: int = 0
    """Of those, places that another dataset's group took or that stayed empty."""
    leaked: int = 0
    """asyncio tasks left when a life was over."""
    unbalanced: int = 0
    """Groups that a life's counts cannot account for."""


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
        except SaturationError:  # a world where no task can meet the deadline
            history.saturated += 1
        finally:
            history.seconds += asyncio.get_running_loop().time()
            history.counts, history.steps = loop.planner.counts, loop.planner.step
            books.open = False  # what is cancelled now died with the process and tells nobody
            await loop.close()
            await _close_books(loop, history)

    while history.steps < steps and not history.saturated:
        try:
            run_jumping(life())
        except _Killed:
            continue
    return history


async def _close_books(loop: AsyncLoop, history: History) -> None:
    engine, scheduler = loop.runner, loop.scheduler
    assert isinstance(engine, SimulatedEngine)
    await engine.cutoff.close()
    history.cancelled_late += engine.cutoff.counts.late
    history.cancelled_spare += engine.cutoff.counts.spare
    history.leaked += len(asyncio.all_tasks()) - 1
    history.unbalanced += abs(loop.planner.balance())
    assert isinstance(scheduler, SettledCurriculum)
    for asked, trained in scheduler.settled:
        history.places += sum(asked.values())
        history.misplaced += sum(max(n - trained.get(name, 0), 0) for name, n in asked.items())


async def _step(loop: AsyncLoop, world: World, history: History, disk: _Disk, save_every: int) -> None:
    step = loop.planner.step
    batch = await loop.next_batch()
    history.events.append({"event": "take", "step": step, "ids": [g.id for g in batch.groups]})
    history.lags += [step - g.outcome.version for g in batch.groups]
    history.trained.update(g.outcome.task for g in batch.groups)
    history.partial += sum(g.outcome.valid_rewards.size < loop.runner.world.size for g in batch.groups)
    history.parked += len(loop.draws.parked)
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

    def finished(self, group: Group, fate: Fate) -> None:
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
    tasks = world.tasks
    mixture = {"mixture": {"weights": dict(world.shares), "shares_of": "batch"}} if world.shares else {}
    scheduler = UniformConfig.model_validate(mixture)
    return AsyncLoop(
        SimulatedEngine(planner, world, rng, Cutoff(world.spare_wait)),
        SettledCurriculum(scheduler, tasks, world.seed),
        planner,
        Durations(DurationConfig(), [task.duration_s for task in tasks]),
        gate=GateConfig(),
        ladder=Ladder(LadderConfig()),
        keys=tuple(task.key for task in tasks),
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

    size, n = int(rng.choice([2, 2, 4])), int(rng.choice([1, 5, 100]))
    return World(
        turns=turns,
        train_s=float(rng.choice([0.0, 0.3, 3.0])),
        fail=float(rng.choice([0.0, 0.1, 0.3])),
        informative=float(rng.choice([0.5, 1.0])),
        kills=int(rng.integers(0, 3)),
        batch=int(rng.integers(1, 5)),
        n=n,
        seed=seed,
        size=size,
        uneven=float(rng.choice([0.0, 1.0])) if size > 2 else 0.0,
        spare=int(rng.integers(0, 3)) if size > 2 else 0,
        spare_wait=float(rng.choice([0.0, 0.5])),
        shares=_random_shares(rng) if n > 1 else {},
    )


def _random_shares(rng: np.random.Generator) -> dict[str, float]:
    n = int(rng.choice([0, 0, 2, 3]))
    return {f"d{i}": float(rng.choice([1.0, 2.0, 5.0])) for i in range(n)}


def random_pacing(seed: int) -> PacingConfig:
    """Every mode; tail batching only without exact shares, which refuse it, and deadlines that some task can meet."""
    rng, world = np.random.default_rng([seed, 3]), random_world(seed)
    deadlines = {1: [3600.0], 5: [3600.0, 20.0], 100: [3600.0, 20.0, 5.0]}
    config = PacingConfig(
        max_staleness=int(rng.choice([0, 1, 2, 8])),
        weight_updates=str(rng.choice(["drain", "in-flight"])),  # type: ignore[arg-type]
        stragglers=str(rng.choice(["wait", "let-go"])),  # type: ignore[arg-type]
        over_age=str(rng.choice(["drop", "requeue", "keep-corrected"])),  # type: ignore[arg-type]
        max_running=int(rng.choice([3, 16, 64])),
        group_s=float(rng.choice(deadlines[world.n])),
    )
    if rng.random() < 0.5 and not world.shares:
        tail = TailConfig(over=float(rng.choice([1.5, 4.0])), within=int(rng.choice([1, 3])))
        config = config.model_copy(update={"tail": tail})
    return config
