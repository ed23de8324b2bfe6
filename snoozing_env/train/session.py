"""One training run without its optimizer: engine, scheduler, loop, evaluation and log, as a `Feed` for the trainer.

    next_batch(step, model)
      ├─ weights of version `step` to the engine (a vLLM server; the local engine shares the trainer's)
      ├─ every E steps: held-out evaluation ─▶ run log
      └─ loop.collect(B) ─▶ groups; what they cost is kept until the trainer reports the step's loss

TRL's asynchronous trainer calls the two halves apart: `publish` after a step, `collect` before the next.

One asyncio loop serves the whole run and only turns while `next_batch` waits for it.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch

from snoozing_env.errors import StateError
from snoozing_env.files import write_atomically
from snoozing_env.goodput import Account, Undone
from snoozing_env.outcome_log import FILE_NAME as OUTCOMES_FILE
from snoozing_env.outcome_log import OutcomeLog
from snoozing_env.report.console import TrainProgress
from snoozing_env.report.runlog import NoticeRecord, RunLog, StepRecord
from snoozing_env.rollout.catalogue import Catalogue
from snoozing_env.rollout.engines.base import Engine
from snoozing_env.rollout.loop import StepBatch
from snoozing_env.rollout.loop_thread import LoopThread
from snoozing_env.rollout.runner import GroupRunner
from snoozing_env.schedulers import Curriculum
from snoozing_env.schedulers.state import load_snapshot, save_snapshot
from snoozing_env.train.async_supply import build_supply
from snoozing_env.train.checkpoints import MARK
from snoozing_env.train.health import Health, signals_of
from snoozing_env.train.held_out import HeldOut
from snoozing_env.train.recipe import Recipe
from snoozing_env.train.reuse import Reuse
from snoozing_env.train.step_record import SnoozeEvents, step_record
from snoozing_env.train.supply import Parts
from snoozing_env.train.weights import WeightTransfer
from snoozing_env.train.weights_fleet import FleetTransfer
from snoozing_env.types import Group

T = TypeVar("T")


class StopAsked(Exception):
    """Somebody asked the run to stop while it waited; no step is half done."""


@dataclass(slots=True)
class _Pending:
    """A collected step that waits for its loss."""

    batch: StepBatch
    seconds_sync: float
    started_training: float


class Session:
    """Everything of a run but weights and optimizer."""

    def __init__(
        self,
        recipe: Recipe,
        *,
        train: Catalogue,
        held_out: Catalogue,
        engine: Engine,
        transfer: WeightTransfer | None,
        log: RunLog,
        progress: TrainProgress,
        merge_state: bool = False,
        undone: Undone | None = None,
        loop: asyncio.Runner | LoopThread | None = None,
        keep_alive: Callable[[], None] = lambda: None,
    ) -> None:
        """`loop` is the one that uses the engine; an asynchronous run needs one in a thread of its own. `keep_alive`
        restarts servers that died; it is called now and then while the session waits. `undone`: what the process
        that this one goes on from had done after its last checkpoint."""
        self.recipe, self.engine, self.transfer = recipe, engine, transfer
        self.log, self.progress = log, progress
        self._merge, self._keep_alive = merge_state, keep_alive
        self._train = train
        self.scheduler = Curriculum(recipe.scheduler, train.infos, recipe.seed)
        self.rollouts = GroupRunner(train, engine, recipe.rollout, seed=recipe.seed)
        self.outcomes = OutcomeLog(recipe.directory / OUTCOMES_FILE, train.infos)
        self.reuse = _build_reuse(recipe, self.rollouts, self.scheduler)
        self.account = Account(recipe.gate, time.monotonic, undone=undone)
        parts = Parts(
            recipe=recipe,
            infos=train.infos,
            runner=self.rollouts,
            scheduler=self.scheduler,
            outcomes=self.outcomes,
            reuse=self.reuse,
            account=self.account.engine,
        )
        self.supply = build_supply(parts, loop or asyncio.Runner())
        self.held_out = HeldOut(
            GroupRunner(held_out, engine, recipe.rollout, seed=recipe.seed + 1),
            recipe.evaluation,
            fallback=recipe.fallback,
            scheduler=self.scheduler,
            log=log,
            progress=progress,
            patience_s=recipe.pacing.patience_s if isinstance(loop, LoopThread) else 0.0,
        )
        self.health = Health(recipe.train, log=log.append, say=progress.say)
        self.stop_asked = False
        """Set from outside, e.g. by a signal: the run ends after the step, or at once while it waits for groups."""
        self._pending: _Pending | None = None
        self._seconds_sync = 0.0
        self._published: int | None = None
        """Version this session has pushed; a server from an earlier run may serve anything."""
        self._events = SnoozeEvents(self.scheduler)
        self._seconds_before = 0.0
        """Of a checkpoint that has no account."""
        if isinstance(transfer, FleetTransfer):
            transfer.pausing = self.account.engine.time.pause
            transfer.waiting = self._while_pushing

    def run(self, awaitable: Callable[[], Awaitable[T]]) -> T:
        """Run something in the loop that uses the engine, and wait for it."""
        return self.supply.run(awaitable)

    def open(self) -> None:
        """Take over the server (ending what a dead trainer left half done), then make sure that it can serve.

        Raises:
            EngineError: nothing answers, or it cannot take weights.
        """
        if self.transfer is not None:
            self.transfer.connect()
        self.run(self.engine.start)

    # -- the trainer's side -----------------------------------------------------------------------------

    def next_batch(self, step: int, model: torch.nn.Module) -> Sequence[Group]:
        self.publish(step, model.named_parameters())
        return self.collect(step, model)

    def collect(self, step: int, model: torch.nn.Module) -> Sequence[Group]:
        """At most B groups for optimizer step `step`, whose weights are published already."""
        if step % self.recipe.evaluation.every == 0:
            self.evaluate(step, model)
        self._meanwhile(model)  # also where groups never have to be waited for
        size = self.recipe.train.batch_groups
        fresh = self.supply.call(lambda: self.reuse.open(size, version=step))
        self.account.trainer.enter("waiting")
        collected = self.supply.collect(step, groups=fresh, meanwhile=lambda: self._meanwhile(model))
        batch = self.run(lambda: self.reuse.complete(collected, size))
        self.account.trainer.enter("training")
        again = batch.groups[len(collected.groups) :]
        self.supply.call(lambda: self.account.engine.replay(again))
        self._pending = _Pending(batch, self._seconds_sync, time.perf_counter())
        return batch.to_train

    def finish(self, step: int, model: torch.nn.Module) -> None:
        """Measure the final weights."""
        self.publish(step, model.named_parameters())
        self.evaluate(step, model)

    def publish(self, version: int, weights: Iterable[tuple[str, torch.Tensor]]) -> None:
        """Serve these weights as `version`."""
        started = time.perf_counter()
        with self.account.trainer.during("syncing"):
            if self.transfer is not None and self._published != version:
                self._push(self.transfer, weights, version)
                self._published = version
            self.supply.publish(version)
        self._seconds_sync = time.perf_counter() - started

    def _push(
        self, transfer: WeightTransfer, weights: Iterable[tuple[str, torch.Tensor]], version: int
    ) -> None:
        """Replace the engine's weights; a fleet says itself which of its engines stand still for it."""
        if isinstance(transfer, FleetTransfer):
            transfer.push(weights, version)
            return
        pause = self.account.engine.time.pause
        self.supply.call(lambda: pause(1.0))
        try:
            transfer.push(weights, version)
        finally:
            self.supply.call(lambda: pause(-1.0))

    def _while_pushing(self) -> None:
        """A push that waits for a server is no reason not to stop, unless a step still waits for its loss."""
        if self.stop_asked and self._pending is None:
            raise StopAsked

    def _meanwhile(self, model: torch.nn.Module) -> None:
        """While groups or an evaluation are awaited: restart servers that died, send weights to those that came back."""
        if self.stop_asked:
            self.supply.interrupt(StopAsked())
            return
        self._keep_alive()
        if isinstance(self.transfer, FleetTransfer):
            self.transfer.refresh(model.named_parameters())

    def evaluate(self, step: int, model: torch.nn.Module) -> None:
        """Evaluate once per step, also across a resume; `model` has the weights that are served."""

        async def measure() -> None:
            self.account.engine.time.evaluate(True)
            try:
                await self.held_out.evaluate(step)
            finally:
                self.account.engine.time.evaluate(False)

        def meanwhile() -> None:
            if self.stop_asked:
                raise StopAsked
            self._meanwhile(model)

        with self.account.trainer.during("evaluating"):
            self.supply.run(measure, meanwhile=meanwhile)

    def metrics(self) -> Mapping[str, float]:
        """Goodput of the step in progress (A9), scheduler, buffers and what became of groups, for the trainer's log."""

        def now() -> dict[str, float]:
            scheduler = {f"scheduler/{name}": value for name, value in self.scheduler.metrics().items()}
            return {**self.account.step(), **self.supply.metrics(), **self.reuse.metrics(), **scheduler}

        return self.supply.call(now)

    def saving(self) -> AbstractContextManager[None]:
        return self.account.trainer.during("saving")

    def report_step(self, step: int, losses: dict[str, Any]) -> None:
        """Log a finished optimizer step; `losses` is what TRL reported for it."""
        if self._pending is None:
            return
        pending, self._pending = self._pending, None
        record = self._record(step, pending, losses)
        self.log.append(record)
        self.progress.update(record)
        for message in self.supply.call(self.scheduler.warnings):
            self.log.append(NoticeRecord(step=step, text=message))
            self.progress.say(message)
        self.health.close_step(step, signals_of(record))

    def _record(self, step: int, pending: _Pending, losses: Mapping[str, Any]) -> StepRecord:
        goodput = self.supply.call(lambda: self.account.step(close=True))
        return step_record(
            step,
            pending.batch,
            losses,
            pool=self.supply.call(self.scheduler.metrics),
            histogram=tuple(int(n) for n in self.scheduler.difficulty.histogram()),
            seconds=self._seconds_before + self.account.closed_s,
            fallback=self.held_out.fallen_back,
            seconds_train=time.perf_counter() - pending.started_training,
            seconds_sync=pending.seconds_sync,
            goodput=goodput,
            replayed_groups=pending.batch.replayed if self.recipe.replay else None,
            buffers=self.supply.call(self.reuse.metrics) or None,
            flow={name: n for name, n in self.supply.call(self.supply.metrics).items() if n} or None,
            **self.supply.call(self._events.since),
            **self.health.fields(),
        )

    @property
    def seconds(self) -> float:
        """Wall seconds of the run, earlier starts included."""
        return self._seconds_before + self.account.seconds

    # -- state ------------------------------------------------------------------------------------------

    def save(self, directory: Path) -> None:
        """Scheduler, carried groups and counters; `loop.json` is written last and marks the checkpoint whole.

        Raises:
            StateError: the disk is full or the directory cannot be written.
        """
        state = {
            "schema": 3,
            "supply": type(self.supply).__name__,
            "seed": self.recipe.seed,
            "seconds": self.seconds,
            "fallback": self.held_out.state(),
            "health": self.health.state(),
        }
        try:
            state |= self.supply.save(directory, lambda folder: self._save_moment(folder, state))
            write_atomically(directory / MARK, json.dumps(state).encode())
        except OSError as error:
            raise StateError(
                f"cannot save the run's state to {directory}: {error.strerror}; earlier checkpoints are intact"
            ) from error

    def _save_moment(self, directory: Path, state: dict[str, Any]) -> None:
        """What must be of the same moment as the groups that wait; finished groups change it in the loop's thread."""
        save_snapshot(self.scheduler.snapshot(), directory)
        state["outcomes"] = self.outcomes.mark()
        state["reuse"] = self.reuse.save(directory)
        state["account"] = self.account.state() | {"engine": self.account.engine.state()}

    def load(self, directory: Path) -> None:
        """Continue from `save`.

        Raises:
            StateError: the checkpoint is of another task set or scheduler, or not whole.
        """
        report = self.scheduler.restore(load_snapshot(directory), merge=self._merge)
        self.progress.say(f"resumed: {report}")
        state = json.loads((directory / MARK).read_bytes())
        made_by, wanted = state.get("supply", "SyncSupply"), type(self.supply).__name__
        if made_by != wanted:
            raise StateError(
                f"the checkpoint {directory} was made by {made_by}, this run uses {wanted}; keep pacing.max_staleness at 0, "
                "or above it, as it was"
            )
        self.reuse.load(
            directory, state.get("reuse", {}), {t.key: i for i, t in enumerate(self._train.infos)}
        )
        self._load_account(state)
        self._restore_outcomes(state.get("outcomes"))
        if said := self.supply.load(directory, state):
            self.progress.say(said)
        self._events.restart()
        self.held_out.restore(state.get("fallback"))
        self.health.restore(state.get("health"))

    def _load_account(self, state: Mapping[str, Any]) -> None:
        if (saved := state.get("account")) is None:
            self._seconds_before = state["seconds"]
            return
        self.account.add(saved)
        self.supply.call(lambda: self.account.engine.add(saved["engine"]))

    def _restore_outcomes(self, mark: int | None) -> None:
        """Cut the outcome log back to the checkpoint; a log that lost lines is no reason not to train on."""
        if mark is not None and (extra := self.outcomes.cut(mark)) < 0:
            self.progress.say(
                f"{self.outcomes.path} lacks {-extra} bytes of what was logged before; going on"
            )

    def close(self) -> None:
        """Close engine and event loop."""

        async def stop() -> None:
            await self.rollouts.close()
            await self.held_out.runner.close()
            await self.engine.close()

        self.supply.stop()
        self.run(stop)
        self.supply.close()
        self.outcomes.close()


def _build_reuse(recipe: Recipe, runner: GroupRunner, scheduler: Curriculum) -> Reuse:
    return Reuse(
        recipe.replay,
        recipe.success,
        runner=runner,
        scheduler=scheduler,
        seed=recipe.seed,
        batch=recipe.train.batch_groups,
        group_size=recipe.rollout.group_size,
        wait=max(recipe.buffer.max_staleness, recipe.pacing.max_staleness),
    )
