"""A `vllm` program that is up in seconds: this project's engine in a process of its own, with the routes vLLM has.

    server.executable = lab_engine.program(folder)      then everything else of a run is what it is with vLLM

It takes weights as vLLM's worker does: staged, and copied into the model between two batches. Killed, it is gone like
any server; started again, it serves the checkpoint it was started with.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from aiohttp import web
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from snoozing_env.rollout.engines.local import LocalEngine
from snoozing_env.rollout.engines.local_http import LocalServer

ROOT = Path(__file__).parents[2]


def program(folder: Path) -> str:
    """An executable for `server.executable`."""
    path = folder / "vllm"
    path.write_text(f'#!/bin/sh\ncd {ROOT} && exec {sys.executable} -m tests.train.lab_engine "$@"\n')
    path.chmod(0o755)
    return str(path)


class LabEngine(LocalServer):
    """A local engine with vLLM's routes for a trainer."""

    def __init__(self, engine: LocalEngine, path: Path) -> None:
        super().__init__(engine)
        self._path = path
        self._owner = ""
        self._paused = False
        self._staged: dict[str, torch.Tensor] | None = None

    def serve(self, host: str, port: int) -> None:
        """Until the process is ended."""
        app = web.Application(client_max_size=2**28)
        app.router.add_get("/health", self._health)
        app.router.add_get("/is_paused", self._is_paused)
        app.router.add_get("/v1/models", self._card)
        app.router.add_post("/v1/chat/completions", self._answer)
        for route in (
            self.pause,
            self.resume,
            self.reset_prefix_cache,
            self.init_weight_transfer_engine,
            self.start_weight_update,
            self.update_weights,
            self.finish_weight_update,
            self.collective_rpc,
        ):
            app.router.add_post(f"/{route.__name__}", route)
        app.on_startup.append(self._open)
        web.run_app(app, host=host, port=port, print=None, access_log=None)

    async def _open(self, _: web.Application) -> None:
        await self._engine.start()

    async def _health(self, _: web.Request) -> web.Response:
        return web.Response()

    async def _is_paused(self, _: web.Request) -> web.Response:
        return web.json_response({"is_paused": self._paused})

    async def _card(self, _: web.Request) -> web.Response:
        return web.json_response({"data": [{"id": self._engine.model, "root": str(self._path)}]})

    async def _answer(self, http: web.Request) -> web.StreamResponse:
        body = await http.json()
        if "top_logprobs" not in body:
            return await self._chat(http)
        # What a client asks at its start: the likeliest first token, at its temperature.
        prompt_ids = self._engine.render(body["messages"])
        with torch.no_grad():
            logits = self._engine.policy(torch.tensor([prompt_ids])).logits[0, -1] / body["temperature"]
        top, token = logits.log_softmax(-1).max(-1)
        entry = {"logprob": top.item(), "top_logprobs": [{"logprob": top.item()}]}
        choice = {
            "index": 0,
            "finish_reason": "length",
            "message": {"content": ""},
            "token_ids": [token.item()],
            "logprobs": {"content": [entry]},
        }
        return web.json_response({"prompt_token_ids": prompt_ids, "choices": [choice]})

    # -- weights ----------------------------------------------------------------------------------------

    async def pause(self, _: web.Request) -> web.Response:
        self._paused = True
        return web.json_response({})

    async def resume(self, _: web.Request) -> web.Response:
        self._paused = False
        return web.json_response({})

    async def reset_prefix_cache(self, _: web.Request) -> web.Response:
        return web.json_response({"success": True})

    async def init_weight_transfer_engine(self, _: web.Request) -> web.Response:
        return web.json_response({})

    async def start_weight_update(self, _: web.Request) -> web.Response:
        self._staged = {}
        return web.json_response({})

    async def update_weights(self, http: web.Request) -> web.Response:
        update = (await http.json())["update_info"]
        assert self._staged is not None, "update_weights came before start_weight_update"
        self._staged |= load_file(update["path"])
        return web.json_response({})

    async def finish_weight_update(self, http: web.Request) -> web.Response:
        version = int((await http.json())["weight_version"])
        staged, self._staged = self._staged or {}, None
        await asyncio.to_thread(self._engine.replace_weights, staged, version)
        return web.json_response({})

    async def collective_rpc(self, http: web.Request) -> web.Response:
        body = await http.json()
        return web.json_response({"results": [self._worker(body["method"], body["args"])]})

    def _worker(self, method: str, args: Sequence[Any]) -> Mapping[str, Any]:
        match method:
            case "snooze_reset":
                self._owner, self._staged = "", None
                return {"backend": "snooze"}
            case "snooze_claim":
                self._owner = args[0]
                return {"owner": self._owner}
            case "snooze_check":
                have = {n: list(p.shape) for n, p in self._engine.policy.named_parameters()}
                same = dict(zip(args[1], args[2], strict=True)) == have
                problem = "" if same else "the served model has other tensors"
                return {"connected": self._owner == args[0], "problem": problem}
        raise web.HTTPNotImplemented(text=method)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("command", choices=["serve"])
    parser.add_argument("model", type=Path)
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--served-model-name", required=True)
    found, _ = parser.parse_known_args()
    torch.set_num_threads(1)
    model = AutoModelForCausalLM.from_pretrained(found.model, dtype=torch.float32).eval()
    tokenizer = AutoTokenizer.from_pretrained(found.model, padding_side="left")
    engine = LocalEngine(model, tokenizer, name=found.served_model_name)
    LabEngine(engine, found.model).serve(found.host, found.port)


if __name__ == "__main__":
    main()
