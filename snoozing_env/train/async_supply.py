"""Groups from a loop that never stops: generation overlaps with training, within the bound on staleness.

    loop's thread      AsyncLoop ⇄ engines         every finished group ─▶ journal, ledger, outcome log
    trainer's thread   publish ─ collect ─ save    each runs in the loop's thread, so nothing needs a lock

A checkpoint holds what waits; the journal what finished since. After a kill both come back: the scheduler learns what
it had learned, and every group that could still be trained waits again, however many steps were undone. A run that
died before its first checkpoint has its journal only, and goes on from that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TypeVar

from snoozing_env.buffers.journal import Entry, Journal, merge_journals, read_journal
from snoozing_env.buffers.store import dump_groups, parse_groups
from snoozing_env.files import write_atomically
from snoozing_env.gates import Ladder
from snoozing_env.pacing import Durations, Fate, Flight, Planner
from snoozing_env.pacing.ledger import FILE_NAME as LEDGER_FILE
from snoozing_env.pacing.ledger import Ledger
from snoozing_env.pacing.planner import Counts
from snoozing_env.rollout.accounted import AccountedRunner
from snoozing_env.rollout.async_loop import AsyncLoop, Watcher
from snoozing_env.rollout.loop import StepBatch
from snoozing_env.rollout.loop_thread import LoopThread
from snoozing_env.train.supply import DURATIONS_FILE, GROUPS_FILE, Parts, Supply, SyncSupply
from snoozing_env.types import Group

T = TypeVar("T")
JOURNALS = "journal"


class AsyncSupply(Watcher):
    """Generates all the time, at most `pacing.max_staleness` versions ahead."""

    def __init__(self, parts: Parts, thread: LoopThread) -> None:
        recipe, self._parts = parts.recipe, parts
        self._thread = thread
        self._planner = Planner(recipe.pacing, batch=recipe.train.batch_groups, steps=recipe.train.steps)
        self._durations = Durations(recipe.pacing.durations, [info.duration_s for info in parts.infos])
        self._ledger = Ledger(recipe.directory / LEDGER_FILE)
        self._journal: Journal | None = None
        self._loop = AsyncLoop(
            AccountedRunner(parts.runner, parts.account),
            parts.scheduler,
            self._planner,
            self._durations,
            gate=recipe.gate,
            ladder=Ladder(recipe.ladder),
            keys=tuple(info.key for info in parts.infos),
            watcher=self,
        )

    def run(self, program: Callable[[], Awaitable[T]], *, meanwhile: Callable[[], None] | None = None) -> T:
        return self._thread.run(_await(program), meanwhile=meanwhile)

    def publish(self, version: int) -> None:
        def tell() -> None:
            self._parts.runner.engine.set_version(version)
            self._loop.publish(version)

        self.call(tell)

    def collect(self, version: int, *, groups: int, meanwhile: Callable[[], None]) -> StepBatch:
        async def next_batch() -> StepBatch:
            self._planner.resize(groups)
            if self._planner.step != version:
                raise RuntimeError(f"the trainer asks for step {version}, step {self._planner.step} is next")
            batch = await self._loop.next_batch()
            self._ledger.take(version, [group.id for group in batch.groups])
            self._parts.account.train(batch.groups)
            return batch

        return self._thread.run(next_batch(), meanwhile=meanwhile)

    # -- Watcher ----------------------------------------------------------------------------------------

    def finished(self, group: Group, fate: Fate) -> None:
        """Durable first, then told: a kill in between leaves a group that is restored, not one that is lost."""
        if self._journal is None:
            self._journal = self._open_journal(self._planner.step)
        self._journal.append(group, fate)
        self._ledger.finish(group.id, fate, group.outcome.version)
        self._parts.account.finish(group, fate)
        self._parts.outcomes.append([replace(group, outcome=group.own_outcome)], step=self._planner.step + 1)
        self._parts.reuse.store(group)

    async def rescue(self, group: Group) -> Group | None:
        return await self._parts.reuse.rescue(group, version=self._planner.step)

    def lost(self, flight: Flight) -> None:
        self._ledger.lose(flight.id)

    def cut_off(self, group: Group) -> None:
        """Its rollouts were paid for, and come to nothing for want of others."""
        self._parts.account.finish(group, "filtered")

    def expired(self, groups: Sequence[Group]) -> None:
        self._ledger.expire([group.id for group in groups])
        self._parts.account.expire(groups)

    # -- state ------------------------------------------------------------------------------------------

    def save(self, directory: Path, and_also: Callable[[Path], None]) -> dict[str, Any]:
        return self.call(lambda: self._save(directory, and_also))

    def _save(self, directory: Path, and_also: Callable[[Path], None]) -> dict[str, Any]:
        """In the loop's thread, so that no group finishes between the snapshot and the new journal."""
        and_also(directory)
        write_atomically(directory / GROUPS_FILE, dump_groups(self._planner.accepted))
        keys = [info.key for info in self._parts.infos]
        write_atomically(directory / DURATIONS_FILE, self._durations.to_parquet(keys))
        if self._journal is not None:
            self._journal.close()
        self._journal = self._open_journal(self._planner.step)
        self._prune_journals()
        return {
            "next_group_id": self._loop.next_group_id,
            "dead_streak": self._loop.ladder.dead_streak,
            "step": self._planner.step,
            "counts": asdict(self._planner.counts),
            "durations": self._durations.state(),
            "quotas": None if self._planner.quotas is None else self._planner.quotas.state(),
            "parked": [self._parts.infos[task].key for task in self._loop.draws.parked],
            "in_flight": [
                {"id": f.id, "key": f.key, "version": f.version, "attempt": f.attempt}
                for f in self._planner.running
            ],
        }

    def load(self, directory: Path, state: Mapping[str, Any]) -> str:
        return self.call(lambda: self._load(directory, state))

    def start(self) -> str:
        """Begin a run, or go on with one that died before its first checkpoint."""
        return self.call(lambda: self._go_on(0, {}, next_id=0, counts=Counts(), begun=()))

    def _load(self, directory: Path, state: Mapping[str, Any]) -> str:
        waiting = parse_groups((directory / GROUPS_FILE).read_bytes(), self._parts.index_of)
        self._durations.from_parquet((directory / DURATIONS_FILE).read_bytes(), self._parts.index_of)
        self._durations.restore(dict(state["durations"]))
        self._loop.ladder.dead_streak = int(state["dead_streak"])
        parked = [{"id": None, "key": key} for key in state.get("parked", ())]
        said = self._go_on(
            int(state["step"]),
            {group.id: group for group in waiting},
            next_id=int(state["next_group_id"]),
            counts=Counts(**state["counts"]),
            begun=[*state["in_flight"], *parked],
        )
        if self._planner.quotas is not None:
            self._planner.quotas.restore(state.get("quotas") or ())
        return said

    def _go_on(
        self,
        step: int,
        groups: dict[int, Group],
        *,
        next_id: int,
        counts: Counts,
        begun: Iterable[Mapping[str, Any]],
    ) -> str:
        """From what waited at a step's checkpoint, what the journal has since, and what was in flight or drawn."""
        entries = self._take_over_journals(step)
        for entry in entries:
            self._learn(entry, step)
        if step == 0 and not entries:
            return ""
        groups = groups | {entry.id: entry.group for entry in entries if entry.group is not None}
        # The books start anew with what there is: lost flights are closed, restored groups count as started.
        ended = counts.lost + counts.filtered + counts.over_age + counts.expired + counts.trained
        counts.started = ended + len(groups)
        self._planner.restore(step=step, accepted=groups.values(), counts=counts)
        self._loop.next_group_id = next_id = max([next_id, *(entry.id + 1 for entry in entries)])
        index_of, finished = self._parts.index_of, {entry.id for entry in entries}
        again = [index_of[f["key"]] for f in begun if f["id"] not in finished and f["key"] in index_of]
        for task in reversed(again):
            self._parts.scheduler.offer(task)
        version_of = {id: groups[id].outcome.version for id in sorted(groups)}
        self._ledger.resume(step, version_of, next_id=next_id, again=len(again))
        return f"{len(groups)} finished groups wait, {len(entries)} of the journal; {len(again)} in flight start again"

    def _take_over_journals(self, step: int) -> list[Entry]:
        """What finished since the checkpoint of a step, undone steps included; its journal holds it all from now on."""
        paths, journal = self._journals_since(step), self._journal_path(step)
        if paths:
            merge_journals(paths, journal)
        return list(read_journal(journal, self._parts.index_of))

    def _learn(self, entry: Entry, step: int) -> None:
        """What was learned from a group when it finished."""
        self._parts.scheduler.observe(entry.outcome)
        self._durations.observe(entry.outcome.task, max(entry.outcome.duration_s, 1e-3))
        key = self._parts.infos[entry.outcome.task].key
        group = entry.group or Group(id=entry.id, key=key, outcome=entry.outcome, trajectories=())
        self._parts.account.restore(entry.id, entry.outcome, entry.fate)
        self._parts.outcomes.append([replace(group, outcome=entry.outcome)], step=step + 1)
        if entry.group is not None:
            self._parts.reuse.store(group)

    def _open_journal(self, step: int) -> Journal:
        return Journal(self._journal_path(step))

    def _journal_path(self, step: int) -> Path:
        return self._folder / f"{step:08d}.frames"

    def _prune_journals(self) -> None:
        """Keep one for each checkpoint that is kept, the one being written included, and one to spare."""
        for path in sorted(self._folder.glob("*.frames"))[: -self._parts.recipe.train.keep_checkpoints - 2]:
            path.unlink()

    def _journals_since(self, step: int) -> list[Path]:
        """Oldest first."""
        paths = sorted(self._folder.glob("*.frames"))
        return [path for path in paths if int(path.stem) >= step]

    @property
    def _folder(self) -> Path:
        return self._parts.recipe.directory / JOURNALS

    # -- ending -----------------------------------------------------------------------------------------

    def metrics(self) -> dict[str, float]:
        counts = {f"groups/{name}": float(n) for name, n in asdict(self._planner.counts).items()}
        running = {"groups/running": float(len(self._planner.running))}
        return counts | running | self._parts.runner.metrics()

    def interrupt(self, error: BaseException) -> None:
        self.call(lambda: self._loop.interrupt(error))

    def stop(self) -> None:
        """Start nothing more and cancel what is in flight."""
        self._thread.run(self._loop.close())

    def close(self) -> None:
        self._thread.close()
        self._ledger.close()
        if self._journal is not None:
            self._journal.close()

    def call(self, action: Callable[[], T]) -> T:
        async def call() -> T:
            return action()

        return self._thread.run(call())


async def _await(program: Callable[[], Awaitable[T]]) -> T:
    return await program()


def build_supply(parts: Parts, loop: asyncio.Runner | LoopThread) -> Supply:
    """The supply that `pacing.max_staleness` asks for.

    Raises:
        ValueError: an asynchronous run was given a loop that stops between two steps.
    """
    if parts.recipe.pacing.max_staleness == 0:
        return SyncSupply(parts, loop)
    if not isinstance(loop, LoopThread):
        raise ValueError(
            f"max_staleness {parts.recipe.pacing.max_staleness} needs a LoopThread, got {type(loop).__name__}"
        )
    return AsyncSupply(parts, loop)
