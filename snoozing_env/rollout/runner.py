"""One task in, one finished group out; the only place where a failed rollout becomes data.

    run(index) ─┬─ single turn ─▶ engine.sample ×G at once ─▶ trace ─▶ task.score ─▶ trajectory   (direct)
                └─ anything else ─▶ verifiers episode ×G through its harness ─▶ branches ─▶ trajectory

What fails *inside* a rollout (a grader without a verdict, a dead sandbox, a time-out) leaves an invalid trajectory
with its reason. An engine that cannot serve is not a rollout's failure: `EngineError` ends the run, which resumes
from its checkpoint. A bug raises.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import verifiers.v1 as vf
from pydantic import Field
from verifiers.v1.errors import RolloutError
from verifiers.v1.trace import Trace

from snoozing_env.config import FrozenConfig
from snoozing_env.errors import SnoozingError
from snoozing_env.rollout.catalogue import Catalogue
from snoozing_env.rollout.engines.base import Completion, Engine, Message, SamplingParams
from snoozing_env.rollout.episodes import EpisodeRunner
from snoozing_env.rollout.trace import TraceMaker, close, messages_of, needs_harness
from snoozing_env.types import Group, GroupOutcome, Trajectory


class RolloutConfig(FrozenConfig):
    """How groups are rolled out."""

    group_size: int = Field(default=8, ge=1)
    """G: rollouts per task; at least 2 to train on."""
    max_tokens: int = Field(default=256, ge=1)
    """Token limit of one completion."""
    temperature: float = Field(default=1.0, gt=0)
    """Sampling temperature; the loss uses the same."""
    deadline_s: float = Field(default=120.0, gt=0)
    """Seconds one verdict may take before its rollout is invalid."""
    episode_s: float = Field(default=1800.0, gt=0)
    """Seconds a whole episode (several turns, tools, a harness) may take, generation included, before it is invalid."""
    concurrency: int = Field(default=64, ge=1)
    """Groups in flight at once."""

    @property
    def sampling(self) -> SamplingParams:
        return SamplingParams(max_tokens=self.max_tokens, temperature=self.temperature)


@dataclass(frozen=True, slots=True)
class Opening:
    """A task's first messages, rendered once."""

    typed: list[Any]
    wire: list[Message]


class GroupRunner:
    """Rolls out groups of a catalogue's tasks with one engine."""

    def __init__(self, catalogue: Catalogue, engine: Engine, config: RolloutConfig, *, seed: int) -> None:
        self.catalogue, self.engine, self.config, self.seed = catalogue, engine, config, seed
        self._traces = TraceMaker(engine.model)
        self._openings: dict[int, Opening] = {}
        self._slots = asyncio.Semaphore(config.concurrency)
        self._episodes = EpisodeRunner(
            catalogue.env, engine, deadline_s=config.deadline_s, episode_s=config.episode_s
        )
        low, high = catalogue.config.reward_range
        self._scale = (low, high - low)

    async def run(
        self, index: int, *, group_id: int, sampling: SamplingParams | None = None, n: int | None = None
    ) -> Group:
        """Roll out one task.

        Args:
            index: catalogue index in [0, N).
            group_id: dispatch number; with the run's seed it fixes the sampling noise.
            sampling: other than the configured one (evaluation).
            n: rollouts other than the configured group size.

        Raises:
            EngineError: the engine cannot serve.
        """
        task, n = self.catalogue.tasks[index], n or self.config.group_size
        sampling = sampling or self.config.sampling
        noise = int(np.random.SeedSequence([self.seed, group_id]).generate_state(1)[0])
        started = time.time()
        async with self._slots:
            if needs_harness(self.catalogue.env, task, self.catalogue.config.harness):
                scored = await self._episodes.run(task, n, sampling, seed=noise)
            else:
                scored = await self._run_direct(index, n=n, noise=noise, sampling=sampling)
        return self._group(index, group_id, scored, duration=time.time() - started)

    async def _run_direct(
        self, index: int, *, n: int, noise: int, sampling: SamplingParams
    ) -> list[Trajectory]:
        task, opening = self.catalogue.tasks[index], self._opening(index)
        started = time.time()
        completions = await self.engine.sample(opening.wire, n=n, seed=noise, params=sampling)
        traces = [self._traces.open(task, opening.typed, c, started=started) for c in completions]
        reasons = await asyncio.gather(*(self._score(task, trace) for trace in traces))
        return [self._trajectory(c, t, r) for c, t, r in zip(completions, traces, reasons, strict=True)]

    async def regrade(self, index: int, trajectory: Trajectory) -> float | None:
        """The reward in [0, 1] that the grader gives a stored completion today; None = it could not say, or the task is
        one of several turns, whose episode a completion does not hold."""
        task, opening = self.catalogue.tasks[index], self._opening(index)
        if needs_harness(self.catalogue.env, task, self.catalogue.config.harness):
            return None
        completion = Completion(
            prompt_ids=trajectory.prompt_ids,
            token_ids=trajectory.completion_ids,
            logprobs=trajectory.logprobs,
            text=trajectory.text,
            finish_reason="length" if trajectory.truncated else "stop",
            version=trajectory.version,
            last_version=trajectory.last_version,
        )
        trace = self._traces.open(task, opening.typed, completion, started=time.time())
        if await self._score(task, trace):
            return None
        low, width = self._scale
        return (trace.reward - low) / width

    async def _score(self, task: vf.Task, trace: Trace) -> str:
        """Grade a trace; the reason when there is no verdict, else empty. The failure boundary."""
        reason = ""
        try:
            async with asyncio.timeout(self.config.deadline_s):
                await task.score(trace, None)
        except TimeoutError:
            trace.record_timeout("scoring")
            reason = f"scoring: no verdict within {self.config.deadline_s:g} s"
        except RolloutError as error:
            trace.record_error(error)
            reason = f"{type(error).__name__}: {error}"
        close(trace, ok=not reason)
        return reason or ("scoring: timed out" if trace.is_timeout else "")

    def _opening(self, index: int) -> Opening:
        if index not in self._openings:
            self._openings[index] = Opening(*messages_of(self.catalogue.tasks[index]))
        return self._openings[index]

    def _trajectory(self, completion: Completion, trace: Trace, reason: str) -> Trajectory:
        return Trajectory(
            prompt_ids=completion.prompt_ids,
            completion_ids=completion.token_ids,
            logprobs=completion.logprobs,
            mask=(1,) * len(completion.token_ids),
            reward=0.0 if reason else trace.reward,
            valid=not reason,
            truncated=completion.finish_reason == "length",
            version=completion.version,
            last_version=completion.last_version,
            text=completion.text,
            error=reason,
        )

    def _group(
        self, index: int, group_id: int, trajectories: Sequence[Trajectory], *, duration: float
    ) -> Group:
        low, width = self._scale
        outcome = GroupOutcome(
            task=index,
            rewards_G=np.array([(t.reward - low) / width if t.valid else 0.0 for t in trajectories]),
            valid_G=np.array([t.valid for t in trajectories]),
            truncated_G=np.array([t.truncated for t in trajectories]),
            version=min(t.version for t in trajectories),
            last_version=max(t.last_version for t in trajectories),
            duration_s=duration,
            tokens=sum(sum(t.mask) for t in trajectories),
        )
        data = self.catalogue.tasks[index].data
        return Group(
            id=group_id,
            key=self.catalogue.infos[index].key,
            outcome=outcome,
            trajectories=tuple(trajectories),
            prompt=data.prompt_text,
            gold=str(getattr(data, "answer", "") or ""),
        )

    async def close(self) -> None:
        await self._episodes.close()


async def run_all(runs: Iterable[Coroutine[Any, Any, Group]]) -> list[Group]:
    """Finished groups in the given order; the first error of this package ends the others and is raised itself."""
    try:
        async with asyncio.TaskGroup() as nursery:
            running = [nursery.create_task(run) for run in runs]
    except* SnoozingError as failed:
        raise _first(failed) from failed
    return [task.result() for task in running]


def _first(group: BaseExceptionGroup[SnoozingError]) -> SnoozingError:
    error = group.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error
