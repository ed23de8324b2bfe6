"""Everything that bends a library to where this package runs. Each shim says which version needs it; its test fails
when that version no longer does, and then the shim goes.

    shim              needed by   because
    without_cuda      trl 1.16    AsyncGRPOTrainer asks CUDA for the device's name, for a utilisation figure
    sdpa_attention    trl 1.16    its packed rows attend through FlashAttention 3, a kernel of Hopper GPUs fetched from the hub
    no_prefetch       trl 1.16    accelerate's dispatcher fetches a batch ahead, so the bound counts one step too few
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils.data import DataLoader, IterableDataset
from transformers import AttentionInterface

os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")  # its notice that it may change; we pin trl

import trl.experimental.async_grpo.async_grpo_trainer as async_module
from trl.experimental.async_grpo.packing import TREE_ATTENTION

NEEDED_BY = "1.16"
"""Version of trl that the shims of this module are written against."""


@contextmanager
def without_cuda() -> Iterator[None]:
    """Inside, a trainer on CPU has no peak FLOPs instead of an exception; its other figures stay."""
    real = async_module.get_peak_flops_per_device

    def peak(accelerator: Any, dtype: str) -> float | None:
        return real(accelerator, dtype) if accelerator.device.type == "cuda" else None

    async_module.get_peak_flops_per_device = peak
    try:
        yield
    finally:
        async_module.get_peak_flops_per_device = real


def has_flash_attention() -> bool:
    """Whether TRL's own kernel can be loaded here."""
    return torch.cuda.is_available() and importlib.util.find_spec("kernels") is not None


def use_sdpa_attention() -> None:
    """Serve TRL's packed rows with torch's attention, from here on; after the trainer was built, which registers its own."""
    AttentionInterface.register(TREE_ATTENTION, sdpa_attention)


def sdpa_attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    *,
    tree_kv_index: torch.Tensor,
    tree_cu_seqlens_q: torch.Tensor,
    tree_cu_seqlens_k: torch.Tensor,
    scaling: float | None = None,
    sliding_window: int | None = None,
    softcap: float | None = None,
    **_: Any,
) -> tuple[torch.Tensor, None]:
    """Attention of a row of packed sequences that share prefixes, segment by segment.

    `query` is [1, heads, N, d], `key` and `value` [1, kv heads, N, d]. Segment s holds the queries between two entries
    of `tree_cu_seqlens_q`; its keys are the path from its root, `tree_kv_index` between two of `tree_cu_seqlens_k`,
    the segment itself last. Returns [1, N, heads, d].

    Raises:
        ValueError: the model caps its attention logits, which torch's kernel cannot.
    """
    if softcap:
        raise ValueError(
            f"attention with softcap {softcap} needs TRL's own kernel: install `kernels` on a GPU"
        )
    q, k, v = (x[0] for x in (query, key, value))
    spans = zip(tree_cu_seqlens_q.tolist()[:-1], tree_cu_seqlens_q.tolist()[1:], strict=True)
    paths = zip(tree_cu_seqlens_k.tolist()[:-1], tree_cu_seqlens_k.tolist()[1:], strict=True)
    out: list[torch.Tensor] = []
    for (start, end), (low, high) in zip(spans, paths, strict=True):
        path = tree_kv_index[low:high]
        mask = _causal(end - start, high - low, sliding_window, query.device)
        out.append(
            torch.nn.functional.scaled_dot_product_attention(
                q[None, :, start:end],
                k[None, :, path],
                v[None, :, path],
                attn_mask=mask,
                scale=scaling,
                enable_gqa=True,
            )[0]
        )
    return torch.cat(out, dim=1).transpose(0, 1)[None], None


def _causal(queries: int, keys: int, window: int | None, device: torch.device) -> torch.Tensor:
    """[queries, keys] True where a query sees a key; the last query stands at the last key."""
    offset = keys - queries
    mask = torch.ones(queries, keys, dtype=torch.bool, device=device).tril(offset)
    return mask.triu(offset - window + 1) if window else mask


def no_prefetch(dataset: IterableDataset[Any], collate: Any) -> DataLoader[Any]:
    """A loader that asks for a batch when it is trained, not while the one before is."""
    return DataLoader(dataset, batch_size=1, collate_fn=collate, num_workers=0)
