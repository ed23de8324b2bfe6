"""`endpoint`: vectors from an OpenAI-compatible `/v1/embeddings`, through the openai client.

The client retries time-outs, refused connections, 408, 409, 429 and 5xx with growing, jittered back-off and honours
Retry-After. The key comes from the environment, is sent in the header alone, and stands in no message and no log.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal, cast

import numpy as np
from pydantic import Field

from snoozing_env.embeddings.base import Embedder, EmbeddingOptions, Vectors
from snoozing_env.errors import ConfigError, EmbeddingError


class EndpointConfig(EmbeddingOptions):
    """A server that speaks OpenAI's embeddings route: `vllm serve --task embed`, a text-embeddings server, OpenAI."""

    kind: Literal["endpoint"] = "endpoint"
    base_url: str = "https://api.openai.com/v1"
    """Root of the API, `/v1` included."""
    model: str = "text-embedding-3-small"
    """Name that the server knows the model by."""
    key_env: str = "OPENAI_API_KEY"
    """Environment variable that holds the key; empty = the server wants none."""
    batch: int = Field(default=128, ge=1)
    """Texts per request."""
    parallel: int = Field(default=4, ge=1)
    """Requests in flight."""
    retries: int = Field(default=5, ge=0)
    """Further attempts per request, with growing waits."""
    timeout_s: float = Field(default=60.0, gt=0)
    """Per attempt."""

    def embedder(self) -> Embedder:
        return EndpointEmbedder(self)


class EndpointEmbedder:
    def __init__(self, config: EndpointConfig) -> None:
        self.config = config
        self._client: Any = None
        """Opened at the first text that no cache knows."""

    @property
    def name(self) -> str:
        return f"endpoint {self.config.base_url} {self.config.model}"

    def embed(self, texts: Sequence[str]) -> Vectors:
        if self._client is None:
            self._client = _client(self.config)
        step = self.config.batch
        batches = [list(texts[i : i + step]) for i in range(0, len(texts), step)]
        with ThreadPoolExecutor(max_workers=self.config.parallel) as pool:
            return np.concatenate(list(pool.map(self._batch, batches)))

    def _batch(self, texts: list[str]) -> Vectors:
        from openai import APIConnectionError, APIStatusError, OpenAIError

        where = f"{self.config.base_url}/embeddings"
        try:
            reply = self._client.embeddings.create(
                model=self.config.model, input=texts, encoding_format="float"
            )
        except APIStatusError as error:
            raise EmbeddingError(
                f"{where} answered {error.status_code} for the model {self.config.model!r}{_hint(error.status_code, self.config)}"
            ) from None  # the cause holds the request, and with it the key
        except APIConnectionError as error:
            raise EmbeddingError(
                f"{where} cannot be reached ({type(error).__name__}, {self.config.retries + 1} attempts); is the server up, and "
                "scheduler.embedding.base_url right?"
            ) from None
        except OpenAIError as error:
            raise EmbeddingError(f"{where} gave no usable answer ({type(error).__name__})") from None
        rows: Sequence[Any] = sorted(reply.data or (), key=lambda item: item.index)
        vectors = np.asarray([item.embedding for item in rows], np.float32)
        if vectors.ndim != 2 or len(vectors) != len(texts) or not np.isfinite(vectors).all():
            raise EmbeddingError(
                f"{where} answered {len(texts)} texts with an array of shape {vectors.shape}; one finite vector per text is "
                "wanted. Does the server serve an embedding model?"
            )
        return cast("Vectors", vectors)


def _client(config: EndpointConfig) -> Any:
    """An openai client.

    Raises:
        ConfigError: the package or the key is missing.
    """
    try:
        from openai import OpenAI
    except ModuleNotFoundError as error:
        raise ConfigError(
            "scheduler.embedding.kind 'endpoint' needs the openai package; pip install 'snoozing-env[rollout]'"
        ) from error
    key = os.environ.get(config.key_env, "") if config.key_env else "none"
    if not key:
        raise ConfigError(
            f"scheduler.embedding.key_env: the environment variable {config.key_env} is not set; export it, or set "
            'key_env = "" for a server that wants no key'
        )
    return OpenAI(api_key=key, base_url=config.base_url, max_retries=config.retries, timeout=config.timeout_s)


def _hint(status: int, config: EndpointConfig) -> str:
    if status in (401, 403):
        return f"; the key in {config.key_env or 'scheduler.embedding.key_env'} was not accepted"
    if status == 404:
        return "; set scheduler.embedding.model and base_url to what the server lists under /v1/models"
    if status in (400, 413, 422):
        return f"; try a smaller scheduler.embedding.batch (now {config.batch}), or shorter task texts"
    return f", after {config.retries + 1} attempts"
