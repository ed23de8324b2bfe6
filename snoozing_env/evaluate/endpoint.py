"""A chat completion from any OpenAI-compatible endpoint, or a fault that says whether asking again can help.

401 403 404, no quota left   EngineError: every request would fail alike, the run stops
429                          limited: wait as long as the endpoint says, then ask again
408 409 425 5xx, a torn or   transient: ask again after a pause
malformed answer
any other 4xx                final: this request is at fault, such as a prompt over the context
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

import aiohttp
from verifiers.v1.errors import ProviderError

from snoozing_env.errors import EngineError, did_you_mean
from snoozing_env.evaluate.config import EndpointConfig, SamplingConfig
from snoozing_env.evaluate.pace import retry_pause
from snoozing_env.report.redact import MASK
from snoozing_env.rollout.engines.base import Message
from snoozing_env.rollout.engines.vllm_wire import error_text

Kind = Literal["limited", "transient", "final"]
TRANSIENT = frozenset({408, 409, 425})
FATAL = frozenset({401, 402, 403, 404})


class Fault(ProviderError):
    """A request that brought no completion; verifiers' own error type, so that traces record it as such."""

    def __init__(self, message: str, *, kind: Kind, status: int = 502, pause: float | None = None) -> None:
        super().__init__(message, status_code=status)
        self.kind, self.pause = kind, pause


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One completion as the endpoint tells it."""

    text: str
    reasoning: str | None
    finish_reason: Literal["stop", "length"]
    prompt_tokens: int
    """As reported, those read from a cache included; 0 where the endpoint reports nothing."""
    completion_tokens: int
    cached_tokens: int
    headers: Mapping[str, str]
    """Of the answer: rate-limit allowances."""


class ChatEndpoint:
    """Client of one endpoint; opened and closed in the event loop that asks."""

    def __init__(self, config: EndpointConfig, *, url: str = "", model: str = "") -> None:
        """`url` and `model` override the config's, for an engine in this process."""
        self.config = config
        self.root, self.model = url or config.root, model or config.model
        self._session: aiohttp.ClientSession | None = None
        self._key = ""

    async def open(self) -> None:
        """Connect, and make sure that the model is served.

        Raises:
            EngineError: nothing answers, the key is missing or refused, or the model is not among those served.
        """
        self._key = _key(self.config.key_env)
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            # The deadline of a rollout bounds each request.
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=30),
            headers=headers,
        )
        try:
            await self._check_model(self._session)
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def chat(self, messages: Sequence[Message], sampling: SamplingConfig, *, seed: int) -> Reply:
        """One completion.

        Raises:
            Fault: this request failed.
            EngineError: every request would.
        """
        if self._session is None:
            raise EngineError("the endpoint is not open; await open() in this event loop first")
        body = self._body(messages, sampling, seed)
        try:
            async with self._session.post(f"{self.root}/chat/completions", json=body) as response:
                raw = await response.read()
                return self._read(response.status, response.headers, raw)
        except aiohttp.ClientError as error:
            raise Fault(f"{self.root}: {_why(error)}", kind="transient") from error

    def _body(self, messages: Sequence[Message], sampling: SamplingConfig, seed: int) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self.model,
            "messages": list(messages),
            "temperature": sampling.temperature,
            self.config.token_limit: sampling.max_tokens,
        }
        if sampling.top_p is not None:
            body["top_p"] = sampling.top_p
        if sampling.stop:
            body["stop"] = list(sampling.stop)
        if self.config.seeded:
            body["seed"] = seed
        return body | self.config.extra_body

    def _read(self, status: int, headers: Mapping[str, str], raw: bytes) -> Reply:
        if status == 200:
            return self._reply(raw, headers)
        words = self._scrubbed(error_text(raw)) or "no explanation"
        text = f"{self.root} answered HTTP {status}: {words}"
        if status in FATAL or "insufficient_quota" in words:
            raise EngineError(f"{text}{self._advice(status)}")
        if status == 429:
            raise Fault(text, kind="limited", status=status, pause=retry_pause(headers))
        kind: Kind = "transient" if status >= 500 or status in TRANSIENT else "final"
        raise Fault(text, kind=kind, status=status, pause=retry_pause(headers))

    def _reply(self, raw: bytes, headers: Mapping[str, str]) -> Reply:
        try:
            answer = json.loads(raw)
            choice, usage = answer["choices"][0], answer.get("usage") or {}
            message = choice["message"]
            text, reason = str(message.get("content") or ""), choice.get("finish_reason")
            counts = [int(usage.get(name) or 0) for name in ("prompt_tokens", "completion_tokens")]
            cached = int((usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0)
            thoughts = message.get("reasoning_content") or message.get("reasoning")
        except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
            shown = self._scrubbed(raw[:80].decode(errors="replace"))
            raise Fault(f"{self.root} sent no chat completion: {shown!r}", kind="transient") from error
        if reason not in ("stop", "length"):
            raise Fault(
                f"{self.root} ended a completion with {reason!r}, wanted 'stop' or 'length'", kind="final"
            )
        return Reply(
            text=text,
            reasoning=str(thoughts) if thoughts else None,
            finish_reason=cast(Literal["stop", "length"], reason),
            prompt_tokens=counts[0],
            completion_tokens=counts[1],
            cached_tokens=cached,
            headers=headers,
        )

    async def _check_model(self, session: aiohttp.ClientSession) -> None:
        status, raw = await self._models(session)
        if status in (404, 405, 501):
            return  # an endpoint without a list: the first completion tells
        if status != 200:
            words = self._scrubbed(error_text(raw)) or "no explanation"
            raise EngineError(f"{self.root}/models answered HTTP {status}: {words}{self._advice(status)}")
        try:
            served = [str(card["id"]) for card in json.loads(raw)["data"]]
        except (ValueError, KeyError, TypeError) as error:
            raise EngineError(
                f"{self.root}/models is no list of models, so this is no OpenAI-compatible API: {raw[:80]!r}; "
                "check endpoint.url"
            ) from error
        if self.model not in served:
            shown = ", ".join(map(repr, served[:12])) + (" …" if len(served) > 12 else "")
            raise EngineError(
                f"{self.root} serves {shown or 'nothing'}, not {self.model!r};{did_you_mean(self.model, served)} "
                "set endpoint.model"
            )

    async def _models(self, session: aiohttp.ClientSession) -> tuple[int, bytes]:
        started = time.monotonic()
        while True:
            try:
                async with session.get(
                    f"{self.root}/models", timeout=aiohttp.ClientTimeout(total=15)
                ) as response:
                    return response.status, await response.read()
            except TimeoutError:
                problem = "no answer in 15 s"
            except aiohttp.InvalidURL:
                raise EngineError(
                    f"endpoint.url {self.root!r} is no URL; wanted http://HOST:PORT/v1"
                ) from None
            except aiohttp.ClientError as error:
                problem = _why(error)
            if time.monotonic() - started >= self.config.wait_s:
                raise EngineError(
                    f"no endpoint answers at {self.root} ({problem}); start one with `snooze serve MODEL`, set "
                    "endpoint.url, or raise endpoint.wait_s while one comes up"
                )
            await asyncio.sleep(min(0.5, self.config.wait_s))

    def _advice(self, status: int) -> str:
        if status in (401, 403):
            name = self.config.key_env
            return (
                f"; the key in {name} is refused"
                if name
                else "; name the environment variable that holds the API key with endpoint.key_env"
            )
        return f"; is endpoint.model {self.model!r} right?" if status == 404 else ""

    def _scrubbed(self, text: str) -> str:
        """Some endpoints quote the key they refuse."""
        return text.replace(self._key, MASK) if self._key else text


def _key(variable: str) -> str:
    if not variable:
        return ""
    if key := os.environ.get(variable):
        return key
    raise EngineError(f"endpoint.key_env names {variable}, which is not set in the environment; export it")


def _why(error: aiohttp.ClientError) -> str:
    if isinstance(error, aiohttp.ClientConnectorError):
        refused = isinstance(error.os_error, ConnectionRefusedError)
        return "connection refused" if refused else str(error.os_error)
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
