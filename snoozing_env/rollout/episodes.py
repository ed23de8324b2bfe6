"""Rollouts that need verifiers' own episode: several turns, tools, a user, a runtime or a named harness.

The harness talks HTTP to the engine through verifiers' training client, which renders prompts to token ids itself
and asks the engine's `/inference/v1/generate`, so every turn carries exact ids and log-probs.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import verifiers.v1 as vf
from renderers import DefaultRendererConfig
from verifiers.v1.clients import ModelContext
from verifiers.v1.episode import Episode
from verifiers.v1.trace import Branch, Trace

from snoozing_env.errors import EngineError
from snoozing_env.rollout.engines.base import Engine, SamplingParams
from snoozing_env.types import Trajectory


class EpisodeRunner:
    """Runs whole verifiers episodes against an engine that has an address."""

    def __init__(self, env: vf.Env, engine: Engine, sampling: SamplingParams) -> None:
        self.env, self.engine, self.sampling = env, engine, sampling
        self._stack = AsyncExitStack()
        self._serving = False
        self._opening = asyncio.Lock()

    async def run(self, task: vf.Task, n: int, sampling: SamplingParams) -> list[Trajectory]:
        """n episodes of a task as trajectories, invalid where verifiers recorded an error or a time-out.

        Raises:
            EngineError: the engine has no HTTP address, which a harness needs.
        """
        await self._open()
        context = self._context(sampling)
        version = self.engine.version
        episodes = await asyncio.gather(
            *(self.env.run_slot(slot, context) for slot in self.env.slots(task, n))
        )
        return [trajectory_of(e, version=version, last_version=self.engine.version) for e in episodes]

    async def _open(self) -> None:
        async with self._opening:
            if not self._serving:
                await self._stack.enter_async_context(self.env.serving())
                self._serving = True

    def _context(self, sampling: SamplingParams) -> ModelContext:
        if self.engine.base_url is None:
            raise EngineError(
                'this environment runs a harness that needs an HTTP endpoint, and the engine has none; use engine.kind = "vllm", '
                "or a single-turn environment with the local engine"
            )
        client = vf.TrainClientConfig(
            base_url=self.engine.base_url,
            api_key_var="SNOOZE_ENGINE_KEY",
            renderer_model_name=self.engine.tokenizer,
            renderer=DefaultRendererConfig(),
        )
        config = vf.SamplingConfig(temperature=sampling.temperature, max_tokens=sampling.max_tokens)
        return ModelContext(model=self.engine.model, client=client, sampling=config)

    async def close(self) -> None:
        await self._stack.aclose()


def trajectory_of(episode: Episode, *, version: int, last_version: int) -> Trajectory:
    """The trainable branch of an episode with the most sampled tokens.

    An episode without one (nothing was generated, or the engine reported no token ids) is an invalid trajectory
    of a single masked token, so that the group keeps its size.
    """
    trace = next((t for t in episode.traces if t.agent.trainable), None)
    reason = _why_invalid(episode, trace)
    branch = _longest(trace) if trace is not None else None
    if trace is None or branch is None:
        return Trajectory(
            prompt_ids=(0,), completion_ids=(0,), logprobs=(0.0,), mask=(0,), reward=0.0, valid=False,
            version=version, last_version=last_version, error=reason or "no sampled tokens",
        )  # fmt: skip
    ids, mask, logprobs = branch.token_ids, branch.sampled_mask, branch.logprobs
    first = mask.index(True)
    return Trajectory(
        prompt_ids=tuple(ids[:first]),
        completion_ids=tuple(ids[first:]),
        logprobs=tuple(logprobs[first:]),
        mask=tuple(int(m) for m in mask[first:]),
        reward=0.0 if reason else trace.reward,
        valid=not reason,
        truncated=trace.is_truncated,
        version=version,
        last_version=last_version,
        text=trace.last_reply,
        error=reason,
    )


def _why_invalid(episode: Episode, trace: Trace | None) -> str:
    if trace is None:
        return (
            "; ".join(f"{e.type}: {e.message}" for e in episode.errors)
            or "the episode ran no trainable agent"
        )
    if trace.errors:
        return f"{trace.errors[-1].type}: {trace.errors[-1].message}"
    if trace.is_timeout:
        return "the rollout or its scoring timed out"
    return "" if trace.ok else "the rollout did not finish"


def _longest(trace: Trace) -> Branch | None:
    sampled = [b for b in trace.branches if b.trainable and any(b.sampled_mask)]
    return max(sampled, key=lambda b: sum(b.sampled_mask), default=None)
