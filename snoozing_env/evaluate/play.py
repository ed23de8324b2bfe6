"""One attempt at one rollout: an episode as verifiers records it, and whether trying again can help.

    play(task) ─┬─ single turn ─▶ endpoint.chat ─▶ trace ─▶ task.score            (direct)
                └─ anything else ─▶ verifiers episode through its harness ─▶ interception ─▶ endpoint

The failure boundary of an evaluation: what fails inside an attempt is recorded in its episode with the type of the
failure. An endpoint that refuses every request raises `EngineError` and ends the run; a bug raises.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Literal

import verifiers.v1 as vf
from verifiers.v1.clients import ModelContext
from verifiers.v1.episode import EnvInfo, Episode
from verifiers.v1.errors import RolloutError
from verifiers.v1.trace import Error, Trace, TraceTask
from verifiers.v1.types import AssistantMessage, Usage

from snoozing_env.errors import EngineError
from snoozing_env.evaluate.config import SamplingConfig
from snoozing_env.evaluate.endpoint import FATAL, ChatEndpoint, Fault
from snoozing_env.rollout.catalogue import Catalogue
from snoozing_env.rollout.episodes import REQUEST_FAULTS, check_pairing
from snoozing_env.rollout.trace import TraceMaker, close, messages_of, needs_harness

Verdict = Literal["valid", "limited", "endpoint", "rollout", "final"]
"""`limited`: wait and ask again; `endpoint`, `rollout`: one of them failed, try again; `final`: trying again is vain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """What one attempt left."""

    episode: Episode
    verdict: Verdict
    pause: float | None = None
    """Seconds the endpoint asked to wait; None = it did not say."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Rate-limit allowances of the answer."""

    @property
    def reason(self) -> str:
        """Why it is not valid."""
        errors = [*self.episode.errors, *(e for t in self.episode.traces for e in t.errors)]
        if errors:
            return f"{errors[-1].type}: {errors[-1].message}"
        return next((str(t.stop_condition) for t in self.episode.traces if t.is_timeout), "it did not finish")


class Player:
    """Plays the tasks of one environment against one endpoint, in one event loop."""

    def __init__(
        self, catalogue: Catalogue, endpoint: ChatEndpoint, sampling: SamplingConfig, *, deadline_s: float
    ) -> None:
        self.catalogue, self.endpoint, self.sampling = catalogue, endpoint, sampling
        self._deadline_s = deadline_s
        self._traces = TraceMaker(endpoint.model)
        self._stack = AsyncExitStack()
        self._opening = asyncio.Lock()
        self._serving = False

    async def play(self, index: int, *, seed: int) -> Attempt:
        """One attempt at a task.

        Args:
            index: catalogue index in [0, N).
            seed: of the sampling noise, where the endpoint takes one.

        Raises:
            ConfigError: harness, runtime and tools of the environment do not go together.
            EngineError: the endpoint would refuse every request.
        """
        task = self.catalogue.tasks[index]
        if needs_harness(self.catalogue.env, task, self.catalogue.config.harness):
            return await self._play_episode(task, seed)
        return await self._play_direct(task, seed)

    async def _play_direct(self, task: vf.Task, seed: int) -> Attempt:
        trace, started = self._traces.blank(task), time.time()
        verdict: Verdict = "valid"
        pause, headers = None, {}
        try:
            async with asyncio.timeout(self._deadline_s):
                typed, wire = messages_of(task)
                reply = await self.endpoint.chat(wire, self.sampling, seed=seed)
                headers = reply.headers
                message = AssistantMessage(content=reply.text, reasoning_content=reply.reasoning)
                usage = Usage(
                    prompt_tokens=reply.prompt_tokens - reply.cached_tokens,
                    completion_tokens=reply.completion_tokens,
                    cached_input_tokens=reply.cached_tokens or None,
                )
                self._traces.reply(
                    trace, typed, message, finish_reason=reply.finish_reason, usage=usage, started=started
                )
                await task.score(trace, None)
        except TimeoutError:
            stage = "scoring" if trace.nodes else "agent"
            trace.record_timeout(stage)
            verdict = "rollout" if trace.nodes else "endpoint"
        except Fault as fault:
            trace.record_error(fault)
            verdict = {"limited": "limited", "transient": "endpoint", "final": "final"}[fault.kind]
            pause = fault.pause
        except RolloutError as error:
            trace.record_error(error)
            verdict = "rollout"
        close(trace, ok=verdict == "valid")
        episode = Episode(env=self._info(), task=trace.task, ok=verdict == "valid", traces=[trace])
        return Attempt(episode=episode, verdict=verdict, pause=pause, headers=headers)

    async def _play_episode(self, task: vf.Task, seed: int) -> Attempt:
        env = self.catalogue.env
        await self._serve(task)
        [slot] = env.slots(task, 1)
        try:
            async with asyncio.timeout(self._deadline_s):
                episode = await env.run_slot(slot, self._context(seed))
        except TimeoutError:
            late = Error(type="TimeoutError", message=f"not finished within {self._deadline_s:g} s")
            episode = Episode(
                env=self._info(), task=_task_of(task), is_timeout=True, errors=[late], traces=slot.traces
            )
            return Attempt(episode=episode, verdict="rollout")
        late_trace = any(t.is_timeout for t in episode.traces if t.agent.trainable)
        episode.ok = env.complete(episode) and not late_trace
        return Attempt(episode=episode, verdict="valid" if episode.ok else self._blame(episode))

    def _blame(self, episode: Episode) -> Verdict:
        """Whose failure ended an episode.

        Raises:
            EngineError: the endpoint would refuse every request.
        """
        for error in _provider_errors(episode.traces):
            if error.status_code in FATAL:
                raise EngineError(f"{self.endpoint.root} answered HTTP {error.status_code}: {error.message}")
            if error.status_code == 429:
                return "limited"
            return "final" if error.status_code in REQUEST_FAULTS else "endpoint"
        return "rollout"

    async def _serve(self, task: vf.Task) -> None:
        """Bring up what the environment's episodes share, once."""
        async with self._opening:
            if not self._serving:
                check_pairing(self.catalogue.env, task)
                await self._stack.enter_async_context(self.catalogue.env.serving())
                self._serving = True

    def _context(self, seed: int) -> ModelContext:
        config, given = self.endpoint.config, self.sampling
        extra: dict[str, object] = dict(config.extra_body)
        if config.seeded:
            extra["seed"] = seed
        if given.stop:
            extra["stop"] = list(given.stop)
        client = vf.EvalClientConfig(base_url=self.endpoint.root, api_key_var=config.key_env)
        sampling = vf.SamplingConfig(
            temperature=given.temperature, top_p=given.top_p, max_tokens=given.max_tokens, **extra
        )
        return ModelContext(model=self.endpoint.model, client=client, sampling=sampling)

    def _info(self) -> EnvInfo:
        return EnvInfo(id=self.catalogue.env.config.env_id)

    async def close(self) -> None:
        self._serving = False
        await self._stack.aclose()


def _provider_errors(traces: list[Trace]) -> Iterator[Error]:
    for trace in traces:
        yield from (e for e in reversed(trace.errors) if e.status_code is not None)


def _task_of(task: vf.Task) -> TraceTask:
    return TraceTask(type=type(task).__name__, data=task.data, key=task.key, hash=task.hash)
