"""What a rollout engine promises.

An engine turns a chat prompt into G sampled completions with *exact* token ids and the log-probs the
sampler used (after temperature), and says which weights it used. It knows nothing of tasks or rewards.

    group runner ──sample(messages, n, seed)──▶ engine ──▶ [Completion] * n
    trainer      ──WeightTransfer.push(version)─▶ engine.version = version
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from snoozing_env.types import FinishReason

Message = dict[str, object]
"""One OpenAI chat message: {"role": ..., "content": ...}."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingParams:
    """How the policy samples; the trainer's loss must use the same temperature."""

    max_tokens: int = 256
    temperature: float = 1.0
    """Softmax temperature; 0 = greedy (evaluation only)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """One sampled completion."""

    prompt_ids: tuple[int, ...]
    token_ids: tuple[int, ...]
    """[T ≥ 1] sampled ids, the end-of-sequence token included when it was sampled."""
    logprobs: tuple[float, ...]
    """[T] log-probability of each sampled token at the sampling temperature."""
    text: str
    """Decoded without special tokens."""
    finish_reason: FinishReason
    version: int
    """Weight version at the first token."""
    last_version: int
    """Weight version at the last token."""


@runtime_checkable
class Labelling(Protocol):
    """An engine that labels completions with versions by its own books, for want of the server's."""

    def expect(self, version: int) -> None:
        """Weights of `version` are on their way to a server that goes on answering."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """How a client that renders prompts itself reaches an engine: `/v1/models`, `/inference/v1/generate` and
    `/v1/chat/completions` as vLLM speaks them."""

    base_url: str
    """Root of the OpenAI-compatible API, "/v1" included."""
    tokenizer: str
    """Directory or hub name that `AutoTokenizer` loads the policy's tokenizer and chat template from."""
    api_key_var: str = ""
    """Environment variable that holds the API key; empty = none is asked for."""
    tool_parser: str = ""
    """How the policy writes a tool call, by its name in `renderers.parsers`; empty = it calls no tools."""
    chat_template_kwargs: Mapping[str, object] = field(default_factory=dict)
    """Extra variables of the chat template."""
    reseeds: bool = False
    """Whether each prompt draws its own noise from one seed, so that a seed may serve every turn of an episode."""


class Engine(Protocol):
    """A source of completions. Raises `EngineError` when it cannot serve; never returns a made-up completion."""

    @property
    def model(self) -> str:
        """Name the engine serves the policy under."""
        ...

    @property
    def version(self) -> int:
        """Weight version that the next request will see."""
        ...

    def set_version(self, version: int) -> None:
        """Record that the weights of `version` are now being served."""
        ...

    async def start(self) -> None:
        """Connect or load; raises `EngineError` naming the address and the fix when nothing answers."""
        ...

    async def sample(
        self, messages: Sequence[Message], *, n: int, seed: int, params: SamplingParams
    ) -> list[Completion]:
        """n completions of one prompt; the same seed, weights and prompt give the same tokens where the engine can."""
        ...

    async def endpoint(self) -> Endpoint:
        """Where a harness reaches the engine over HTTP, from the running event loop until `close`.

        Raises `EngineError` for an engine that cannot be reached so.
        """
        ...

    def lease(self, group: int, n: int) -> AbstractAsyncContextManager[Endpoint]:
        """The endpoint that serves all turns of a group's n episodes; an `EngineError` inside is laid at its door."""
        ...

    async def close(self) -> None: ...


class OneAddress(ABC):
    """`lease` of an engine that is one server."""

    @abstractmethod
    async def endpoint(self) -> Endpoint: ...

    @asynccontextmanager
    async def lease(self, group: int, n: int) -> AsyncIterator[Endpoint]:
        yield await self.endpoint()
