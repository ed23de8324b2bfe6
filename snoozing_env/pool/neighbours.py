"""Embedding neighbours: texts that say the same in other words. A hint to look at, never a reason to exclude by itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from snoozing_env.errors import PoolError
from snoozing_env.types import Ints

BLOCK = 1024
"""Evaluation items compared at a time: 1024 × 100,000 similarities are 400 MB."""


class Embedder(Protocol):
    """Anything that turns texts into vectors."""

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """[N, D] one vector per text; they need not have unit length."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour:
    """The training text nearest to an evaluation item."""

    item: int
    text: int
    """Indices of texts."""
    cosine: float


def neighbours(
    texts: Sequence[str], *, items: Ints, others: Ints, embedder: Embedder, least: float
) -> list[Neighbour]:
    """The nearest of `others` for each of `items` at a cosine of at least `least`, nearest first.

    Raises:
        PoolError: the embedder's vectors do not fit the texts.
    """
    if not len(items) or not len(others):
        return []
    unit = _unit(
        embedder.embed([texts[int(i)] for i in np.concatenate([items, others]).tolist()]),
        len(items) + len(others),
    )
    mine, theirs = unit[: len(items)], unit[len(items) :]
    found: list[Neighbour] = []
    for start in range(0, len(items), BLOCK):
        similar = mine[start : start + BLOCK] @ theirs.T
        nearest = similar.argmax(axis=1)
        for row, best in enumerate(nearest.tolist()):
            if (cosine := float(similar[row, best])) >= least:
                found.append(Neighbour(item=int(items[start + row]), text=int(others[best]), cosine=cosine))
    return sorted(found, key=lambda n: (-n.cosine, n.item))


def _unit(vectors: NDArray[np.floating[Any]], count: int) -> NDArray[np.float32]:
    vectors = np.asarray(vectors, np.float32)
    if vectors.ndim != 2 or len(vectors) != count or not np.isfinite(vectors).all():
        raise PoolError(
            f"the embedder gave an array of shape {vectors.shape} for {count} texts; wanted [{count}, D] finite numbers"
        )
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


EmbedderFactory = Callable[[str], Embedder]
"""Makes the embedder of a name."""
