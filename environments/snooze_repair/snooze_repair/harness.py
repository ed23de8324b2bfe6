"""The agent's loop inside the worker's own process: ask the model, run its tools in the box, until `submit`.

    messages ─▶ interception ─▶ model ─▶ tool calls ─▶ box ─▶ messages ...
                 (records every turn)        └─ submit, no turns left, no time left: the end

Who ends a wait: the model call ends with the rollout's deadline, a command with its own limits (see PoolRuntime).
An episode that ends without `submit` is not tested. A lost box raises, which makes the episode invalid.
"""

from __future__ import annotations

import json
import time
from typing import Any

import aiohttp
import verifiers.v1 as vf
from verifiers.v1.dialects.chat import message_to_wire
from verifiers.v1.errors import MODEL_TRANSPORT_ERROR_EXIT_CODE
from verifiers.v1.types import Messages

from snooze_repair.tools import TOOLS, Tools
from snooze_repair.workspace import Workspace

_TOO_LONG = frozenset({400, 413, 422})
"""Statuses that blame the request. After the first turn that is a conversation over the model's context: the policy's
own doing, so that the episode ends as it stands instead of being thrown away."""
_CALLS_PER_TURN = 8
_SILENT_TURNS = 2
"""Replies in a row without a tool call after which the episode ends."""
NUDGE = "No tool was called. Call shell, edit or submit."


class RepairHarnessConfig(vf.HarnessConfig):
    """Nothing to set: limits belong to the task, sampling to the agent."""


class _ModelCallFailed(Exception):
    def __init__(self, result: vf.ProgramResult, status: int = 0) -> None:
        super().__init__(result.stderr)
        self.result = result
        self.status = status


class RepairHarness(vf.Harness[RepairHarnessConfig]):
    """Plays a RepairTask. It says in `trace.info["repair"]` how the episode ended."""

    APPENDS_SYSTEM_PROMPT = True
    EXECUTES_CODE = True
    NEEDS_CONTAINER = True
    """The loop runs here, the policy's commands in the runtime: RepairEnv lends it a box of the pool."""

    async def launch(
        self,
        ctx: vf.ModelContext,
        trace: vf.Trace,
        runtime: vf.Runtime,
        endpoint: str,
        secret: str,
        mcp_urls: dict[str, str],
        data: vf.TaskData,
    ) -> vf.ProgramResult:
        if mcp_urls:
            raise ValueError(f"this harness brings its own tools, the run serves {sorted(mcp_urls)} as well")
        # The server answers when the model has: its deadline is the rollout's, not aiohttp's 5 minutes.
        timeout = aiohttp.ClientTimeout(total=None)
        headers = {"Authorization": f"Bearer {secret}"}
        # What holds if a limit or a deadline of the run ends the conversation: not submitted.
        trace.info["repair"] = {"ended": "interrupted"}
        async with aiohttp.ClientSession(timeout=timeout, headers=headers) as http:
            episode = _Episode(http, f"{endpoint}/chat/completions", ctx.model, runtime, data)
            try:
                ended = await episode.play(_opening(*self.resolve_prompt(data)))
            except _ModelCallFailed as failed:
                return failed.result
        if trace.stop_condition is not None:
            ended = "interrupted"  # a limit of the run answers like a context that is full
        trace.info["repair"] = {"ended": ended, "turns": episode.turns, "tool_calls": episode.tool_calls}
        return vf.ProgramResult(exit_code=0, stdout="", stderr="")


class _Episode:
    """One conversation."""

    def __init__(
        self, http: aiohttp.ClientSession, url: str, model: str, runtime: vf.Runtime, data: vf.TaskData
    ) -> None:
        limits = data.model_dump()["limits"]
        self._http, self._url, self._model = http, url, model
        self._limit: int = limits["turns"]
        self._wall_s: float = limits["tools_wall_s"]
        workspace = Workspace(runtime, file_bytes=limits["file_bytes"])
        self._tools = Tools(workspace, output_chars=limits["output_chars"])
        self.turns = 0
        self.tool_calls = 0

    async def play(self, messages: list[dict[str, Any]]) -> str:
        """How it ended: "submitted", "turns", "time", "silent" or "context"."""
        silent, spent = 0, 0.0
        while self.turns < self._limit:
            try:
                reply = await self._ask(messages)
            except _ModelCallFailed as failed:
                if self.turns and failed.status in _TOO_LONG:
                    return "context"
                raise
            self.turns += 1
            messages.append(reply)
            calls = reply.get("tool_calls") or []
            silent = 0 if calls else silent + 1
            if silent >= _SILENT_TURNS:
                return "silent"
            began = time.monotonic()
            if await self._answer(messages, calls):
                return "submitted"
            spent += time.monotonic() - began
            if spent > self._wall_s:
                return "time"
        return "turns"

    async def _answer(self, messages: list[dict[str, Any]], calls: list[dict[str, Any]]) -> bool:
        """Run the calls of one reply; True once `submit` was among them."""
        left = self._limit - self.turns
        note = f"\n[{left} turns left]" if left in (1, 2, 3, 5, 10) else ""
        if not calls:
            messages.append({"role": "user", "content": NUDGE + note})
        for number, call in enumerate(calls):
            function = call.get("function") or {}
            text = f"error: at most {_CALLS_PER_TURN} calls in one turn"
            if number < _CALLS_PER_TURN:
                self.tool_calls += 1
                outcome = await self._tools.call(function.get("name", ""), function.get("arguments", ""))
                if outcome.submitted:
                    return True
                text = outcome.text
            text += note if number == len(calls) - 1 else ""
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": text})
        return False

    async def _ask(self, messages: list[dict[str, Any]]) -> dict[str, Any]:
        """The model's next message, as it has to go back with the following request."""
        body = {"model": self._model, "messages": messages, "tools": list(TOOLS)}
        try:
            async with self._http.post(self._url, json=body) as response:
                text = await response.text()
        except aiohttp.ClientError as error:
            detail = f"{type(error).__name__}: {error}"
            result = vf.ProgramResult(exit_code=MODEL_TRANSPORT_ERROR_EXIT_CODE, stdout="", stderr=detail)
            raise _ModelCallFailed(result) from error
        if response.status >= 400:
            result = vf.ProgramResult(exit_code=1, stdout="", stderr=f"HTTP {response.status}: {text}")
            raise _ModelCallFailed(result, response.status)
        message = json.loads(text)["choices"][0]["message"]
        kept = ("role", "content", "tool_calls", "reasoning_content", "reasoning", "reasoning_details")
        sent = {name: message[name] for name in kept if message.get(name) is not None}
        return {"content": None, **sent}


def _opening(system: str | None, prompt: str | Messages | None) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [{"role": "system", "content": system}] if system else []
    if isinstance(prompt, str):
        return [*messages, {"role": "user", "content": prompt}]
    return [*messages, *(message_to_wire(message) for message in prompt or [])]
