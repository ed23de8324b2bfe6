"""Completions from a `vllm serve` process over HTTP.

    sample(messages, n) ──one POST /v1/chat/completions──▶ n choices: token ids, processed log-probs, text

The ids and log-probs are the server's own, never re-tokenized text. One group is one request, so the cost
per rollout here is one n-th of a request and the parsing of its choices.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import aiohttp
from pydantic import ConfigDict, Field
from pydantic_config import BaseConfig

from snoozing_env.errors import EngineError, did_you_mean
from snoozing_env.rollout.engines.base import Completion, Endpoint, Message, OneAddress, SamplingParams
from snoozing_env.rollout.engines.vllm_wire import error_text, read_completion, read_json, retry_after

RETRIED_STATUS = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
JSON = {"Content-Type": "application/json"}


class VllmEngineConfig(BaseConfig):
    """A vLLM server that already runs, and how patient to be with it."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    kind: Literal["vllm"] = "vllm"
    base_url: str = "http://127.0.0.1:8000/v1"
    """Root of the OpenAI-compatible API; "/v1" is added when absent."""
    more_urls: tuple[str, ...] = ()
    """Further servers of the same policy; each request goes to the least loaded one."""
    model: str = "policy"
    """Name the server serves the policy under (--served-model-name)."""
    tokenizer: str = ""
    """Tokenizer for harnesses, which render prompts here; empty = the checkpoint that the server says it loaded."""
    tool_parser: str = ""
    """How the policy writes a tool call, e.g. qwen3; needed by environments that offer tools."""
    timeout_s: float = Field(600.0, gt=0)
    """Seconds for one request, generation included."""
    wait_s: float = Field(30.0, ge=0)
    """Seconds `start` waits for a server that is still coming up."""
    retries: int = Field(3, ge=0)
    """Further attempts after a connection error, 429 or 5xx; a time-out is not retried."""
    backoff_s: float = Field(0.25, ge=0)
    """First pause between attempts; doubles each time, with jitter, unless the server says Retry-After."""
    max_connections: int = Field(256, ge=1)
    """Requests open at once."""
    api_key_var: str = ""
    """Name of the environment variable that holds the API key; empty = no key."""
    chat_template_kwargs: dict[str, Any] = Field(default_factory=dict)
    """Extra variables for the model's chat template, such as enable_thinking."""


class VllmEngine(OneAddress):
    """`Engine` over one vLLM server. Call `start` in the event loop that will sample.

    Versions: vLLM ≥ 0.32 reports the weight version of each choice. Older servers do not, so a completion
    is labelled with our own version when the request was sent (first token) and when it came back (last):
    one that spans an update carries both, and the first label is never newer than the first token. An update counts
    from the moment it was sent: the server has the weights before the trainer knows that it does.
    """

    def __init__(self, config: VllmEngineConfig, *, progress: Callable[[str], None] | None = None) -> None:
        self.config = config
        self._root = _root(config.base_url)
        self._say = progress or (lambda text: None)
        self._session: aiohttp.ClientSession | None = None
        self._retired: list[aiohttp.ClientSession] = []
        self._version = self._expected = 0
        self._checkpoint = ""
        self._jitter = random.Random(0)

    @property
    def model(self) -> str:
        return self.config.model

    @property
    def base_url(self) -> str:
        return f"{self._root}/v1"

    @property
    def version(self) -> int:
        return self._version

    def set_version(self, version: int) -> None:
        self._version = version

    def expect(self, version: int) -> None:
        """The server may serve these weights before `set_version` says so."""
        self._expected = version

    async def start(self) -> None:
        """Wait for the server, then make sure that it serves this model, token ids and processed log-probs."""
        await self.close()
        self._session = self._open()
        try:
            await self._wait_healthy(self._session)
            await self._check_model(self._session)
            await self._check_logprobs()
        except BaseException:
            await self.close()
            raise

    async def endpoint(self) -> Endpoint:
        """The server's own address. Its noise for one seed is the same in every turn, so episodes send no seed."""
        tokenizer = self.config.tokenizer or self._checkpoint
        if not tokenizer:
            raise EngineError(
                f"{self._root} names no checkpoint, so a harness cannot render prompts; set engine.tokenizer to the "
                "policy's directory or hub name"
            )
        return Endpoint(
            base_url=self.base_url,
            tokenizer=tokenizer,
            api_key_var=self.config.api_key_var,
            tool_parser=self.config.tool_parser,
            chat_template_kwargs=self.config.chat_template_kwargs,
        )

    async def close(self) -> None:
        sessions, self._session, self._retired = [self._session, *self._retired], None, []
        for session in filter(None, sessions):
            await session.close()

    def _open(self) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=self.config.max_connections),
            timeout=aiohttp.ClientTimeout(total=self.config.timeout_s, sock_connect=10),
            headers=_authorization(self.config.api_key_var),
        )

    def _retire(self, session: aiohttp.ClientSession) -> None:
        """Send the next requests over new connections: after a 5xx vLLM leaves the old one in any state.

        Requests of other groups may still run in the old session, so it is closed only with the engine.
        """
        if session is self._session:
            self._retired.append(session)
            self._session = self._open()

    async def sample(
        self, messages: Sequence[Message], *, n: int, seed: int, params: SamplingParams
    ) -> list[Completion]:
        """n completions of one prompt in one request; the server seeds choice i with `seed + i`."""
        greedy = params.temperature == 0
        first = self._version
        # vLLM refuses n > 1 greedy choices because they are one and the same.
        body = self._body(messages, n=1 if greedy else n, seed=seed, params=params)
        answer = await self._post("/v1/chat/completions", body)
        choices = answer.get("choices") or []
        if len(choices) != body["n"]:
            raise EngineError(f"{self._root} returned {len(choices)} choices, asked for {body['n']}")
        prompt_ids = tuple(answer.get("prompt_token_ids") or ())
        span = (first, max(self._version, self._expected))
        completions = [read_completion(c, prompt_ids, span=span) for c in choices]
        return completions * n if greedy else completions

    def _body(
        self, messages: Sequence[Message], *, n: int, seed: int, params: SamplingParams
    ) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self.config.model,
            "messages": list(messages),
            "n": n,
            "seed": seed % 2**63,
            "temperature": params.temperature,
            "max_tokens": params.max_tokens,
            "logprobs": True,
            "return_token_ids": True,
            # Spelled out because a server started elsewhere may take other defaults from the checkpoint's
            # generation_config.json, and then samples from a distribution the loss does not know.
            "top_p": 1.0,
            "top_k": 0,
            "min_p": 0.0,
            "repetition_penalty": 1.0,
        }
        if self.config.chat_template_kwargs:
            body["chat_template_kwargs"] = self.config.chat_template_kwargs
        return body

    async def _post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """POST with retries; the only way out besides an answer is `EngineError`."""
        payload = json.dumps(body)
        for attempt in range(self.config.retries + 1):
            session = self._session
            if session is None:
                raise EngineError(
                    "the vllm engine is not started; await engine.start() in this event loop first"
                )
            pause: float | None = None
            try:
                async with session.post(self._root + path, data=payload, headers=JSON) as response:
                    raw = await response.read()
                    if response.status == 200:
                        return read_json(raw, self._root)
                    problem = f"HTTP {response.status}: {error_text(raw)}"
                    if response.status not in RETRIED_STATUS:
                        raise EngineError(f"{self._root}{path} refused the request with {problem}")
                    pause = retry_after(response.headers.get("Retry-After"))
                    self._retire(session)
            except TimeoutError:
                raise EngineError(
                    f"no answer from {self._root}{path} within {self.config.timeout_s:g} s; "
                    "raise engine.timeout_s or generate fewer tokens"
                ) from None
            except aiohttp.ClientError as error:
                problem = _why(error)
            if attempt < self.config.retries:
                await asyncio.sleep(self._backoff(attempt) if pause is None else pause)
        raise EngineError(
            f"{self._root}{path} failed {self.config.retries + 1} times, last: {problem}; is the server still running?"
        )

    def _backoff(self, attempt: int) -> float:
        return self.config.backoff_s * 2**attempt * self._jitter.uniform(0.5, 1.5)

    async def _wait_healthy(self, session: aiohttp.ClientSession) -> None:
        started = spoken = time.monotonic()
        while True:
            problem = await _probe(session, self._root)
            if not problem:
                return
            now = time.monotonic()
            waited = now - started
            if waited >= self.config.wait_s:
                raise EngineError(
                    f"no vLLM server answers at {self._root} ({problem}); "
                    "start one with `snooze serve MODEL` or set engine.base_url"
                )
            if now - spoken >= 5:
                spoken = now
                self._say(
                    f"waiting for vLLM at {self._root}, {waited:.0f} s of at most {self.config.wait_s:g} ({problem})"
                )
            await asyncio.sleep(min(1.0, self.config.wait_s - waited))

    async def _check_model(self, session: aiohttp.ClientSession) -> None:
        async with session.get(f"{self._root}/v1/models") as response:
            raw = await response.read()
            if response.status != 200:
                raise EngineError(
                    f"{self._root}/v1/models answered HTTP {response.status}: {error_text(raw)}"
                )
        cards = {str(card.get("id")): card for card in read_json(raw, self._root).get("data", [])}
        served = list(cards)
        if self.config.model not in served:
            raise EngineError(
                f"{self._root} serves {', '.join(map(repr, served)) or 'nothing'}, not {self.config.model!r}; "
                f"set engine.model.{did_you_mean(self.config.model, served)}"
            )
        self._checkpoint = str(cards[self.config.model].get("root") or "")

    async def _check_logprobs(self) -> None:
        """Ask for the likeliest first token at two temperatures: processed log-probs differ, raw ones do not."""
        tops: list[float] = []
        for temperature in (1.0, 2.0):
            params = SamplingParams(max_tokens=1, temperature=temperature)
            body = self._body([{"role": "user", "content": "1"}], n=1, seed=0, params=params)
            answer = await self._post("/v1/chat/completions", body | {"top_logprobs": 1})
            choice = answer["choices"][0]
            read_completion(choice, tuple(answer.get("prompt_token_ids") or ()), span=(0, 0))
            tops.append(float(choice["logprobs"]["content"][0]["top_logprobs"][0]["logprob"]))
        # A point mass keeps its log-prob of 0 at any temperature and so proves nothing.
        if tops[0] == tops[1] and tops[0] < -1e-6:
            raise EngineError(
                f"{self._root} returns raw log-probs (the same {tops[0]:.4f} at temperatures 1 and 2); "
                "serve with --logprobs-mode processed_logprobs"
            )


async def _probe(session: aiohttp.ClientSession, root: str) -> str:
    """ "" when the server is up and sampling, else what is wrong."""
    limit = aiohttp.ClientTimeout(total=5)
    try:
        async with session.get(f"{root}/health", timeout=limit) as response:
            if response.status != 200:
                return f"HTTP {response.status}"
        async with session.get(f"{root}/is_paused", timeout=limit) as response:
            # A server without the RL routes answers 404 and cannot be paused.
            paused = response.status == 200 and (await response.json()).get("is_paused")
            return (
                "it is paused for a weight update; when its trainer died, connecting a new one resumes it"
                if paused
                else ""
            )
    except TimeoutError:
        return "no answer in 5 s"
    except aiohttp.ClientError as error:
        return _why(error)


def _why(error: aiohttp.ClientError) -> str:
    if isinstance(error, aiohttp.ClientConnectorError):
        return (
            "connection refused"
            if isinstance(error.os_error, ConnectionRefusedError)
            else str(error.os_error)
        )
    return str(error) or type(error).__name__


def _root(base_url: str) -> str:
    return base_url.rstrip("/").removesuffix("/v1")


def _authorization(variable: str) -> dict[str, str]:
    if not variable:
        return {}
    key = os.environ.get(variable)
    if not key:
        raise EngineError(
            f"engine.api_key_var names {variable}, which is not set in the environment; export it"
        )
    return {"Authorization": f"Bearer {key}"}
