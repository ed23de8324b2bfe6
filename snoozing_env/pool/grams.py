"""Hashed word n-grams of many texts at once, as flat arrays.

Axes: N texts · W words of all texts · S grams of all texts. `offsets` is [N+1]: text i owns the slice
offsets[i]:offsets[i+1]. A text of fewer than n words is one gram of all its words.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from snoozing_env.pool.text import NUMBER, words
from snoozing_env.types import Bools, Ints

Hashes = NDArray[np.uint64]

_BASE = np.uint64(0x9E3779B97F4A7C15)
_NUMBER_HASH = 0x5BD1E995A7C15ED3
"""What every number hashes to where numbers are masked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """Texts as hashed words."""

    words_W: Hashes
    is_number_W: Bools
    offsets: Ints
    """[N+1]"""

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths_N(self) -> Ints:
        """[N] words per text."""
        return np.diff(self.offsets)

    def masked_W(self) -> Hashes:
        """[W] the words with every number replaced by one and the same."""
        return np.where(self.is_number_W, np.uint64(_NUMBER_HASH), self.words_W)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grams:
    """The n-grams of every text, in order of place, repeats included."""

    values_S: Hashes
    starts_S: Ints
    """[S] place of the gram's first word in the text."""
    offsets: Ints
    """[N+1]"""

    def texts_S(self) -> Ints:
        """[S] the text each gram belongs to."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))

    def of(self, text: int) -> Hashes:
        return self.values_S[self.offsets[text] : self.offsets[text + 1]]

    def unique(self) -> Grams:
        """Each gram once per text, sorted by value (so that two texts intersect in linear time)."""
        texts_S = self.texts_S()
        order = np.lexsort((self.values_S, texts_S))
        values, owners = self.values_S[order], texts_S[order]
        keep = np.ones(len(order), np.bool_)
        keep[1:] = (values[1:] != values[:-1]) | (owners[1:] != owners[:-1])
        offsets = np.zeros(len(self.offsets), np.int64)
        np.cumsum(np.bincount(owners[keep], minlength=len(self.offsets) - 1), out=offsets[1:])
        return Grams(values_S=values[keep], starts_S=self.starts_S[order][keep], offsets=offsets)


def read_corpus(texts: Iterable[str]) -> Corpus:
    """Hash the words of every text; the hash of a word depends on nothing but the word."""
    seen = _Vocabulary()
    flat: list[int] = []
    offsets = [0]
    for text in texts:
        flat += [seen[word] for word in words(text)]
        offsets.append(len(flat))
    words_W = np.array(flat, np.uint64)
    numbers = np.fromiter((h for word, h in seen.items() if NUMBER.fullmatch(word)), np.uint64)
    return Corpus(words_W=words_W, is_number_W=np.isin(words_W, numbers), offsets=np.array(offsets, np.int64))


def grams(corpus: Corpus, n: int, *, mask_numbers: bool = False, least: int = 1) -> Grams:
    """Every n-gram of every text, in place order. Texts shorter than `least` words (and empty ones) have none.

    Memory is 24 bytes a word; time is n vector operations.
    """
    flat_W = corpus.masked_W() if mask_numbers else corpus.words_W
    lengths_N = corpus.lengths_N
    counts_N = np.where(lengths_N < max(1, least), 0, np.maximum(1, lengths_N - n + 1))
    offsets = np.zeros(len(counts_N) + 1, np.int64)
    np.cumsum(counts_N, out=offsets[1:])
    texts_S = np.repeat(np.arange(len(corpus)), counts_N)
    starts_S = np.arange(int(offsets[-1])) - offsets[texts_S]
    at_S, length_S = corpus.offsets[texts_S] + starts_S, np.minimum(lengths_N[texts_S], n)
    values_S = length_S.astype(np.uint64)
    for place in range(n):
        inside = place < length_S
        values_S[inside] = _mix(values_S[inside] * _BASE + flat_W[at_S[inside] + place])
    return Grams(values_S=values_S, starts_S=starts_S, offsets=offsets)


def jaccard(one: Hashes, other: Hashes) -> float:
    """|A ∩ B| / |A ∪ B| of two arrays of distinct values; 0 for two empty ones."""
    shared = np.intersect1d(one, other, assume_unique=True).size
    union = one.size + other.size - shared
    return shared / union if union else 0.0


def text_counts(unique: Grams, group_N: Sequence[int] | Ints) -> NDArray[np.int64]:
    """[S] in how many *groups* of texts each gram occurs: a hundred copies of one item are one witness, not a hundred."""
    group_S = np.asarray(group_N, np.int64)[unique.texts_S()]
    ids_S = np.unique(unique.values_S, return_inverse=True)[1]
    pairs = np.unique(ids_S.astype(np.int64) * (int(group_S.max(initial=0)) + 1) + group_S)
    counts = np.bincount(pairs // (int(group_S.max(initial=0)) + 1), minlength=int(ids_S.max(initial=-1)) + 1)
    return counts[ids_S]


def _mix(values: Hashes) -> Hashes:
    """The finalizer of MurmurHash3: a bijection that spreads every bit."""
    values ^= values >> np.uint64(33)
    values *= np.uint64(0xFF51AFD7ED558CCD)
    values ^= values >> np.uint64(33)
    values *= np.uint64(0xC4CEB9FE1A85EC53)
    values ^= values >> np.uint64(33)
    return values


class _Vocabulary(dict[str, int]):
    def __missing__(self, word: str) -> int:
        digest = hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        self[word] = int.from_bytes(digest, "little")
        return self[word]
