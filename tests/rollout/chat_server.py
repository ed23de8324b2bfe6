"""A real HTTP server that speaks chat completions and fails on demand.

Every rollout sends its own seed, so a rule may count how often one was asked before.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from aiohttp import web

Rule = Callable[["ChatServer", dict[str, Any], int], Any]
"""(server, request body, how often this seed was asked before) → a reply text, or an `aiohttp` response."""


class Hang(Exception):
    """Never answer."""


class Die(Exception):
    """Close the connection in the middle of the answer."""


class ChatServer:
    """Serves one model under the name "policy"; counts what it was asked."""

    def __init__(self, rule: Rule, *, key: str = "", models: bool = True) -> None:
        self.rule, self.key, self.models = rule, key, models
        self.asked: Counter[int] = Counter()
        self.answered: Counter[int] = Counter()
        self.bodies: list[dict[str, Any]] = []
        self.busy = self.busiest = 0
        self.url = ""

    async def list_models(self, request: web.Request) -> web.Response:
        if self.key and request.headers.get("Authorization") != f"Bearer {self.key}":
            sent = request.headers.get("Authorization", "").removeprefix("Bearer ")
            text = {"error": {"message": f"Incorrect API key provided: {sent}"}}
            return web.json_response(text, status=401)
        if not self.models:
            return web.json_response({"error": {"message": "no such route"}}, status=404)
        return web.json_response({"data": [{"id": "policy"}, {"id": "policy-large"}]})

    async def chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        seed = int(body.get("seed", -1))
        before = self.asked[seed]
        self.asked[seed] += 1
        self.bodies.append(body)
        self.busy += 1
        self.busiest = max(self.busiest, self.busy)
        try:
            answer = self.rule(self, body, before)
            if asyncio.iscoroutine(answer):
                answer = await answer
        except Hang:
            await asyncio.sleep(3600)
        except Die:
            response = web.StreamResponse(headers={"Content-Length": "1000"})
            await response.prepare(request)
            await response.write(b'{"choices": [{"mess')
            request.transport.close()
            return response
        finally:
            self.busy -= 1
        if isinstance(answer, web.StreamResponse):
            return answer
        self.answered[seed] += 1
        return web.json_response(completion(answer))


def completion(text: str, *, finish_reason: str = "stop") -> dict[str, Any]:
    return {
        "id": "c",
        "object": "chat.completion",
        "created": 0,
        "model": "policy",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": text},
                "finish_reason": finish_reason,
            }
        ],
        "usage": {"prompt_tokens": 10, "completion_tokens": 4, "total_tokens": 14},
    }


def error(status: int, message: str = "injected", **headers: str) -> web.Response:
    return web.Response(
        status=status,
        text=json.dumps({"error": {"message": message}}),
        headers={name.replace("_", "-"): value for name, value in headers.items()},
        content_type="application/json",
    )


@asynccontextmanager
async def serve(server: ChatServer) -> AsyncIterator[ChatServer]:
    """The server on a free port of 127.0.0.1, in this event loop."""
    app = web.Application()
    app.router.add_get("/v1/models", server.list_models)
    app.router.add_post("/v1/chat/completions", server.chat)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    try:
        yield server
    finally:
        await runner.cleanup()


def sums(body: dict[str, Any]) -> str:
    """The right answer to a bare sum such as "23+45="."""
    prompt = str(body["messages"][-1]["content"]).rstrip("=")
    return str(eval(prompt, {"__builtins__": {}}))


@contextmanager
def in_thread(server: ChatServer) -> Iterator[ChatServer]:
    """The server in a thread of its own, for commands that bring their own event loop."""
    up, down = threading.Event(), asyncio.Event()
    loops: list[asyncio.AbstractEventLoop] = []

    async def live() -> None:
        loops.append(asyncio.get_running_loop())
        async with serve(server):
            up.set()
            await down.wait()

    thread = threading.Thread(target=asyncio.run, args=(live(),))
    thread.start()
    assert up.wait(30)
    try:
        yield server
    finally:
        loops[0].call_soon_threadsafe(down.set)
        thread.join()
