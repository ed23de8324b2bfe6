"""A real trace of given replies: score a task with no server, no runtime, no harness."""

from __future__ import annotations

import verifiers.v1 as vf
from verifiers.v1 import graph
from verifiers.v1.state import state_cls


def reply_trace(task: vf.Task, *replies: str, follow_up: str = "Go on.") -> vf.Trace:
    """The trace in which the model answered the task's prompt with `replies`, one per turn."""
    trace = vf.Trace(
        task=vf.TraceTask(type=type(task).__name__, data=task.data, key=task.key, hash=task.hash),
        state=state_cls(type(task))(),
        agent=vf.AgentInfo(config=vf.AgentConfig(model="replay", harness={"id": "null"})),
    )
    messages = [vf.SystemMessage(content=task.data.system_prompt)] if task.data.system_prompt else []
    prompt = task.data.prompt
    messages += (
        [vf.UserMessage(content=prompt or "")] if prompt is None or isinstance(prompt, str) else list(prompt)
    )
    for reply in replies:
        # verifiers hashes messages as UTF-8, which has no lone surrogates; a grader must still survive them.
        message = vf.AssistantMessage(content=reply.encode("utf-8", "replace").decode())
        response = vf.Response(id="replay", created=0, model="replay", finish_reason="stop", message=message)
        graph.prepare_turn(trace, messages, None).commit(response)
        message.content = reply
        messages += [message, vf.UserMessage(content=follow_up)]
    return trace
