"""`hashed`: counts of words, word pairs and character n-grams, hashed into a few hundred signed buckets; no model.

Feature hashing (Weinberger et al., 2009): a second bit of each hash gives the sign, so that collisions cancel on
average. Hashes are polynomials over UTF-8 bytes with fixed constants: the same in every process, under every hash seed.
Many texts are hashed at once, as one byte array with a separator after each; no Python loop over n-grams.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from snoozing_env.embeddings.base import Embedder, EmbeddingOptions, Vectors

Bytes = NDArray[np.uint8]
Hashes = NDArray[np.uint64]

BASE = np.uint64(0x9E3779B97F4A7C15)
MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
"""Constants of splitmix64, whose finaliser spreads the low bits of a polynomial over all of them."""
SLAB = 512
"""Texts hashed at once; their temporaries stay around 10 MB."""
SPACE = 32


class HashedConfig(EmbeddingOptions):
    """Hashed n-grams of lower-cased text."""

    kind: Literal["hashed"] = "hashed"
    buckets: int = Field(default=256, ge=16)
    """Length of a vector."""
    words: int = Field(default=2, ge=0, le=3)
    """Longest run of words that counts; 0 = no words."""
    characters: tuple[int, int] = (0, 0)
    """Shortest and longest run of characters that counts, (3, 5) say; (0, 0) = none."""

    def embedder(self) -> Embedder:
        return HashedEmbedder(self)


class HashedEmbedder:
    def __init__(self, config: HashedConfig) -> None:
        self.config = config

    @property
    def name(self) -> str:
        c = self.config
        low, high = c.characters
        return f"hashed {c.buckets} buckets words {c.words} characters {low}-{high}"

    def embed(self, texts: Sequence[str]) -> Vectors:
        out = np.empty((len(texts), self.config.buckets), np.float32)
        for start in range(0, len(texts), SLAB):
            slab = texts[start : start + SLAB]
            out[start : start + SLAB] = self._slab(slab)
        return out

    def _slab(self, texts: Sequence[str]) -> Vectors:
        """[n, buckets] signed counts of n texts, damped: a word said ten times is not ten times as telling."""
        data, text_of = _bytes(texts)
        counts = np.zeros(len(texts) * self.config.buckets)
        for text, hashed in self._ngrams(data, text_of):
            mixed = _mix(hashed)
            bucket = text * self.config.buckets + (mixed % np.uint64(self.config.buckets)).astype(np.int64)
            sign = np.where(mixed >> np.uint64(63), 1.0, -1.0)
            counts += np.bincount(bucket, weights=sign, minlength=len(counts))
        counts = counts.reshape(len(texts), self.config.buckets)
        return (np.sign(counts) * np.sqrt(np.abs(counts))).astype(np.float32)

    def _ngrams(self, data: Bytes, text_of: NDArray[np.int64]) -> list[tuple[NDArray[np.int64], Hashes]]:
        """Per n-gram length: the text of each n-gram, and its hash."""
        found = _word_runs(data, text_of, self.config.words)
        low, high = self.config.characters
        for n in range(low, high + 1) if high else ():
            hashed = np.zeros(max(len(data) - n + 1, 0), np.uint64)
            for j in range(n):
                hashed = hashed * BASE + data[j : j + len(hashed)].astype(np.uint64) + np.uint64(1)
            inside = (
                text_of[: len(hashed)] == text_of[n - 1 :][: len(hashed)]
            )  # a run must not cross two texts
            found.append((text_of[: len(hashed)][inside], hashed[inside]))
        return found


def _bytes(texts: Sequence[str]) -> tuple[Bytes, NDArray[np.int64]]:
    """All texts as one lower-cased byte array, a space before and after each, and the text of each byte."""
    encoded = [f" {text.lower()} ".encode() for text in texts]
    data = np.frombuffer(b"".join(encoded), np.uint8)
    return data, np.repeat(np.arange(len(texts)), [len(e) for e in encoded])


def _word_runs(
    data: Bytes, text_of: NDArray[np.int64], longest: int
) -> list[tuple[NDArray[np.int64], Hashes]]:
    """Words are runs of letters, digits and bytes beyond ASCII; a run of words hashes to its words' polynomial."""
    letter = (data >= 128) | ((data >= 97) & (data <= 122)) | ((data >= 48) & (data <= 57))
    starts = np.flatnonzero(letter[1:] & ~letter[:-1]) + 1
    if not longest or not len(starts):
        return []
    ends = np.flatnonzero(~letter[1:] & letter[:-1]) + 1
    word, text = _span_hashes(data, starts, ends), text_of[starts]
    found = [(text, word)]
    run = word
    for n in range(2, longest + 1):
        run = run[:-1] * BASE + word[n - 1 :] + np.uint64(n)
        inside = text[: len(run)] == text[n - 1 :]
        found.append((text[: len(run)][inside], run[inside]))
    return found


def _span_hashes(data: Bytes, starts: NDArray[np.int64], ends: NDArray[np.int64]) -> Hashes:
    """[words] Σ (byte + 1) · BASE^position of each word, as differences of a running sum over the words' bytes."""
    length = ends - starts
    first = np.cumsum(length) - length
    place = np.arange(int(length.sum())) - np.repeat(first, length)
    powers = np.cumprod(np.full(int(length.max()), BASE, np.uint64))
    values = (data[np.repeat(starts, length) + place].astype(np.uint64) + np.uint64(1)) * powers[place]
    return np.add.reduceat(values, first)


def _mix(hashed: Hashes) -> Hashes:
    """splitmix64's finaliser."""
    hashed = (hashed ^ (hashed >> np.uint64(30))) * MIX[0]
    hashed = (hashed ^ (hashed >> np.uint64(27))) * MIX[1]
    return hashed ^ (hashed >> np.uint64(31))
