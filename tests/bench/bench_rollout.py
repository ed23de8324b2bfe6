"""CPU per single-turn rollout against an instant engine, with verifiers' own path beside it (must-show 8)."""

from __future__ import annotations

import asyncio
import json
import logging
import multiprocessing
import resource
import time
from collections.abc import Awaitable, Callable
from multiprocessing.connection import Connection
from typing import Any

import verifiers.v1 as vf
from aiohttp import web
from verifiers.v1.clients import ModelContext

from snoozing_env.rollout.catalogue import Catalogue, EnvironmentConfig, load_catalogue
from snoozing_env.rollout.engines.vllm import VllmEngine, VllmEngineConfig
from snoozing_env.rollout.runner import GroupRunner, RolloutConfig

CONCURRENCY = 32
REPLY = "\\boxed{7}"
IDS = list(range(10, 20))


async def _chat(request: web.Request) -> web.StreamResponse:
    body = await request.json()
    if body.get("stream"):
        return await _stream(request)
    # The engine probes at two temperatures whether log-probs are processed, so they depend on it here too.
    top = {"token": "token_id:10", "logprob": -0.5 / body["temperature"], "bytes": None}
    content = [{"token": f"token_id:{i}", "logprob": -0.5, "bytes": None, "top_logprobs": [top]} for i in IDS]
    choice = {
        "message": {"role": "assistant", "content": REPLY},
        "finish_reason": "stop",
        "token_ids": IDS,
        "logprobs": {"content": content},
    }
    choices = [{"index": k, **choice} for k in range(body.get("n") or 1)]
    usage = {
        "prompt_tokens": 3,
        "completion_tokens": len(IDS) * len(choices),
        "total_tokens": 3 + len(IDS) * len(choices),
    }
    reply = {
        "id": "r",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": choices,
        "usage": usage,
        "prompt_token_ids": [1, 2, 3],
    }
    return web.json_response(reply)


async def _stream(request: web.Request) -> web.StreamResponse:
    """The same reply as server-sent events, which verifiers' null harness asks for."""
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    for delta, finish in (({"role": "assistant", "content": REPLY}, None), ({}, "stop")):
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        event = {
            "id": "r",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "m",
            "choices": [choice],
        }
        await response.write(b"data: " + json.dumps(event).encode() + b"\n\n")
    await response.write(b"data: [DONE]\n\n")
    return response


async def _models(_: web.Request) -> web.Response:
    return web.json_response(
        {"object": "list", "data": [{"id": "m", "object": "model", "max_model_len": 4096}]}
    )


def _serve(pipe: Connection) -> None:
    """An OpenAI-compatible server that answers at once; in a process of its own, so that its CPU is not counted."""

    async def main() -> None:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", _chat)
        app.router.add_get("/v1/models", _models)
        app.router.add_get("/health", lambda _: _ok())
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        pipe.send(runner.addresses[0][1])
        await asyncio.Event().wait()

    asyncio.run(main())


async def _ok() -> web.Response:
    return web.Response()


def _cpu_s() -> float:
    """CPU seconds of this process and of the children it waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def _measure(work: Callable[[], Awaitable[int]]) -> float:
    """Milliseconds of CPU per rollout."""

    async def timed() -> float:
        before = _cpu_s()
        rollouts = await work()
        return 1000 * (_cpu_s() - before) / rollouts

    return asyncio.run(timed())


def _ours(catalogue: Catalogue, port: int, *, group: int, rollouts: int) -> float:
    async def work() -> int:
        engine = VllmEngine(VllmEngineConfig(base_url=f"http://127.0.0.1:{port}/v1", model="m"))
        runner = GroupRunner(
            catalogue,
            engine,
            RolloutConfig(group_size=group, concurrency=max(CONCURRENCY // group, 1)),
            seed=0,
        )
        await engine.start()
        jobs = [runner.run(i % len(catalogue), group_id=i) for i in range(rollouts // group)]
        groups = await asyncio.gather(*jobs)
        assert all(t.valid for g in groups for t in g.trajectories)
        await engine.close()
        return sum(len(g.trajectories) for g in groups)

    return _measure(work)


def _stock(catalogue: Catalogue, port: int, harness: str, rollouts: int) -> float:
    """verifiers' own episode: interception server, harness, runtime."""

    async def work() -> int:
        agent: dict[str, Any] = {"harness": {"id": harness}, "runtime": {"type": "subprocess"}}
        config = {"taskset": catalogue.env.taskset.config.model_dump(), "agent": agent}
        env = vf.load_environment(vf.resolve_env_config(config))
        client = vf.EvalClientConfig(base_url=f"http://127.0.0.1:{port}/v1", api_key_var="SNOOZE_ENGINE_KEY")
        context = ModelContext(
            model="m", client=client, sampling=vf.SamplingConfig(temperature=1.0, max_tokens=16)
        )
        limit = asyncio.Semaphore(CONCURRENCY)
        async with env.serving():
            slots = [
                slot for i in range(rollouts) for slot in env.slots(catalogue.tasks[i % len(catalogue)], 1)
            ]
            episodes = await asyncio.gather(*(env.run_slot(slot, context, limit) for slot in slots))
        failed = [e for e in episodes if not e.ok]
        assert not failed, failed[0].traces[0].errors[:1] if failed[0].traces else failed[0].errors[:1]
        return len(episodes)

    return _measure(work)


def figures(quick: bool) -> dict[str, Any]:
    """CPU milliseconds per rollout of our direct path and of verifiers' paths, in one run."""
    logging.disable(logging.WARNING)
    taskset = {"source": "arithmetic", "style": "bare", "split": "train", "levels": [2, 3], "size": 200}
    catalogue = load_catalogue(EnvironmentConfig(id="snooze-math", taskset=taskset))
    mine, theirs = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(target=_serve, args=(theirs,), daemon=True)
    server.start()
    port = mine.recv()
    try:
        _ours(catalogue, port, group=8, rollouts=64)  # imports, caches, connections
        n = 512 if quick else 4096
        return {
            "ours_group_of_8_ms": round(_ours(catalogue, port, group=8, rollouts=n), 3),
            "ours_group_of_1_ms": round(_ours(catalogue, port, group=1, rollouts=n), 3),
            "verifiers_inprocess_harness_ms": round(
                _stock(catalogue, port, "snooze-kit", 64 if quick else 512), 2
            ),
            "verifiers_null_harness_ms": round(_stock(catalogue, port, "null", 4 if quick else 64), 1),
            "concurrency": CONCURRENCY,
        }
    finally:
        logging.disable(logging.NOTSET)
        server.kill()
        server.join()


if __name__ == "__main__":
    print(json.dumps(figures(quick=True)))
