"""A finished completion as a real verifiers trace, without a server in between.

verifiers' own path serves every model call through an interception server and, with its default harness, a Python
process per rollout (seconds of CPU). A single-turn task without tools needs neither: prompt, one turn, score. The
trace is the same record that verifiers' tools read.
"""

from __future__ import annotations

import inspect
import time
from functools import lru_cache
from typing import Any, Literal

import verifiers.v1 as vf
from verifiers.v1 import graph
from verifiers.v1.dialects.chat import message_to_wire
from verifiers.v1.envs.single_agent import SingleAgentEnv
from verifiers.v1.state import state_cls
from verifiers.v1.trace import AgentInfo, ModelCall, TimeSpan, Trace, TraceTask
from verifiers.v1.types import AssistantMessage, Response, SystemMessage, TurnTokens, Usage, UserMessage
from verifiers.v1.utils.decorators import discover_decorated

from snoozing_env.rollout.engines.base import Completion, Message


def needs_harness(env: vf.Env, task: vf.Task, harness: str | None) -> str:
    """Why a task cannot take the direct path; empty when it can.

    Direct is: one prompt, one reply, scored from the trace alone. A harness that only the environment's package
    exports, as snooze-math does, is no reason: it says how to play where an episode is needed, not that it is.
    """
    cls = type(task)
    if harness is not None:
        return f"the recipe names harness {harness!r}"
    if type(env) is not SingleAgentEnv:
        return f"{type(env).__name__} runs its own episode"
    if task.NEEDS_CONTAINER or cls.setup is not vf.Task.setup or cls.finalize is not vf.Task.finalize:
        return "the task prepares or inspects a runtime"
    if task.data.image is not None or task.data.skills:
        return "the task brings an image or skills"
    if task.data.prompt is None:
        return "the user opens the conversation"
    if tools_of(env, task):
        return "the task offers tools"
    hooks = [*task.hooks("reward"), *task.hooks("metric")]
    if any(_requires(fn, "runtime") for fn in (*hooks, *(judge.score for judge in task.plugged_judges()))):
        return "a reward reads the runtime"
    if discover_decorated(task, "intercept"):
        return "the task intercepts model calls"
    return "the task has stop conditions" if task.hooks("stop") else ""


def messages_of(task: vf.Task) -> tuple[list[Any], list[Message]]:
    """The opening messages of a task: as verifiers types and as OpenAI wire dicts."""
    data = task.data
    messages: list[Any] = [SystemMessage(content=data.system_prompt)] if data.system_prompt else []
    if isinstance(data.prompt, str):
        messages.append(UserMessage(content=data.prompt))
    else:
        messages.extend(data.prompt or [])
    return messages, [message_to_wire(m) for m in messages]


class TraceMaker:
    """Builds scored traces for one environment and one model name."""

    def __init__(self, model: str) -> None:
        self._agent = AgentInfo(config=vf.AgentConfig(model=model, harness={"id": "null"}))
        self._model = model
        self._trace_task = lru_cache(maxsize=65536)(_trace_task)

    def blank(self, task: vf.Task) -> Trace:
        """A trace in which nothing was said yet."""
        return Trace(task=self._trace_task(task), state=state_cls(type(task))(), agent=self._agent)

    def open(self, task: vf.Task, messages: list[Any], completion: Completion, *, started: float) -> Trace:
        """An unscored trace of one single-turn rollout."""
        trace = self.blank(task)
        tokens = TurnTokens(
            prompt_ids=list(completion.prompt_ids),
            completion_ids=list(completion.token_ids),
            completion_logprobs=list(completion.logprobs),
        )
        self.reply(
            trace,
            messages,
            AssistantMessage(content=completion.text),
            finish_reason="length" if completion.finish_reason == "length" else "stop",
            usage=Usage(
                prompt_tokens=len(completion.prompt_ids), completion_tokens=len(completion.token_ids)
            ),
            started=started,
            tokens=tokens,
        )
        return trace

    def reply(
        self,
        trace: Trace,
        messages: list[Any],
        message: AssistantMessage,
        *,
        finish_reason: Literal["stop", "length"],
        usage: Usage | None,
        started: float,
        tokens: TurnTokens | None = None,
    ) -> None:
        """Record the one turn of a blank trace, from when its request was sent until now; scoring comes next."""
        response = Response(
            id=trace.id,
            created=int(started),
            model=self._model,
            message=message,
            finish_reason=finish_reason,
            usage=usage,
            tokens=tokens,
        )
        node = graph.prepare_turn(trace, messages, None).commit(response)
        now = time.time()
        span = TimeSpan(start=started, end=now)
        trace.calls.append(
            ModelCall(node=node, model=self._model, finish_reason=finish_reason, usage=usage, time=span)
        )
        trace.timing.agent.start, trace.timing.agent.end, trace.timing.scoring.start = started, now, now
        trace.stop("agent_completed")


def close(trace: Trace, *, ok: bool) -> None:
    """Mark a trace finished."""
    trace.is_completed = True
    trace.ok = ok and not trace.errors
    trace.timing.scoring.end = time.time()
    trace.split_agent_time()


def _trace_task(task: vf.Task) -> TraceTask[Any]:
    return TraceTask(type=type(task).__name__, data=task.data, key=task.key, hash=task.hash)


def tools_of(env: vf.Env, task: vf.Task) -> list[vf.Toolset]:
    """Tool servers that a rollout of the task would start or share."""
    return [*type(task).toolsets(task.config), *type(env.taskset).toolsets(env.taskset.config)]


def _requires(fn: Any, name: str) -> bool:
    param = inspect.signature(fn).parameters.get(name)
    return param is not None and param.default is inspect.Parameter.empty
