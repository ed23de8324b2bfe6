"""A loopback HTTP server over a `LocalEngine`, for harnesses and other clients that speak to an endpoint.

    harness ─▶ verifiers' interception ─renders ids─▶ POST /inference/v1/generate ─┐
    any OpenAI client ───────────────────────────────▶ POST /v1/chat/completions ──┼─▶ engine.sample_ids
                                                        GET  /v1/models            ┘   (batched with all others)

It runs in the engine's own event loop and answers as vLLM does, token ids included. An option that the engine
cannot honour is refused with 400, never ignored; an engine that fails answers 503.
"""

from __future__ import annotations

import itertools
import json
import time
import uuid
import zlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from aiohttp import web
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError, model_validator

from snoozing_env.config import explain
from snoozing_env.errors import EngineError
from snoozing_env.rollout.engines.base import Completion, SamplingParams

if TYPE_CHECKING:
    from snoozing_env.rollout.engines.local import LocalEngine

RequestT = TypeVar("RequestT", bound="ChatRequest | GenerateRequest")

IDLE_S = 7 * 86_400.0
"""The event loop stands still while the trainer computes. A shorter keep-alive would run out meanwhile and close
connections in the very moment a client sends on them again."""
BODY_LIMIT = 256 * 2**20


class Sampling(BaseModel):
    """Sampling options of a request. The filters are listed to be refused: their log-probs are not the policy's."""

    model_config = ConfigDict(extra="ignore", populate_by_name=True)

    n: int = Field(default=1, ge=1)
    temperature: float = Field(default=1.0, ge=0)
    max_tokens: int | None = Field(
        default=None, ge=1, validation_alias=AliasChoices("max_completion_tokens", "max_tokens")
    )
    """None = all that the context leaves."""
    seed: int | None = None
    """None = noise of its own for every request."""
    top_p: float | None = Field(default=None, ge=1, le=1)
    min_p: float | None = Field(default=None, ge=0, le=0)
    top_k: int | None = Field(default=None, ge=-1, le=0)
    repetition_penalty: float | None = Field(default=None, ge=1, le=1)
    presence_penalty: float | None = Field(default=None, ge=0, le=0)
    frequency_penalty: float | None = Field(default=None, ge=0, le=0)
    stop: list[str] | None = Field(default=None, max_length=0)

    @model_validator(mode="before")
    @classmethod
    def _null_is_the_default(cls, data: Any) -> Any:
        return {k: v for k, v in data.items() if v is not None} if isinstance(data, dict) else data


class GenerationSampling(Sampling):
    """Sampling options of `/inference/v1/generate`."""

    stop_token_ids: frozenset[int] = frozenset()
    """Must be among the tokens that end a completion anyway."""


class GenerateRequest(BaseModel):
    """vLLM's tokens-in, tokens-out request."""

    model: str | None = None
    token_ids: list[int] = Field(min_length=1)
    sampling_params: GenerationSampling = GenerationSampling()


class StreamOptions(BaseModel):
    include_usage: bool = False


class ChatRequest(Sampling):
    """OpenAI's chat request, with vLLM's `return_token_ids`."""

    model: str
    messages: list[dict[str, Any]] = Field(min_length=1)
    tools: list[Any] | None = Field(default=None, max_length=0)
    """Refused here: a client that renders tools uses the other route."""
    logprobs: bool | None = None
    return_token_ids: bool | None = None
    stream: bool | None = None
    """The whole completion comes as one chunk: batches finish together."""
    stream_options: StreamOptions | None = None


class RefusedError(Exception):
    """A request that cannot be served as it stands; `status` says how."""

    def __init__(self, message: str, *, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


class LocalServer:
    """One engine on a free port of 127.0.0.1."""

    def __init__(self, engine: LocalEngine) -> None:
        self._engine = engine
        self._unseeded = itertools.count()
        self._runner: web.AppRunner | None = None
        self._port = 0

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._port}/v1"

    async def start(self) -> None:
        app = web.Application(client_max_size=BODY_LIMIT, middlewares=[_failures])
        app.router.add_get("/v1/models", self._models)
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_post("/inference/v1/generate", self._generate)
        self._runner = web.AppRunner(
            app,
            keepalive_timeout=IDLE_S,
            shutdown_timeout=1.0,
            access_log=None,
            handle_signals=False,
            handler_cancellation=True,  # a client that hangs up has cancelled its rollout
        )
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self._port = self._runner.addresses[0][1]

    async def close(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _models(self, _: web.Request) -> web.Response:
        card = {"id": self._engine.model, "object": "model", "max_model_len": self._engine.context}
        return web.json_response({"object": "list", "data": [card]})

    async def _generate(self, http: web.Request) -> web.Response:
        request = _parse(GenerateRequest, await http.read())
        unknown = request.sampling_params.stop_token_ids - self._engine.end_ids
        if unknown:
            raise RefusedError(
                f"stop_token_ids {sorted(unknown)} do not end a completion here; the model's own are "
                f"{sorted(self._engine.end_ids)}"
            )
        completions = await self._sample(request.model, request.token_ids, request.sampling_params)
        choices = [
            {
                "index": i,
                "token_ids": c.token_ids,
                "logprobs": _logprobs(c),
                "finish_reason": c.finish_reason,
                "weight_versions": _versions(c),
            }
            for i, c in enumerate(completions)
        ]
        return web.json_response({"request_id": uuid.uuid4().hex, "choices": choices})

    async def _chat(self, http: web.Request) -> web.StreamResponse:
        request = _parse(ChatRequest, await http.read())
        prompt_ids = self._engine.render(request.messages)
        completions = await self._sample(request.model, prompt_ids, request)
        answer = _chat_answer(request, prompt_ids, completions)
        if not request.stream:
            return web.json_response(answer)
        stream = web.StreamResponse(
            headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache"}
        )
        await stream.prepare(http)
        for event in _events(request, answer):
            await stream.write(event)
        await stream.write_eof()
        return stream

    async def _sample(
        self, model: str | None, prompt_ids: Sequence[int], sampling: Sampling
    ) -> list[Completion]:
        engine = self._engine
        if model not in (None, engine.model):
            raise RefusedError(f"this server serves {engine.model!r}, not {model!r}", status=404)
        if not len(prompt_ids) < engine.context:
            raise RefusedError(
                f"the prompt has {len(prompt_ids)} tokens, the context is {engine.context} and a completion needs at "
                "least one; shorten the prompt or the conversation"
            )
        vocabulary = int(engine.policy.config.vocab_size)
        if not 0 <= min(prompt_ids) <= max(prompt_ids) < vocabulary:
            raise RefusedError(
                f"token ids go from 0 to {vocabulary - 1}, got {min(prompt_ids)} to {max(prompt_ids)}"
            )
        params = SamplingParams(
            max_tokens=sampling.max_tokens or engine.context, temperature=sampling.temperature
        )
        seed = self._noise(prompt_ids, sampling.seed)
        return await engine.sample_ids(prompt_ids, n=sampling.n, seed=seed, params=params)

    def _noise(self, prompt_ids: Sequence[int], seed: int | None) -> int:
        """The engine's seed for a request.

        A harness sends one seed through a whole episode, and the engine draws token t from the t-th number of a
        seed's stream: without the prompt in it, all turns of an episode would share their luck.
        """
        if seed is None:
            return int(np.random.SeedSequence([0, next(self._unseeded)]).generate_state(1)[0])
        prompt = zlib.crc32(np.asarray(prompt_ids, dtype=np.int64).tobytes())
        return int(np.random.SeedSequence([1, seed % 2**63, prompt]).generate_state(1)[0])


@web.middleware
async def _failures(http: web.Request, handler: Any) -> web.StreamResponse:
    """Errors in OpenAI's shape, so that clients show their message."""
    try:
        return await handler(http)
    except RefusedError as error:
        message, status = str(error), error.status
    except EngineError as error:
        message, status = str(error), 503
    return web.json_response({"error": {"message": message, "code": status}}, status=status)


def _parse(cls: type[RequestT], raw: bytes) -> RequestT:
    try:
        return cls.model_validate_json(raw)
    except ValidationError as error:
        raise RefusedError("\n".join(explain(cls, error, where="request"))) from error


def _chat_answer(
    request: ChatRequest, prompt_ids: Sequence[int], completions: Sequence[Completion]
) -> dict[str, Any]:
    made = sum(len(c.token_ids) for c in completions)
    choices: list[dict[str, Any]] = []
    for i, c in enumerate(completions):
        choice: dict[str, Any] = {
            "index": i,
            "message": {"role": "assistant", "content": c.text},
            "logprobs": _logprobs(c) if request.logprobs else None,
            "finish_reason": c.finish_reason,
        }
        if request.return_token_ids:
            choice |= {"token_ids": c.token_ids, "weight_versions": _versions(c)}
        choices.append(choice)
    answer: dict[str, Any] = {
        "id": f"chatcmpl-{uuid.uuid4().hex}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": request.model,
        "choices": choices,
        "usage": {
            "prompt_tokens": len(prompt_ids),
            "completion_tokens": made,
            "total_tokens": len(prompt_ids) + made,
        },
    }
    return answer | ({"prompt_token_ids": tuple(prompt_ids)} if request.return_token_ids else {})


def _events(request: ChatRequest, answer: dict[str, Any]) -> Iterator[bytes]:
    """Server-sent events of a finished answer: per choice its text, then its end."""
    head = {k: answer[k] for k in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    for choice in answer["choices"]:
        delta = {k: v for k, v in choice.items() if k not in ("message", "finish_reason")}
        yield _event(head | {"choices": [delta | {"delta": choice["message"], "finish_reason": None}]})
        end = {"index": choice["index"], "delta": {}, "finish_reason": choice["finish_reason"]}
        yield _event(head | {"choices": [end]})
    if request.stream_options is not None and request.stream_options.include_usage:
        yield _event(head | {"choices": [], "usage": answer["usage"]})
    yield b"data: [DONE]\n\n"


def _event(body: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(body)}\n\n".encode()


def _logprobs(completion: Completion) -> dict[str, Any]:
    entries = zip(completion.token_ids, completion.logprobs, strict=True)
    return {"content": [{"token": f"token_id:{t}", "logprob": lp, "top_logprobs": []} for t, lp in entries]}


def _versions(completion: Completion) -> list[dict[str, Any]]:
    """vLLM's spans of weight versions over the output tokens; of those in between nothing is known here."""
    first, last, end = completion.version, completion.last_version, len(completion.token_ids)
    if first == last:
        return [{"version": str(first), "start": 0, "end": end}]
    return [{"version": str(first), "start": 0, "end": 1}, {"version": str(last), "start": 1, "end": end}]
