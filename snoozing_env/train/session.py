"""One training run without its optimizer: engine, scheduler, loop, evaluation and log, as a `Feed` for the trainer.

    next_batch(step, model)
      ├─ weights of version `step` to the engine (a vLLM server; the local engine shares the trainer's)
      ├─ every E steps: held-out evaluation ─▶ run log
      └─ loop.collect(B) ─▶ groups; what they cost is kept until the trainer reports the step's loss

One asyncio loop serves the whole run and only turns while `next_batch` waits for it.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch

from snoozing_env.buffers.fresh import FreshBuffer
from snoozing_env.buffers.store import dump_groups, parse_groups
from snoozing_env.errors import StateError
from snoozing_env.gates import Ladder
from snoozing_env.report.console import TrainProgress
from snoozing_env.report.runlog import EvalRecord, RunLog, Sample, StepRecord, read
from snoozing_env.rollout.catalogue import Catalogue
from snoozing_env.rollout.engines.base import Engine
from snoozing_env.rollout.evaluation import Evaluation, evaluate
from snoozing_env.rollout.loop import StepBatch, SyncLoop
from snoozing_env.rollout.runner import GroupRunner
from snoozing_env.schedulers import Curriculum
from snoozing_env.schedulers.state import load_snapshot, save_snapshot, write_atomically
from snoozing_env.train.checkpoints import MARK
from snoozing_env.train.recipe import Recipe
from snoozing_env.train.weights import WeightTransfer
from snoozing_env.types import Group

T = TypeVar("T")
GROUPS_FILE = "groups.parquet"


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
    ) -> None:
        self.recipe, self.engine, self.transfer, self.log, self.progress = (
            recipe,
            engine,
            transfer,
            log,
            progress,
        )
        self._runner = asyncio.Runner()
        self._merge = merge_state
        self._train = train
        self.scheduler = Curriculum(recipe.scheduler, train.infos, recipe.seed)
        self.buffer = FreshBuffer(recipe.buffer)
        rollouts = GroupRunner(train, engine, recipe.rollout, seed=recipe.seed)
        self.loop = SyncLoop(
            rollouts, self.scheduler, self.buffer, gate=recipe.gate, ladder=Ladder(recipe.ladder)
        )
        self._held_out = GroupRunner(held_out, engine, recipe.rollout, seed=recipe.seed + 1)
        self._pending: _Pending | None = None
        self._published: int | None = None
        """Version this session has pushed; a server from an earlier run may serve anything."""
        self._evaluated = {record.step for record in read(log.path) if isinstance(record, EvalRecord)}
        self._counts = self._snooze_counts()
        self._started = time.monotonic()
        self._seconds_before = 0.0

    def run(self, awaitable: Callable[[], Awaitable[T]]) -> T:
        """Drive the run's event loop until an awaitable is done."""

        async def main() -> T:
            return await awaitable()

        return self._runner.run(main())

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
        seconds_sync = self._publish(step, model)
        if step % self.recipe.evaluation.every == 0:
            self.evaluate(step)
        batch = self.run(lambda: self.loop.collect(self.recipe.train.batch_groups, version=step))
        self._pending = _Pending(batch, seconds_sync, time.perf_counter())
        return batch.groups

    def finish(self, step: int, model: torch.nn.Module) -> None:
        """Measure the final weights."""
        self._publish(step, model)
        self.evaluate(step)

    def _publish(self, version: int, model: torch.nn.Module) -> float:
        """Serve the weights of `version`; returns the seconds it took."""
        started = time.perf_counter()
        if self.transfer is not None and self._published != version:
            self.transfer.push(model.named_parameters(), version)
            self._published = version
        self.engine.set_version(version)
        return time.perf_counter() - started

    def evaluate(self, step: int) -> None:
        """Evaluate once per step, also across a resume."""
        if step in self._evaluated:
            return
        result = self.run(lambda: evaluate(self._held_out, self.recipe.evaluation))
        record = eval_record(step, result)
        self._evaluated.add(step)
        self.log.append(record)
        self.progress.eval(record)

    def report_step(self, step: int, losses: dict[str, Any]) -> None:
        """Log a finished optimizer step; `losses` is what TRL reported for it."""
        if self._pending is None:
            return
        pending, self._pending = self._pending, None
        record = self._step_record(step, pending, losses)
        self.log.append(record)
        self.progress.update(record)

    def _step_record(self, step: int, pending: _Pending, losses: dict[str, Any]) -> StepRecord:
        batch, metrics = pending.batch, self.scheduler.metrics()
        counts = self._snooze_counts()
        delta = {name: int(counts[name] - self._counts[name]) for name in counts}
        self._counts = counts
        return StepRecord(
            step=step,
            version=step,
            seconds=self.seconds,
            generated_groups=batch.generated_groups,
            trained_groups=len(batch.groups),
            generated_tokens=batch.generated_tokens,
            trained_tokens=batch.trained_tokens,
            survival=batch.survival if batch.generated_groups else None,
            asleep_share=metrics["asleep_share"],
            snoozed=delta["snoozed"],
            woken=delta["woken"],
            forgotten=delta["forgotten"],
            passes=metrics["passes"],
            reward_mean=batch.reward_mean,
            pass_rate_histogram=tuple(int(n) for n in self.scheduler.difficulty.histogram()),
            carried_groups=batch.carried_groups,
            invalid_rollouts=batch.invalid_rollouts,
            lag_mean=batch.lag_mean,
            loss=losses.get("loss"),
            grad_norm=losses.get("grad_norm"),
            clip_fraction=losses.get("clip_ratio/region_mean"),
            entropy=losses.get("entropy"),
            ratio_mean=losses.get("ratio/mean"),
            logprob_gap=losses.get("ratio/logprob_gap"),
            rungs=batch.rungs,
            seconds_rollout=batch.seconds,
            seconds_train=time.perf_counter() - pending.started_training,
            seconds_sync=pending.seconds_sync,
            tasks=tuple(g.key for g in batch.groups),
        )

    def _snooze_counts(self) -> dict[str, float]:
        metrics = self.scheduler.metrics()
        return {name: metrics[name] for name in ("snoozed", "woken", "forgotten")}

    @property
    def seconds(self) -> float:
        """Wall seconds of the run, earlier starts included."""
        return self._seconds_before + time.monotonic() - self._started

    # -- state ------------------------------------------------------------------------------------------

    def save(self, directory: Path) -> None:
        """Scheduler, carried groups and counters; `loop.json` is written last and marks the checkpoint whole.

        Raises:
            StateError: the disk is full or the directory cannot be written.
        """
        save_snapshot(self.scheduler.snapshot(), directory)
        state = {
            "schema": 1,
            "seed": self.recipe.seed,
            "survival": self.loop.survival,
            "next_group_id": self.loop.next_group_id,
            "dead_streak": self.loop.ladder.dead_streak,
            "expired": self.buffer.expired,
            "seconds": self.seconds,
        }
        try:
            write_atomically(directory / GROUPS_FILE, dump_groups(self.buffer.groups))
            write_atomically(directory / MARK, json.dumps(state).encode())
        except OSError as error:
            raise StateError(
                f"cannot save the run's state to {directory}: {error.strerror}; earlier checkpoints are intact"
            ) from error

    def load(self, directory: Path) -> None:
        """Continue from `save`.

        Raises:
            StateError: the checkpoint is of another task set or scheduler, or not whole.
        """
        report = self.scheduler.restore(load_snapshot(directory), merge=self._merge)
        self.progress.say(f"resumed: {report}")
        state = json.loads((directory / MARK).read_bytes())
        index_of = {info.key: i for i, info in enumerate(self._train.infos)}
        self.buffer.put(parse_groups((directory / GROUPS_FILE).read_bytes(), index_of))
        self.loop.survival, self.loop.next_group_id = state["survival"], state["next_group_id"]
        self.loop.ladder.dead_streak, self.buffer.expired = state["dead_streak"], state["expired"]
        self._seconds_before = state["seconds"]
        self._counts = self._snooze_counts()

    def close(self) -> None:
        """Close engine and event loop."""

        async def stop() -> None:
            await self.loop.runner.close()
            await self._held_out.close()
            await self.engine.close()

        self.run(stop)
        self._runner.close()


def eval_record(step: int, result: Evaluation) -> EvalRecord:
    return EvalRecord(
        step=step,
        accuracy=result.accuracy,
        low=result.low,
        high=result.high,
        n_tasks=result.n_tasks,
        n_samples=result.n_samples,
        by_domain=result.by_domain,
        by_side=result.by_side,
        samples=tuple(Sample(**sample) for sample in result.samples()),
    )
