"""Repair episodes without a model: a chat server that plays scripts, and whole verifiers episodes against it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import verifiers.v1 as vf
from aiohttp import web
from snooze_repair.scripted import Call
from verifiers.v1.clients import ModelContext
from verifiers.v1.episode import Episode

Turns = Sequence[Sequence[Call]]
Script = Callable[[str], Turns]
"""The user's prompt → what a policy does, turn by turn. After the last turn it says that it is done."""


class ScriptedModel:
    """An OpenAI-compatible server. The name of a model is the name of a script; it is asked once per turn."""

    def __init__(self, scripts: Mapping[str, Script]) -> None:
        self.scripts = scripts
        self.requests = 0
        self.asked = asyncio.Event()
        """Set by the first request."""

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[str]:
        app = web.Application(client_max_size=64 << 20)
        app.router.add_post("/v1/chat/completions", self._chat)
        runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=1.0)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        finally:
            await runner.cleanup()

    async def _chat(self, http: web.Request) -> web.Response:
        request = await http.json()
        messages = request["messages"]
        self.requests += 1
        self.asked.set()
        prompt = next(message["content"] for message in messages if message["role"] == "user")
        turn = sum(message["role"] == "assistant" for message in messages)
        turns = self.scripts[request["model"]](prompt)
        calls = turns[turn] if turn < len(turns) else ()
        message: dict[str, Any] = {"role": "assistant", "content": "" if calls else "I am done."}
        if calls:
            message["tool_calls"] = [_wire(call, f"call-{turn}-{n}") for n, call in enumerate(calls)]
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        body = {"id": "scripted", "object": "chat.completion", "created": 0, "model": request["model"]}
        return web.json_response({**body, "choices": [choice], "usage": usage})


def _wire(call: Call, ident: str) -> dict[str, Any]:
    function = {"name": call.name, "arguments": json.dumps(call.arguments)}
    return {"id": ident, "type": "function", "function": function}


def environment(**options: Any) -> vf.Env:
    """snooze-repair with `--env.taskset.*` options; boxes of the local backend unless told otherwise."""
    task = {"sandbox": {"backend": "local", "boxes": 2, "spares": 0}, **options.pop("task", {})}
    return vf.load_environment(
        vf.resolve_env_config({"taskset": {"id": "snooze-repair", "task": task, **options}})
    )


DOCKER = {"sandbox": {"backend": "docker", "boxes": 2, "spares": 1}}


@asynccontextmanager
async def playing(env: vf.Env, model: ScriptedModel) -> AsyncIterator[Callable[..., Any]]:
    """`await play(task, "script")` → Episode, while the environment's boxes are open."""
    async with model.serving() as url, env.serving():

        async def play(task: vf.Task, script: str) -> Episode:
            context = ModelContext(
                model=script, client=vf.EvalClientConfig(base_url=url), sampling=vf.SamplingConfig()
            )
            return await env.run_slot(env.slots(task)[0], context)

        yield play


def play_one(env: vf.Env, script: Script, task: vf.Task | None = None) -> Episode:
    """One episode of the environment's first task, or of another."""

    async def run() -> Episode:
        async with playing(env, ScriptedModel({"script": script})) as play:
            return await play(task or next(iter(env.taskset)), "script")

    return asyncio.run(run())
