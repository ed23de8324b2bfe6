"""A chat turn inside the worker's own process: `--env.agent.harness.id snooze-kit`.

verifiers' stock `null` harness starts a Python process per rollout (about 2 CPU seconds). This one posts
the conversation to the rollout's interception endpoint itself, which is all a chat without tools needs;
a later turn is the same post with the longer conversation (`resume`, inherited).
"""

from __future__ import annotations

from typing import Any

import aiohttp
import verifiers.v1 as vf
from verifiers.v1.dialects.chat import message_to_wire
from verifiers.v1.errors import MODEL_TRANSPORT_ERROR_EXIT_CODE
from verifiers.v1.types import Messages


class InprocChatConfig(vf.HarnessConfig):
    """Nothing to set: sampling belongs to the agent, deadlines to the task."""


class InprocChatHarness(vf.Harness[InprocChatConfig]):
    """Sends the task's messages, takes one reply; several turns through `resume`."""

    APPENDS_SYSTEM_PROMPT = True
    SUPPORTS_RESUME = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

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
            raise ValueError(
                f"the in-process chat harness has no tools, the task brings {sorted(mcp_urls)}; "
                "choose a harness that drives tools, e.g. --env.agent.harness.id null"
            )
        body = {"model": ctx.model, "messages": _wire(*self.resolve_prompt(data))}
        # The interception server answers when the model has: its deadline is the rollout's, not aiohttp's 5 minutes.
        timeout = aiohttp.ClientTimeout(total=None)
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout, headers={"Authorization": f"Bearer {secret}"}) as http,
                http.post(f"{endpoint}/chat/completions", json=body) as response,
            ):
                text = await response.text()
        except aiohttp.ClientError as error:
            detail = f"{type(error).__name__}: {error}"
            return vf.ProgramResult(exit_code=MODEL_TRANSPORT_ERROR_EXIT_CODE, stdout="", stderr=detail)
        if response.status >= 400:
            return vf.ProgramResult(exit_code=1, stdout="", stderr=f"HTTP {response.status}: {text}")
        return vf.ProgramResult(exit_code=0, stdout="", stderr="")


def _wire(system: str | None, prompt: str | Messages | None) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [{"role": "system", "content": system}] if system else []
    if isinstance(prompt, str):
        return [*messages, {"role": "user", "content": prompt}]
    return [*messages, *(message_to_wire(message) for message in prompt or [])]
