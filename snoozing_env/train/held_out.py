"""The held-out evaluation of a run: logged once a step, and what a fallback makes of it (F6, S11)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import numpy as np

from snoozing_env.errors import EngineError
from snoozing_env.fallback import FallbackConfig, FallbackMonitor, apply
from snoozing_env.report.console import TrainProgress
from snoozing_env.report.runlog import EvalRecord, FallbackRecord, RunLog, Sample, read
from snoozing_env.rollout.evaluation import Evaluation, EvaluationConfig, evaluate
from snoozing_env.rollout.runner import GroupRunner
from snoozing_env.schedulers import Curriculum

AGAIN_S = 2.0
"""Seconds between an evaluation that the engine failed and the next try."""


class HeldOut:
    """Evaluates, logs, and sends the scheduler back to uniform draws where the recipe wants that."""

    def __init__(
        self,
        runner: GroupRunner,
        config: EvaluationConfig,
        *,
        fallback: FallbackConfig | None,
        scheduler: Curriculum,
        log: RunLog,
        progress: TrainProgress,
        patience_s: float = 0.0,
    ) -> None:
        """`patience_s`: seconds that an evaluation waits for an engine that failed it, to be done again."""
        self.runner, self.config, self.scheduler = runner, config, scheduler
        self.monitor = None if fallback is None else FallbackMonitor(fallback)
        self._log, self._progress, self._patience_s = log, progress, patience_s
        self._logged = {record.step for record in read(log.path) if isinstance(record, EvalRecord)}

    async def evaluate(self, step: int) -> None:
        """Evaluate once per step, also across a resume; again where the fallback has not seen it, for what it decided
        then was decided after the checkpoint."""
        seen = self.monitor is None or self.monitor.last_step >= step
        if step in self._logged and seen:
            return
        result = await self._evaluate(step)
        if step not in self._logged:
            record = eval_record(step, result)
            self._logged.add(step)
            self._log.append(record)
            self._progress.eval(record)
        if self.monitor is not None and not seen:
            self._judge(self.monitor, step, result)

    async def _evaluate(self, step: int) -> Evaluation:
        """From its start again when the engine failed, until it has failed for `patience_s` on end."""
        loop = asyncio.get_running_loop()
        failing_since: float | None = None
        while True:
            started = loop.time()
            try:
                return await evaluate(self.runner, self.config)
            except EngineError as error:
                now = loop.time()
                if failing_since is None or now - started > self._patience_s:
                    failing_since = now  # the engine was there for most of this try
                if now - failing_since >= self._patience_s:
                    raise
                self._progress.say(f"the evaluation at step {step} starts again: {error}")
            await asyncio.sleep(min(AGAIN_S, self._patience_s))

    def _judge(self, monitor: FallbackMonitor, step: int, result: Evaluation) -> None:
        means = np.array([group.outcome.valid_rewards.mean() for group in result.groups])
        judged = monitor.judge(step, [group.key for group in result.groups], means)
        apply(judged.action, self.scheduler)
        if judged.action is None:
            return
        self._log.append(
            FallbackRecord(
                step=step,
                action=judged.action,
                accuracy=judged.accuracy,
                best=judged.best,
                low=judged.low,
                high=judged.high,
            )
        )
        now = "uniform draws from here on" if judged.action == "fall_back" else "the selector draws again"
        self._progress.say(f"held-out {judged.accuracy:.1%}, best {judged.best:.1%}: {now}")

    @property
    def fallen_back(self) -> int | None:
        """For the run log; None where nothing watches."""
        return None if self.monitor is None else int(self.monitor.fallen_back)

    def state(self) -> dict[str, Any] | None:
        """JSON-able; None where nothing watches."""
        return None if self.monitor is None else self.monitor.state()

    def restore(self, state: Mapping[str, Any] | None) -> None:
        """Continue from `state`; a recipe that no longer watches must not leave the scheduler fallen back for good."""
        if self.monitor is not None and state is not None:
            self.monitor.restore(state)
        if (self.monitor is None or not self.monitor.fallen_back) and self.scheduler.fallen_back:
            self.scheduler.recover()


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
