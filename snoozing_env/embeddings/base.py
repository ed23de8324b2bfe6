"""What an embedding backend is, and what all of them are configured with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from snoozing_env.config import FrozenConfig

Vectors = NDArray[np.floating[Any]]
"""[N, h] one row per text."""


class Embedder(Protocol):
    """Turns texts into vectors."""

    @property
    def name(self) -> str:
        """The model and every setting that changes its vectors; cached vectors are kept under it."""
        ...

    def embed(self, texts: Sequence[str]) -> Vectors:
        """[N, h] one row per text, each a function of that text alone."""
        ...


class EmbeddingOptions(FrozenConfig):
    """What every backend shares."""

    dtype: Literal["float16", "float32"] = "float16"
    """Of the vectors in memory and in the cache: at 10^6 tasks and 384 dimensions .77 or 1.5 GB."""
    dims: int | None = Field(default=None, ge=8)
    """Project to so many dimensions (a fixed Gaussian projection) where the backend gives more; None = as it gives."""
    cache: Path | None = None
    """Folder in which vectors are kept by model and text, so that a resumed or changed run embeds only what is new;
    None = embed again in each run."""

    surface: float = Field(default=0.5, ge=0)
    """Weight of length and counts (words, numbers, sentences, symbols) beside the model's vector, whose length is 1;
    0 = the vector alone, as in the paper."""

    def embedder(self) -> Embedder:
        raise NotImplementedError
