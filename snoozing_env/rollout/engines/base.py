"""What a rollout engine promises.

An engine turns a chat prompt into G sampled completions with *exact* token ids and the log-probs the
sampler used (after temperature), and says which weights it used. It knows nothing of tasks or rewards.

    group runner ──sample(messages, n, seed)──▶ engine ──▶ [Completion] * n
    trainer      ──WeightTransfer.push(version)─▶ engine.version = version
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

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


class Engine(Protocol):
    """A source of completions. Raises `EngineError` when it cannot serve; never returns a made-up completion."""

    @property
    def model(self) -> str:
        """Name the engine serves the policy under."""
        ...

    @property
    def tokenizer(self) -> str:
        """Path or name of the policy's tokenizer, for clients that render prompts themselves."""
        ...

    @property
    def base_url(self) -> str | None:
        """OpenAI-compatible root (".../v1") for harnesses that need HTTP; None when there is none."""
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

    async def close(self) -> None: ...
