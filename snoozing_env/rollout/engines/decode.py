"""One batch of completions from a causal model: left-padded prompts, a key-value cache, exact log-probs.

A token is drawn by inverting the policy's distribution at one uniform number, and row g of a request owns
the stream `SeedSequence([seed, g])`: its tokens depend neither on the groups that share its batch nor on n
(up to float rounding; a wider batch may round a logit differently).

R rows in request order, then g · L prompt tokens, padding included · V vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from snoozing_env.types import Floats

if TYPE_CHECKING:
    from transformers import Cache, PreTrainedModel

    from snoozing_env.rollout.engines.local import Request

Decoded = tuple[list[list[int]], list[list[float]]]
"""(token ids, log-probs), [R] lists of one entry per sampled token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """The sampling state of a batch, R rows; row order is request order, then g."""

    uniforms: Floats
    """[R, T] the number that decides token t of each row."""
    limits: torch.Tensor
    """[R] most tokens a row may have."""
    temperatures: torch.Tensor
    """[R] 0 = greedy."""


def decode(policy: PreTrainedModel, batch: Sequence[Request], ends: frozenset[int]) -> Decoded:
    """Token ids and log-probs of every row; a row stops after a token of `ends` or at its limit."""
    with _generation_mode(policy):
        return _continue(policy, batch, torch.tensor(sorted(ends), device=policy.device))


def _prefill(policy: PreTrainedModel, batch: Sequence[Request]) -> tuple[torch.Tensor, torch.Tensor, Cache]:
    """([R, V] logits after each prompt, [R, L] attention mask, cache); each prompt is run once, then repeated."""
    longest = max(len(request.prompt_ids) for request in batch)
    pads = [longest - len(request.prompt_ids) for request in batch]
    device = policy.device
    ids = torch.tensor([(0,) * pad + r.prompt_ids for pad, r in zip(pads, batch, strict=True)], device=device)
    mask = (torch.arange(longest) >= torch.tensor(pads)[:, None]).long().to(device)
    out = policy(
        input_ids=ids,
        attention_mask=mask,
        position_ids=(mask.cumsum(1) - 1).clamp(min=0),
        use_cache=True,
        logits_to_keep=1,
    )
    owner = torch.repeat_interleave(torch.tensor([request.n for request in batch])).to(device)
    out.past_key_values.batch_select_indices(owner)
    return out.logits[owner, -1], mask[owner], out.past_key_values


def _continue(policy: PreTrainedModel, batch: Sequence[Request], ends: torch.Tensor) -> Decoded:
    rows = _rows(batch, policy.device)
    logits, mask, cache = _prefill(policy, batch)
    alive = torch.arange(len(logits), device=logits.device)
    tokens_R: list[list[int]] = [[] for _ in range(len(alive))]
    logprobs_R: list[list[float]] = [[] for _ in range(len(alive))]
    for place in range(rows.uniforms.shape[1]):
        chosen, logprobs = _choose(logits, rows, alive, place)
        for row, token, logprob in zip(alive.tolist(), chosen.tolist(), logprobs.tolist(), strict=True):
            tokens_R[row].append(token)
            logprobs_R[row].append(logprob)
        going = ~torch.isin(chosen, ends) & (place + 1 < rows.limits[alive])
        if not bool(going.any()):
            break
        if not bool(going.all()):
            alive, chosen, mask = alive[going], chosen[going], mask[going]
            cache.batch_select_indices(going.nonzero()[:, 0])
        mask = torch.cat([mask, mask.new_ones(len(mask), 1)], dim=1)
        out = policy(
            input_ids=chosen[:, None],
            attention_mask=mask,
            position_ids=mask.sum(1, keepdim=True) - 1,
            past_key_values=cache,
            use_cache=True,
        )
        logits = out.logits[:, -1]
    return tokens_R, logprobs_R


def _rows(batch: Sequence[Request], device: torch.device) -> Rows:
    longest = max(request.max_tokens for request in batch)
    uniforms = [
        np.random.default_rng(np.random.SeedSequence([request.seed, g])).random(longest)
        for request in batch
        for g in range(request.n)
    ]
    limits = [request.max_tokens for request in batch for _ in range(request.n)]
    temperatures = [request.temperature for request in batch for _ in range(request.n)]
    return Rows(
        uniforms=np.stack(uniforms),
        limits=torch.tensor(limits, device=device),
        temperatures=torch.tensor(temperatures, device=device),
    )


def _choose(
    logits: torch.Tensor, rows: Rows, alive: torch.Tensor, place: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """The next token of every row that is alive, and its log-prob at the sampling temperature."""
    temperatures = rows.temperatures[alive]
    greedy = temperatures == 0
    scale = torch.where(greedy, torch.ones_like(temperatures), temperatures)
    logprobs = torch.log_softmax(logits.float() / scale[:, None], dim=-1)
    # float64: a float32 sum over a large vocabulary is off by more than its rare tokens weigh
    cumulated = logprobs.double().exp().cumsum(-1)
    uniforms = torch.from_numpy(rows.uniforms[:, place]).to(logits.device)[alive]
    threshold = (uniforms * cumulated[:, -1])[:, None]
    drawn = torch.searchsorted(cumulated, threshold, right=True)[:, 0].clamp(max=logits.shape[-1] - 1)
    chosen = torch.where(greedy, logits.argmax(-1), drawn)
    return chosen, logprobs.gather(1, chosen[:, None])[:, 0]


@contextmanager
def _generation_mode(model: PreTrainedModel) -> Iterator[None]:
    """No gradients and no dropout inside, the trainer's mode restored after."""
    training = model.training
    model.eval()
    try:
        # not inference_mode: tensors a model caches there (rotary tables) would break the next backward
        with torch.no_grad():
            yield
    finally:
        model.train(training)
