"""The engine that needs no server: the trainer's own model object generates, in the trainer's process.

    sample() ─┐ prompt + future
    sample() ─┼──▶ waiting ──(quiet for a few ticks, or max_batch rows)──▶ one worker thread ─▶ futures
    sample() ─┘       ▲                                                        │
                      └──────────── the flush task, while anything waits ◀─────┘

`sample` waits for its future; the flush task owns it and always resolves it, with completions or an
`EngineError`. The worker thread keeps deadlines and progress alive while a batch runs. The weights are
shared, not copied, so an optimizer step must not run while a `sample` is pending.

A harness reaches the same queue over HTTP (local_http.py); `endpoint` starts that server with its first call.

The forward itself is in decode.py, which is imported with the first batch: it needs torch, this module does not.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pydantic import ConfigDict, Field
from pydantic_config import BaseConfig

from snoozing_env.errors import EngineError
from snoozing_env.rollout.engines.base import Completion, Endpoint, Message, OneAddress, SamplingParams

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from snoozing_env.rollout.engines.local_http import LocalServer

QUIET_TICKS = 4
"""Event-loop rounds without a new request before a batch starts: callers that begin together take a few
awaits, not always the same number, to reach the engine."""


class LocalEngineConfig(BaseConfig):
    """Generate with the trainer's own model object."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["local"] = "local"
    own_weights: bool = False
    """Generate with a copy of the policy, replaced by every update, so that generation may overlap with training
    (pacing.max_staleness above 0). Costs the model's memory once more."""
    max_batch: int = Field(default=512, ge=1)
    """Sequences in one forward; one request of more than this runs alone."""
    tool_parser: str = ""
    """How the policy writes a tool call, e.g. qwen3; needed by environments that offer tools."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One `sample` call that waits for its batch."""

    prompt_ids: tuple[int, ...]
    n: int
    seed: int
    max_tokens: int
    """Already cut to what the context leaves."""
    temperature: float
    reply: asyncio.Future[list[Completion]]


class LocalEngine(OneAddress):
    """An `Engine` over a transformers causal model that somebody else trains."""

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        config: LocalEngineConfig | None = None,
        *,
        name: str = "local",
    ) -> None:
        self.policy, self.tokenizer = model, tokenizer
        self.config = config or LocalEngineConfig()
        self._name = name
        self._version = 0
        self._waiting: list[Request] = []
        self._flusher: asyncio.Task[None] | None = None
        self._worker: ThreadPoolExecutor | None = None
        self._server: LocalServer | None = None
        self._files: tempfile.TemporaryDirectory[str] | None = None

    @property
    def model(self) -> str:
        return self._name

    @property
    def version(self) -> int:
        return self._version

    def set_version(self, version: int) -> None:
        self._version = version

    def replace_weights(self, tensors: Mapping[str, torch.Tensor], version: int) -> None:
        """Copy these into the engine's own model, between two batches; call it from any other thread.

        Raises:
            EngineError: the engine is not running, or a tensor of the model is missing.
        """
        if self._worker is None:
            raise self._not_running()
        self._worker.submit(self._copy_in, tensors, version).result()

    def _copy_in(self, tensors: Mapping[str, torch.Tensor], version: int) -> None:
        import torch

        own = dict(self.policy.named_parameters())
        if missing := own.keys() - tensors.keys():
            raise EngineError(f"the update of {self._name!r} lacks {', '.join(sorted(missing)[:3])}")
        with torch.no_grad():
            for name, tensor in own.items():
                tensor.copy_(tensors[name])
        self._version = version

    async def start(self) -> None:
        if self.tokenizer.chat_template is None:
            raise EngineError(
                f"the tokenizer of {self._name!r} has no chat template, so no chat prompt can be rendered; "
                "use an instruct model or set tokenizer.chat_template"
            )
        if self._worker is None:
            self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="local-engine")

    async def endpoint(self) -> Endpoint:
        """A loopback address over this engine, in the running event loop; the first call opens it, `close` shuts it."""
        from snoozing_env.rollout.engines.local_http import LocalServer

        if self._worker is None:
            raise self._not_running()
        if self._server is None or self._files is None:
            # Saved, not looked up by name: the object may have been built or changed in memory.
            self._files = tempfile.TemporaryDirectory(prefix="snooze-tokenizer-")
            self.tokenizer.save_pretrained(self._files.name)
            self._server = LocalServer(self)
            await self._server.start()
        return Endpoint(
            base_url=self._server.base_url,
            tokenizer=self._files.name,
            tool_parser=self.config.tool_parser,
            reseeds=True,
        )

    async def close(self) -> None:
        server, files, self._server, self._files = self._server, self._files, None, None
        if server is not None:
            await server.close()
        if files is not None:
            files.cleanup()
        if self._flusher is not None and not self._flusher.done():
            self._flusher.cancel()
            await asyncio.wait([self._flusher])
        self._flusher = None
        self._drop_waiting()
        if self._worker is not None:
            self._worker.shutdown(wait=True)
            self._worker = None

    async def sample(
        self, messages: Sequence[Message], *, n: int, seed: int, params: SamplingParams
    ) -> list[Completion]:
        """n completions; the same seed, weights and prompt give the same tokens up to float rounding.

        At temperature 0 the log-probs are those at temperature 1. A completion that reaches the end of the
        context finishes with "length". Raises `EngineError` for a prompt that leaves no room, before it waits.
        """
        return await self.sample_ids(self.render(messages), n=n, seed=seed, params=params)

    async def sample_ids(
        self, prompt_ids: Sequence[int], *, n: int, seed: int, params: SamplingParams
    ) -> list[Completion]:
        """`sample` for a prompt that is already token ids."""
        if self._worker is None:
            raise self._not_running()
        if n < 1 or params.max_tokens < 1 or params.temperature < 0:
            raise EngineError(f"cannot sample n={n} completions with {params}; n and max_tokens start at 1")
        request = Request(
            prompt_ids=tuple(prompt_ids),
            n=n,
            seed=seed,
            max_tokens=min(params.max_tokens, self._room(prompt_ids)),
            temperature=params.temperature,
            reply=asyncio.get_running_loop().create_future(),
        )
        self._waiting.append(request)
        if self._flusher is None or self._flusher.done():
            self._flusher = asyncio.create_task(self._flush())
        return await request.reply

    def render(self, messages: Sequence[Message]) -> tuple[int, ...]:
        """Token ids of a chat prompt, the generation prompt included."""
        rendered = self.tokenizer.apply_chat_template(
            list(messages), add_generation_prompt=True, tokenize=True, return_dict=True
        )
        return tuple(rendered["input_ids"])

    @property
    def context(self) -> int:
        """Tokens of prompt and completion together that the model can see."""
        return int(self.policy.config.max_position_embeddings)

    def _room(self, prompt_ids: Sequence[int]) -> int:
        if len(prompt_ids) >= self.context:
            raise EngineError(
                f"the prompt has {len(prompt_ids)} tokens, the context of {self._name!r} is {self.context} and a "
                "completion needs at least one; shorten the prompt or use a model with a longer context"
            )
        return self.context - len(prompt_ids)

    def _not_running(self) -> EngineError:
        return EngineError(f"the local engine {self._name!r} is not running; await start() first")

    async def _flush(self) -> None:
        """Run batches until nothing waits. A failed batch fails its own requests only."""
        loop = asyncio.get_running_loop()
        try:
            while self._waiting:
                await self._gather()
                batch = self._take()
                if not batch:
                    continue
                job = loop.run_in_executor(self._worker, self._generate, batch)
                try:
                    await asyncio.wait([job])
                finally:
                    _resolve(batch, job)
        finally:
            self._drop_waiting()

    def _drop_waiting(self) -> None:
        """Cancel whoever still waits, so nobody waits for ever. `close` calls it too: a flush task that is cancelled
        before its first step never reaches its `finally`."""
        for request in self._waiting:
            request.reply.cancel()
        self._waiting.clear()

    async def _gather(self) -> None:
        seen, quiet = 0, 0
        while quiet < QUIET_TICKS and sum(r.n for r in self._waiting) < self.config.max_batch:
            quiet = quiet + 1 if len(self._waiting) == seen else 0
            seen = len(self._waiting)
            await asyncio.sleep(0)

    def _take(self) -> list[Request]:
        """The longest run of waiting requests, in call order, that fits `max_batch`; none where all were cancelled."""
        # Whoever was cancelled while it waited is not generated for (a batch that has begun cannot be stopped).
        self._waiting = [request for request in self._waiting if not request.reply.done()]
        rows, count = 0, 0
        for request in self._waiting:
            rows += request.n
            if count and rows > self.config.max_batch:
                break
            count += 1
        batch, self._waiting = self._waiting[:count], self._waiting[count:]
        return batch

    def _generate(self, batch: Sequence[Request]) -> list[list[Completion]]:
        """All completions of a batch, in its order; runs in the worker thread."""
        from snoozing_env.rollout.engines.decode import decode

        version, ends = self._version, self.end_ids
        tokens_R, logprobs_R = decode(self.policy, batch, ends)
        texts = self.tokenizer.batch_decode(tokens_R, skip_special_tokens=True)
        rows = iter(zip(tokens_R, logprobs_R, texts, strict=True))
        last_version = self._version
        return [
            [
                Completion(
                    prompt_ids=request.prompt_ids,
                    token_ids=tuple(tokens),
                    logprobs=tuple(logprobs),
                    text=text,
                    finish_reason="stop" if tokens[-1] in ends else "length",
                    version=version,
                    last_version=last_version,
                )
                for tokens, logprobs, text in (next(rows) for _ in range(request.n))
            ]
            for request in batch
        ]

    @property
    def end_ids(self) -> frozenset[int]:
        """Tokens that end a completion."""
        told = self.policy.generation_config.eos_token_id
        ids = told if isinstance(told, list) else [told]
        return frozenset(i for i in (*ids, self.tokenizer.eos_token_id) if i is not None)


def _resolve(batch: Sequence[Request], job: asyncio.Future[list[list[Completion]]]) -> None:
    """Hand a finished job's result or failure to everyone who waits for it."""
    waiting = [(i, request.reply) for i, request in enumerate(batch) if not request.reply.done()]
    if not job.done() or job.cancelled():
        for _, reply in waiting:
            reply.cancel()
        return
    failure = job.exception()
    for i, reply in waiting:
        if failure is None:
            reply.set_result(job.result()[i])
        else:
            error = EngineError(
                f"the local engine failed on {len(batch)} requests: {type(failure).__name__}: {failure}"
            )
            error.__cause__ = failure
            reply.set_exception(error)
