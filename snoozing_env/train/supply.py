"""Where a session's groups come from: a loop that turns only while the trainer waits, or one that never stops.

Session ── publish(version) · collect(version) · save · load ──▶ Supply ─┬─ SyncSupply   max_staleness = 0
                                                                         └─ AsyncSupply  max_staleness ≥ 1
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from snoozing_env.buffers.fresh import FreshBuffer
from snoozing_env.buffers.store import dump_groups, parse_groups
from snoozing_env.files import write_atomically
from snoozing_env.gates import Ladder
from snoozing_env.goodput import EngineAccount
from snoozing_env.outcome_log import OutcomeLog
from snoozing_env.pacing import Durations
from snoozing_env.pacing.rounds import Rounds
from snoozing_env.rollout.accounted import AccountedRunner
from snoozing_env.rollout.loop import StepBatch, SyncLoop
from snoozing_env.rollout.loop_thread import LoopThread
from snoozing_env.rollout.runner import GroupRunner
from snoozing_env.schedulers import Curriculum
from snoozing_env.train.recipe import Recipe
from snoozing_env.train.reuse import Reuse
from snoozing_env.types import Group, TaskInfo

T = TypeVar("T")
GROUPS_FILE = "groups.parquet"
DURATIONS_FILE = "durations.parquet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a supply is made of."""

    recipe: Recipe
    infos: Sequence[TaskInfo]
    runner: GroupRunner
    scheduler: Curriculum
    outcomes: OutcomeLog
    reuse: Reuse
    account: EngineAccount
    """Touched in the loop's thread only."""

    @property
    def index_of(self) -> dict[str, int]:
        return {info.key: i for i, info in enumerate(self.infos)}


class Supply(Protocol):
    """Informative groups, one batch per step."""

    def run(self, program: Callable[[], Awaitable[T]], *, meanwhile: Callable[[], None] | None = None) -> T:
        """Run something in the loop that uses the engine, and wait for it; `meanwhile` is called now and then where
        the loop has a thread of its own."""
        ...

    def call(self, action: Callable[[], T]) -> T:
        """Call something in the loop's thread: what the rollouts touch as well is touched there only."""
        ...

    def publish(self, version: int) -> None:
        """The engine serves the weights of `version` from now on."""
        ...

    def collect(self, version: int, *, groups: int, meanwhile: Callable[[], None]) -> StepBatch:
        """So many groups for the step at `version`; `meanwhile` is called now and then while waiting for them."""
        ...

    def start(self) -> str:
        """Begin without a checkpoint; returns what there is to say about it."""
        ...

    def save(self, directory: Path, and_also: Callable[[Path], None]) -> dict[str, Any]:
        """Write what is kept in files; returns the JSON-able rest. `and_also` is called at the same moment."""
        ...

    def load(self, directory: Path, state: Mapping[str, Any]) -> str:
        """Continue from `save`; returns what there is to say about it."""
        ...

    def metrics(self) -> dict[str, float]: ...

    def interrupt(self, error: BaseException) -> None:
        """End the wait for groups with this, as if it had not begun; a synchronous one goes on to its step."""
        ...

    def stop(self) -> None:
        """Start nothing more and cancel what is in flight."""
        ...

    def close(self) -> None:
        """End the loop; the engine is closed already."""
        ...


class SyncSupply:
    """Generates while the trainer waits; no group is in flight between two steps."""

    def __init__(self, parts: Parts, loop: asyncio.Runner | LoopThread) -> None:
        recipe, self._parts = parts.recipe, parts
        self._runner = loop
        self._version = 0
        self._buffer = FreshBuffer(recipe.buffer)
        self._rounds = _rounds(parts)
        self._round: list[Group] = []
        """Groups generated for the step that is being collected."""
        self.loop = SyncLoop(
            AccountedRunner(parts.runner, parts.account),
            parts.scheduler,
            self._buffer,
            gate=recipe.gate,
            ladder=Ladder(recipe.ladder),
            group_s=recipe.pacing.group_s,
            rounds=self._rounds,
            on_finished=self._finished,
            rescue=self._rescue,
        )

    def run(self, program: Callable[[], Awaitable[T]], *, meanwhile: Callable[[], None] | None = None) -> T:
        async def main() -> T:
            return await program()

        if isinstance(self._runner, LoopThread):
            return self._runner.run(main(), meanwhile=meanwhile)
        return self._runner.run(main())

    def call(self, action: Callable[[], T]) -> T:
        return action()

    def publish(self, version: int) -> None:
        self._parts.runner.engine.set_version(version)

    def collect(self, version: int, *, groups: int, meanwhile: Callable[[], None]) -> StepBatch:
        self._version, self._round = version, []
        batch = self.run(lambda: self.loop.collect(groups, version=version), meanwhile=meanwhile)
        self._settle(batch)
        return batch

    def _settle(self, batch: StepBatch) -> None:
        """On the books: a group that is neither trained nor waiting was filtered now, or is too old."""
        account = self._parts.account
        waiting = {group.id for group in self._buffer.groups}
        kept = waiting | {group.id for group in batch.groups}
        for group in self._round:
            if group.id not in kept:
                account.filter(group)
        account.train(batch.groups)
        account.expire_all_but(waiting)

    def _finished(self, groups: Sequence[Group], version: int) -> None:
        self._parts.outcomes.append(groups, step=version + 1)
        self._round += groups
        for group in groups:
            self._parts.account.finish(group, "accepted")
            self._parts.reuse.store(group)

    async def _rescue(self, group: Group) -> Group | None:
        return await self._parts.reuse.rescue(group, version=self._version)

    def start(self) -> str:
        return ""

    def save(self, directory: Path, and_also: Callable[[Path], None]) -> dict[str, Any]:
        and_also(directory)
        write_atomically(directory / GROUPS_FILE, dump_groups(self._buffer.groups))
        rounds, keys = self._rounds, [info.key for info in self._parts.infos]
        if rounds is not None:
            write_atomically(directory / DURATIONS_FILE, rounds.durations.to_parquet(keys))
        return {
            "durations": None if rounds is None else rounds.durations.state(),
            "parked": [] if rounds is None else [keys[task] for task in rounds.parked],
            "survival": self.loop.collector.survival,
            "next_group_id": self.loop.next_group_id,
            "dead_streak": self.loop.ladder.dead_streak,
            **self._buffer.state(),
        }

    def load(self, directory: Path, state: Mapping[str, Any]) -> str:
        groups = parse_groups((directory / GROUPS_FILE).read_bytes(), self._parts.index_of)
        self._buffer.restore(state, groups)
        self.loop.next_group_id = state["next_group_id"]
        self.loop.collector.survival = _survival(state["survival"])
        self.loop.ladder.dead_streak = state["dead_streak"]
        self._load_rounds(directory, state)
        return ""

    def _load_rounds(self, directory: Path, state: Mapping[str, Any]) -> None:
        """What was put off is offered again; durations are known again."""
        index_of = self._parts.index_of
        for key in reversed(state.get("parked", ())):
            if key in index_of:
                self._parts.scheduler.offer(index_of[key])
        if self._rounds is not None and state.get("durations"):
            self._rounds.durations.from_parquet((directory / DURATIONS_FILE).read_bytes(), index_of)
            self._rounds.durations.restore(state["durations"])

    def metrics(self) -> dict[str, float]:
        return self._parts.runner.metrics()

    def interrupt(self, error: BaseException) -> None: ...

    def stop(self) -> None: ...

    def close(self) -> None:
        self._runner.close()


def _rounds(parts: Parts) -> Rounds | None:
    """Tail batching, if the recipe asks for it."""
    pacing = parts.recipe.pacing
    if pacing.tail is None:
        return None
    durations = Durations(pacing.durations, [info.duration_s for info in parts.infos])
    return Rounds(parts.scheduler, durations, pacing.tail)


def _survival(saved: float | Mapping[str, float]) -> dict[str, float]:
    """A checkpoint's survival by dataset; schema 1 had one for all."""
    return dict(saved) if isinstance(saved, Mapping) else {"": saved}
