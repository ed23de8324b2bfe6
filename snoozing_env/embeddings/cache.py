"""Vectors on disk by model and content: a folder per model, parts that are only ever added.

    <cache>/<model>-<digest>/vectors-<digest>.npy    [n, h] rows, written first
                             keys-<digest>.npy       [n, 2] 128-bit digests of the texts, written last

A part counts only once its keys are there, so a kill leaves the part out or in, never half of it.
"""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snoozing_env.embeddings.base import Embedder, EmbeddingOptions, Vectors
from snoozing_env.errors import EmbeddingError
from snoozing_env.files import write_atomically

Keys = NDArray[np.uint64]


class VectorCache:
    """One model's vectors. Rows are read through memory maps, so that 10^6 of them need not fit twice."""

    def __init__(self, folder: Path, dtype: str) -> None:
        self.folder = folder
        self._dtype = dtype
        self._row: dict[bytes, int] = {}
        """Digest of a text → its row, counted through all parts."""
        self._parts: list[Vectors] = []
        for keys_file in sorted(folder.glob("keys-*.npy")):
            vectors_file = folder / keys_file.name.replace("keys-", "vectors-")
            try:
                keys, vectors = np.load(keys_file), np.load(vectors_file, mmap_mode="r")
            except (OSError, ValueError) as error:
                raise EmbeddingError(
                    f"the cached vectors {vectors_file} cannot be read ({error}); delete {folder} to embed again"
                ) from error
            self._add(keys, vectors)

    @classmethod
    def open(cls, config: EmbeddingOptions, embedder: Embedder) -> VectorCache | None:
        """The cache that the config asks for; None where it asks for none."""
        if config.cache is None:
            return None
        name = f"{embedder.name} {config.dtype}"
        slug = re.sub(r"[^A-Za-z0-9]+", "-", name)[:40].strip("-")
        return cls(
            config.cache / f"{slug}-{hashlib.blake2b(name.encode(), digest_size=6).hexdigest()}", config.dtype
        )

    def __len__(self) -> int:
        return len(self._row)

    def through(self, embedder: Embedder, texts: Sequence[str]) -> Vectors:
        """[n, h] vectors of the texts; those not known yet are embedded and added."""
        keys = text_keys(texts)
        wanted = [key.tobytes() for key in keys]
        new = list({key: i for i, key in enumerate(wanted) if key not in self._row}.values())
        if new:
            self._write(keys[new], embedder.embed([texts[i] for i in new]).astype(self._dtype))
        row_n = np.array([self._row[key] for key in wanted])
        out = np.empty((len(texts), self._parts[0].shape[1]), self._dtype)
        first = 0
        for part in self._parts:
            here = (row_n >= first) & (row_n < first + len(part))
            out[here] = part[row_n[here] - first]
            first += len(part)
        return out

    def _write(self, keys: Keys, vectors: Vectors) -> None:
        name = hashlib.blake2b(keys.tobytes(), digest_size=8).hexdigest()
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            write_atomically(self.folder / f"vectors-{name}.npy", _npy(vectors))
            write_atomically(self.folder / f"keys-{name}.npy", _npy(keys))
        except OSError as error:
            raise EmbeddingError(
                f"cannot keep vectors in {self.folder}: {error.strerror or error}; free some space there, or point "
                "scheduler.embedding.cache elsewhere"
            ) from error
        self._add(keys, vectors)

    def _add(self, keys: Keys, vectors: Vectors) -> None:
        first = sum(len(part) for part in self._parts)
        self._parts.append(vectors)
        self._row |= {key.tobytes(): first + i for i, key in enumerate(keys)}


def text_keys(texts: Sequence[str]) -> Keys:
    """[n, 2] 128-bit digests."""
    digests = b"".join(hashlib.blake2b(text.encode(), digest_size=16).digest() for text in texts)
    return np.frombuffer(digests, np.uint64).reshape(-1, 2)


def _npy(array: NDArray[Any]) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()
