"""Rollouts that need verifiers' own episode: several turns, tools, several agents, a runtime or a named harness.

    run(task, G) ─▶ env.run_slot ×G ─▶ harness ─▶ interception ─▶ training client ─▶ engine.lease()
                          │                                        (renders ids)     /inference/v1/generate
                          └─ Episode: traces with exact ids, sampled mask, log-probs ─▶ trajectory

Every turn is recorded as the tokens the policy saw and sampled. Where a later prompt does not continue them exactly
(a template that drops reasoning, a reply that tokenizes differently), verifiers starts another branch.

Who ends a wait: verifiers' own time-outs, which the constructor fills in where the environment left them open, and the
group's deadline. Cancelling an episode frees its runtime and closes its model calls, so that the engine stops too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from typing import TypeVar

import verifiers.v1 as vf
from pydantic import BaseModel
from renderers import DefaultRendererConfig
from renderers.client import _resolve_max_prompt_len
from renderers.parsers import TOOL_PARSERS
from verifiers.v1.clients import ModelContext
from verifiers.v1.clients.base import build_async_openai
from verifiers.v1.configs.agent import agent_config_fields
from verifiers.v1.env import RunSlot
from verifiers.v1.episode import Episode
from verifiers.v1.trace import Branch, Trace
from verifiers.v1.utils.compile import validate_pairing
from verifiers.v1.utils.loaders import load_harness

from snoozing_env.errors import ConfigError, EngineError
from snoozing_env.rollout.cutoff import Attempt, Cutoff
from snoozing_env.rollout.engines.base import Endpoint, Engine
from snoozing_env.rollout.plan import RolloutPlan
from snoozing_env.rollout.trace import tools_of
from snoozing_env.types import Trajectory

TimeoutT = TypeVar("TimeoutT", bound=BaseModel)

REQUEST_FAULTS = frozenset({400, 413, 422})
"""HTTP statuses that blame one request, such as a conversation over the context. Any other means that the engine
cannot serve."""


class EpisodeRunner:
    """Runs whole verifiers episodes against an engine's endpoint, in the event loop of the first `run`.

    It owns its `env`, whose serving resources come up with the first `run` and go down with `close`.
    """

    def __init__(
        self, env: vf.Env, engine: Engine, cutoff: Cutoff, *, deadline_s: float, episode_s: float
    ) -> None:
        """Bounds the waits of `env` that it left open: each agent's finalizing and scoring and the episode's own
        finalizing by `deadline_s`, the episode by `episode_s`."""
        self.env, self.engine = env, engine
        self._cutoff = cutoff
        self._stack = AsyncExitStack()
        self._met: set[str] = set()
        """Addresses that an episode was played at."""
        self._opening = asyncio.Lock()
        self._bound_waits(deadline_s, episode_s)

    async def run(self, task: vf.Task, plan: RolloutPlan) -> list[Trajectory]:
        """G episodes of a task as trajectories, invalid where verifiers recorded an error or a time-out, or where the
        group's deadline came first.

        Raises:
            ConfigError: harness, runtime and tools of the environment do not go together, or not with the engine.
            EngineError: the engine has no endpoint, or answered an agent of the policy that it cannot serve.
        """
        started = plan.n + plan.spare
        async with self.engine.lease(plan.seed, started) as endpoint:
            await self._open(endpoint)
            _check_fit(self.env, task, endpoint)
            slots = self.env.slots(task, started)
            attempts = [self._attempt(slot, endpoint, plan, k) for k, slot in enumerate(slots)]
            return await self._cutoff.run(attempts, wanted=plan.n, deadline=plan.deadline)

    def _attempt(self, slot: RunSlot, endpoint: Endpoint, plan: RolloutPlan, k: int) -> Attempt:
        version = self.engine.version

        async def play() -> Trajectory:
            episode = await self.env.run_slot(slot, self._context(endpoint, plan, k))
            for text in _engine_failures(episode, endpoint):
                raise EngineError(f"the engine failed an episode: {text}")
            return self._trajectory(episode, version=version, last_version=self.engine.version)

        def unfinished(reason: str) -> Trajectory:
            return cut_short(slot.traces, reason, version=version, last_version=self.engine.version)

        return Attempt(play, unfinished)

    async def _open(self, endpoint: Endpoint) -> None:
        """What the first episode needs, and the first at an address."""
        async with self._opening:
            if not self._met:
                await self._stack.enter_async_context(self.env.serving())
            if endpoint.base_url not in self._met:
                await _learn_context(endpoint, self.engine.model)
                self._met.add(endpoint.base_url)

    def _context(self, endpoint: Endpoint, plan: RolloutPlan, k: int) -> ModelContext:
        config = vf.SamplingConfig(
            temperature=plan.sampling.temperature,
            max_tokens=plan.sampling.max_tokens,
            **({"seed": plan.noise(k)} if endpoint.reseeds else {}),
        )
        return ModelContext(model=self.engine.model, client=_client(endpoint), sampling=config)

    def _bound_waits(self, deadline_s: float, episode_s: float) -> None:
        config = self.env.config
        seats = {
            name: seat.model_copy(
                update={"timeout": _filled(seat.timeout, finalize=deadline_s, scoring=deadline_s)}
            )
            for name, seat in agent_config_fields(config).items()
        }
        timeout = _filled(config.timeout, finalize=deadline_s, episode=episode_s)
        self.env.config = config.model_copy(update={**seats, "timeout": timeout})

    def _trajectory(self, episode: Episode, *, version: int, last_version: int) -> Trajectory:
        return trajectory_of(
            episode, complete=self.env.complete(episode), version=version, last_version=last_version
        )

    async def close(self) -> None:
        self._met.clear()
        await self._stack.aclose()


def trajectory_of(episode: Episode, *, complete: bool, version: int, last_version: int) -> Trajectory:
    """The branch with the most sampled tokens among those of the trainable agents, with its agent's reward.

    `complete` is the environment's own word on whether the episode counts. An episode without such a branch
    (nothing was generated, or by agents of other models only) is an invalid trajectory of a single masked token,
    so that the group keeps its size.
    """
    trace, branch = _longest(episode.traces)
    reason = _why_invalid(episode, trace, complete)
    if trace is None or branch is None:
        reason = reason or "no agent sampled a token to train on"
        return unsampled(version=version, last_version=last_version, reason=reason)
    return _sample_of(trace, branch, reason, version=version, last_version=last_version)


def cut_short(traces: Sequence[Trace], reason: str, *, version: int, last_version: int) -> Trajectory:
    """The invalid trajectory of an episode that was cancelled: what its agents had sampled until then."""
    trace, branch = _longest(traces)
    if trace is None or branch is None:
        return unsampled(version=version, last_version=last_version, reason=reason)
    return _sample_of(trace, branch, reason, version=version, last_version=last_version)


def unsampled(*, version: int, last_version: int, reason: str) -> Trajectory:
    """An invalid trajectory of a single masked token: a rollout that sampled nothing, or nobody knows what."""
    return Trajectory(
        prompt_ids=(0,),
        completion_ids=(0,),
        logprobs=(0.0,),
        mask=(0,),
        reward=0.0,
        valid=False,
        version=version,
        last_version=last_version,
        error=reason,
    )


def _longest(traces: Sequence[Trace]) -> tuple[Trace, Branch] | tuple[None, None]:
    """The branch with the most sampled tokens among those of the trainable agents."""
    branches = [(trace, b) for trace in traces if trace.agent.trainable for b in _sampled(trace)]
    return max(branches, key=lambda pair: sum(pair[1].sampled_mask), default=(None, None))


def _sample_of(trace: Trace, branch: Branch, reason: str, *, version: int, last_version: int) -> Trajectory:
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


def _client(endpoint: Endpoint) -> vf.TrainClientConfig:
    # The template itself rather than a renderer written for the model's family: it renders token for token what
    # the engine's own chat route renders.
    renderer = DefaultRendererConfig(
        tool_parser=endpoint.tool_parser or None, **endpoint.chat_template_kwargs
    )
    return vf.TrainClientConfig(
        base_url=endpoint.base_url,
        api_key_var=endpoint.api_key_var,
        renderer_model_name=endpoint.tokenizer,
        renderer=renderer,
    )


async def _learn_context(endpoint: Endpoint, model: str) -> None:
    """Have renderers look up, once and alone, how long a prompt may be.

    It guards the look-up with a lock of the module, which belongs to the first event loop that waits for it: in a
    later loop of the same process the first episodes, asking together, would fail.
    """
    async with build_async_openai(_client(endpoint)) as client:
        await _resolve_max_prompt_len(client, model)


def check_pairing(env: vf.Env, task: vf.Task) -> None:
    """Refuse what verifiers would record as an error of every single rollout.

    Raises:
        ConfigError: harness, runtime and tools of the environment do not go together.
    """
    if isinstance(env, vf.SingleAgentEnv):
        [harness] = env.config.agent_harnesses().values()
        tools = tools_of(env, task)
        try:
            validate_pairing(load_harness(harness), type(task), env.config.agent.runtime, tools=tools)
        except ValueError as error:
            raise ConfigError(f"environment.harness is {harness.id!r}: {error}") from error


def _check_fit(env: vf.Env, task: vf.Task, endpoint: Endpoint) -> None:
    check_pairing(env, task)
    if tools_of(env, task) and endpoint.tool_parser not in TOOL_PARSERS:
        raise ConfigError(
            f"{type(task).__name__} offers tools and engine.tool_parser is {endpoint.tool_parser!r}; set it to how the "
            f"policy writes a tool call: {', '.join(TOOL_PARSERS)}"
        )


def _sampled(trace: Trace) -> list[Branch]:
    return [b for b in trace.branches if b.trainable and any(b.sampled_mask)]


def _why_invalid(episode: Episode, trace: Trace | None, complete: bool) -> str:
    """Why an episode says nothing about the policy; empty when it does. An agent's failure comes before the
    environment's, which it often causes; an agent that the environment can do without is passed over."""
    counting = [trace] if trace is not None and complete else episode.traces
    reasons = [reason for played in counting if (reason := _why_failed(played))]
    reasons += [f"{error.type}: {error.message}" for error in episode.errors]
    return "; ".join(reasons) or ("" if complete else "the environment calls the episode incomplete")


def _why_failed(trace: Trace) -> str:
    if trace.is_timeout:
        return f"{trace.stop_condition}: agent {trace.agent.name!r} took longer than its limit"
    if trace.ok:
        return ""
    cause = trace.errors[0] if trace.errors else None
    return f"{cause.type}: {cause.message}" if cause else f"agent {trace.agent.name!r} did not finish"


def _engine_failures(episode: Episode, endpoint: Endpoint) -> Iterator[str]:
    """What ended the policy's own model calls without their fault."""
    for trace in episode.traces:
        client = trace.agent.config.client
        if trace.ok or client is None or client.base_url != endpoint.base_url:
            continue
        for error in trace.errors:
            if error.type == "ProviderError" and error.status_code not in REQUEST_FAULTS:
                yield error.message


def _filled(timeout: TimeoutT, **seconds: float) -> TimeoutT:
    """A verifiers time-out config with those of its open fields set."""
    return timeout.model_copy(update={k: s for k, s in seconds.items() if getattr(timeout, k) is None})
