"""Task texts as vectors: hashed n-grams, a sentence model, or an endpoint; a table's `kind` says which.

texts ─▶ cache: known? ─▶ backend, the unknown ones in chunks ─▶ cache ─▶ [N, h] unit rows (projected, if asked)

A new backend is one file (config and embedder) and one line in `EmbeddingConfig`. What a backend needs beyond numpy
it imports when it is built, so that the numpy core stays light.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from pydantic import Field

from snoozing_env.embeddings.base import Embedder, EmbeddingOptions, Vectors
from snoozing_env.embeddings.cache import VectorCache
from snoozing_env.embeddings.endpoint import EndpointConfig
from snoozing_env.embeddings.hashed import HashedConfig
from snoozing_env.embeddings.sentence import SentenceConfig
from snoozing_env.embeddings.surface import surface_rows

EmbeddingConfig = Annotated[HashedConfig | SentenceConfig | EndpointConfig, Field(discriminator="kind")]
"""A recipe's `[scheduler.embedding]` table; a table without `kind` is hashed n-grams."""

CHUNK = 1 << 14
"""Texts embedded between two writes to the cache: what a kill can cost."""


def embed(config: EmbeddingOptions, texts: Sequence[str]) -> Vectors:
    """[N, h] unit vectors of the texts in `config.dtype`; a text without content is all zero.

    With `config.surface`, five columns more: their rows have length `surface` on average.

    Raises:
        ConfigError: the backend needs a package or a key that is not there; the message says how to get it.
        EmbeddingError: the model cannot be loaded, or the endpoint failed for good.
    """
    embedder = config.embedder()
    cache = VectorCache.open(config, embedder)
    projection = None
    out: Vectors | None = None
    for start in range(0, len(texts), CHUNK):
        chunk = texts[start : start + CHUNK]
        vectors = embedder.embed(chunk) if cache is None else cache.through(embedder, chunk)
        if config.dims is not None and config.dims < vectors.shape[1]:
            if projection is None:
                projection = random_projection(vectors.shape[1], config.dims)
            vectors = vectors.astype(np.float32) @ projection
        if out is None:
            out = np.empty((len(texts), vectors.shape[1]), config.dtype)
        out[start : start + CHUNK] = unit_rows(vectors)
    if out is None:
        return np.zeros((0, 1), config.dtype)
    if not config.surface:
        return out
    looks = surface_rows(texts)
    return np.concatenate(
        [out, (looks * (config.surface / looks.shape[1] ** 0.5)).astype(config.dtype)], axis=1
    )


def random_projection(width: int, dims: int) -> Vectors:
    """[width, dims] Gaussian projection, the same on every machine; it keeps angles to about 1/sqrt(dims)."""
    rng = np.random.default_rng(np.random.SeedSequence([width, dims]))
    return rng.standard_normal((width, dims)).astype(np.float32) / np.float32(np.sqrt(dims))


def unit_rows(vectors: Vectors) -> Vectors:
    """Rows scaled to length one; rows of zeros stay as they are."""
    wide = vectors.astype(np.float32)
    length = np.sqrt(np.einsum("nh,nh->n", wide, wide))[:, None]
    return wide / np.where(length > 0, length, np.float32(1))


__all__ = [
    "Embedder",
    "EmbeddingConfig",
    "EmbeddingOptions",
    "EndpointConfig",
    "HashedConfig",
    "SentenceConfig",
    "Vectors",
    "embed",
    "random_projection",
    "unit_rows",
]
