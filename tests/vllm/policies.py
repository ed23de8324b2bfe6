"""The trainer's side of the parity tests: a policy in float32, its log-probs, and how far the engine is from them."""

from __future__ import annotations

import asyncio
import re
import urllib.request
from collections.abc import Sequence
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, PreTrainedModel

from snoozing_env.rollout.engines.base import Completion, SamplingParams
from snoozing_env.rollout.engines.vllm import VllmEngine, VllmEngineConfig

# The long one fills whole KV blocks (128 tokens on CPU), so a stale prefix cache would show.
PROMPTS = tuple([{"role": "user", "content": text}] for text in ("hello", "What is 2+3?", "b" * 300))
PATIENCE_S = 120.0


def load_policy(path: Path) -> PreTrainedModel:
    torch.set_num_threads(1)
    return AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32).eval()


def nudge(policy: PreTrainedModel, *, seed: int, scale: float = 0.03) -> None:
    """Move every weight, embeddings and norms included, as an optimizer step would."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator) * scale)


def trainer_logprobs(
    policy: PreTrainedModel, completion: Completion, temperature: float = 1.0
) -> torch.Tensor:
    """[T] teacher-forced log-probs of the completion's own ids."""
    prompt, tokens = completion.prompt_ids, completion.token_ids
    with torch.no_grad():
        logits_TV = policy(input_ids=torch.tensor([prompt + tokens])).logits[0, len(prompt) - 1 : -1].float()
    logprobs_TV = torch.log_softmax(logits_TV / temperature, dim=-1)
    return logprobs_TV.gather(-1, torch.tensor(tokens)[:, None])[:, 0]


def delta(policy: PreTrainedModel, completions: Sequence[Completion], temperature: float = 1.0) -> float:
    """max |engine log-prob − trainer log-prob| over all tokens."""
    return max(
        (trainer_logprobs(policy, c, temperature) - torch.tensor(c.logprobs)).abs().max().item()
        for c in completions
    )


async def sample_all(engine: VllmEngine, *, seed: int, n: int = 4, tokens: int = 24) -> list[Completion]:
    params = SamplingParams(max_tokens=tokens)
    groups = await asyncio.gather(*(engine.sample(p, n=n, seed=seed, params=params) for p in PROMPTS))
    return [completion for group in groups for completion in group]


def completions_of(
    base_url: str, *, seed: int, n: int = 4, tokens: int = 24, model: str = "policy"
) -> list[Completion]:
    """Start an engine, sample every prompt, close it again."""

    async def run() -> list[Completion]:
        engine = VllmEngine(VllmEngineConfig(base_url=base_url, model=model, timeout_s=PATIENCE_S))
        await engine.start()
        try:
            return await sample_all(engine, seed=seed, n=n, tokens=tokens)
        finally:
            await engine.close()

    return asyncio.run(run())


async def until_running(base_url: str) -> None:
    """Return once the server decodes something, by its own metrics."""
    url = base_url.removesuffix("/v1") + "/metrics"
    async with asyncio.timeout(PATIENCE_S):
        while True:
            text = await asyncio.to_thread(lambda: urllib.request.urlopen(url, timeout=10).read().decode())
            if re.search(r"^vllm:num_requests_running\{.*\} [1-9]", text, re.MULTILINE):
                return
            await asyncio.sleep(0.02)
