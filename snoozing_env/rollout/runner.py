"""One task in, one finished group out; the only place where a failed rollout becomes data.

    run(index) ─┬─ single turn ─▶ engine.sample ×G at once ─▶ trace ─▶ task.score ─▶ trajectory   (direct)
                └─ anything else ─▶ verifiers episode ×G through its harness ─▶ branches ─▶ trajectory

What fails *inside* a rollout (a grader without a verdict, a dead sandbox, a time-out) leaves an invalid trajectory
with its reason, and so does a rollout that is cancelled because its group's deadline came. An engine that cannot
serve is not a rollout's failure: `EngineError` ends the run, which resumes from its checkpoint. A bug raises.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import verifiers.v1 as vf
from pydantic import Field
from verifiers.v1.errors import RolloutError
from verifiers.v1.trace import Trace

from snoozing_env.config import FrozenConfig
from snoozing_env.errors import SnoozingError
from snoozing_env.rollout.catalogue import Catalogue
from snoozing_env.rollout.cutoff import Attempt, Cutoff
from snoozing_env.rollout.engines.base import Completion, Engine, Message, SamplingParams
from snoozing_env.rollout.episodes import EpisodeRunner, unsampled
from snoozing_env.rollout.plan import Deadline, RolloutPlan
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
    """Seconds one rollout may take before it is cancelled and invalid: generation alone where it is a single turn (of
    all G at once without `split`), else the whole episode of several turns, tools and a harness."""
    split: bool = False
    """Send every rollout of a single-turn task as a request of its own, which its deadline, that of its group and
    `spare` can cancel alone; otherwise one request brings all G, and a straggler holds up the others. Costs a request
    per rollout, whose prompt the engine's prefix cache mostly saves. Episodes are apart anyway."""
    spare: int = Field(default=0, ge=0)
    """r: redundant rollouts. G + r are started and the first G valid ones are used; the rest is cancelled. Biased:
    what takes long is thrown away, and with it long answers and hard tries, so that scheduler and gradient see too
    many short ones (`rollouts/spare_length_ratio` of `GroupRunner.metrics` says how much longer than the kept ones
    the others were). Which G are used depends on timing, so such a run does not repeat token for token. Needs `split`
    for single-turn tasks, whose one request ends as a whole. Held-out evaluation starts no spares."""
    spare_wait: float = Field(default=0.0, ge=0)
    """Remedy for that bias: once G are done, go on for this share of the time it took, and then use those that were
    *started* first among all that are done. 0 = cancel at once."""
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
        self._cutoff = Cutoff(config.spare_wait)
        self._episodes = EpisodeRunner(
            catalogue.env,
            engine,
            self._cutoff,
            deadline_s=config.deadline_s,
            episode_s=config.episode_s,
        )
        low, high = catalogue.config.reward_range
        self._scale = (low, high - low)

    async def run(
        self,
        index: int,
        *,
        group_id: int,
        within_s: float | None = None,
        sampling: SamplingParams | None = None,
        n: int | None = None,
    ) -> Group:
        """Roll out one task.

        Args:
            index: catalogue index in [0, N).
            group_id: dispatch number; with the run's seed it fixes the sampling noise.
            within_s: seconds until the group must be there, the wait for a free place included; rollouts that are
                unfinished then are cancelled and invalid. None = as long as it takes.
            sampling: other than the configured one (evaluation).
            n: rollouts other than the configured group size, without spares.

        Raises:
            EngineError: the engine cannot serve.
        """
        spare, n = (self.config.spare if n is None else 0), n or self.config.group_size
        plan = RolloutPlan(
            n=n,
            spare=spare,
            seed=int(np.random.SeedSequence([self.seed, group_id]).generate_state(1)[0]),
            sampling=sampling or self.config.sampling,
            deadline=None if within_s is None else Deadline.within(within_s),
        )
        started = time.time()
        try:
            async with asyncio.timeout_at(None if plan.deadline is None else plan.deadline.at):
                await self._slots.acquire()
        except TimeoutError:  # no place became free in time
            made = [_unsampled(self.engine.version, plan.late)] * n
        else:
            try:
                made = await self._roll_out(index, plan)
            finally:
                self._slots.release()
        return self._group(index, group_id, made, duration=time.time() - started)

    async def _roll_out(self, index: int, plan: RolloutPlan) -> list[Trajectory]:
        task = self.catalogue.tasks[index]
        if needs_harness(self.catalogue.env, task, self.catalogue.config.harness):
            return await self._episodes.run(task, plan)
        if self.config.split:
            attempts = [self._own_request(index, plan, k) for k in range(plan.n + plan.spare)]
        else:
            attempts = await self._one_request(index, plan)
        return await self._cutoff.run(attempts, wanted=plan.n, deadline=plan.deadline)

    async def _one_request(self, index: int, plan: RolloutPlan) -> list[Attempt]:
        """All G completions at once; their verdicts are what may still be late."""
        started, version = time.time(), self.engine.version
        try:
            completions = await self._sample(index, plan, n=plan.n, seed=plan.seed)
        except _LateError as late:
            return [_settled(_unsampled(version, str(late)))] * plan.n
        return [self._grading(index, completion, started=started) for completion in completions]

    def _own_request(self, index: int, plan: RolloutPlan, k: int) -> Attempt:
        """Rollout k as a request of its own, with noise of its own."""
        version = self.engine.version

        async def play() -> Trajectory:
            started = time.time()
            try:
                [completion] = await self._sample(index, plan, n=1, seed=plan.noise(k))
            except _LateError as late:
                return _unsampled(version, str(late))
            return await self._grading(index, completion, started=started).play()

        return Attempt(play, partial(_unsampled, version))

    async def _sample(self, index: int, plan: RolloutPlan, *, n: int, seed: int) -> Sequence[Completion]:
        """Raises `_LateError` when the rollout's deadline comes first, or that of its group."""
        limit_s, deadline = self.config.episode_s, plan.deadline
        waiting = asyncio.timeout(limit_s)
        reason = f"TimeoutError: the completion took longer than rollout.episode_s = {limit_s:g} s"
        if deadline is not None and deadline.at < asyncio.get_running_loop().time() + limit_s:
            waiting, reason = asyncio.timeout_at(deadline.at), deadline.reason
        try:
            async with waiting:
                return await self.engine.sample(
                    self._opening(index).wire, n=n, seed=seed, params=plan.sampling
                )
        except TimeoutError as error:
            if not waiting.expired():
                raise
            raise _LateError(reason) from error

    def _grading(self, index: int, completion: Completion, *, started: float) -> Attempt:
        """What is left of a rollout whose completion is there."""
        task, opening = self.catalogue.tasks[index], self._opening(index)
        trace = self._traces.open(task, opening.typed, completion, started=started)

        async def play() -> Trajectory:
            reason = await self._score(task, trace)
            return _trajectory(completion, trace.reward, reason)

        return Attempt(play, partial(_trajectory, completion, 0.0))

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

    def metrics(self) -> dict[str, float]:
        """Rollouts that were cancelled since the start, and why."""
        return self._cutoff.metrics()

    async def close(self) -> None:
        await self._cutoff.close()
        await self._episodes.close()


class _LateError(Exception):
    """A completion that a deadline cut off; its message becomes the rollout's reason."""


def _trajectory(completion: Completion, reward: float, reason: str) -> Trajectory:
    return Trajectory(
        prompt_ids=completion.prompt_ids,
        completion_ids=completion.token_ids,
        logprobs=completion.logprobs,
        mask=(1,) * len(completion.token_ids),
        reward=0.0 if reason else reward,
        valid=not reason,
        truncated=completion.finish_reason == "length",
        version=completion.version,
        last_version=completion.last_version,
        text=completion.text,
        error=reason,
    )


def _unsampled(version: int, reason: str) -> Trajectory:
    return unsampled(version=version, last_version=version, reason=reason)


def _settled(trajectory: Trajectory) -> Attempt:
    """A rollout that is over before it began."""

    async def play() -> Trajectory:
        return trajectory

    return Attempt(play, lambda reason: trajectory)


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
