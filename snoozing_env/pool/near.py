"""Near-duplicates: candidates from MinHash-LSH, every pair verified by its exact Jaccard similarity.

Common grams (in more than `common` texts) choose no candidates: what half the pool begins with would put half the pool into one
bucket. They do count in the similarity, which is over all grams and can be checked by hand, unless they are nearly all of a text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snoozing_env.errors import PoolError
from snoozing_env.pool.grams import Grams, jaccard
from snoozing_env.types import Bools

MISS = 0.005
"""Chance that a pair exactly at the threshold is in no bucket together; the bands follow from it."""
BANDS_AT_ONCE = 16
"""Bands held in memory at a time. 100,000 texts in 16 bands take some 700 MB of buckets; all 40 bands of threshold 0.5
would take nearly three times that, so they are built one sixteen after the other."""
RARE_SHARE = 0.25
"""A text with a smaller share of rare grams is one of a crowd: nearly all of it is boilerplate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two texts that are alike."""

    one: int
    other: int
    """Indices of texts, one < other."""
    similarity: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Bands:
    """How signatures are cut: `rows` hashes a band, `count` bands."""

    rows: int
    count: int

    @classmethod
    def at(cls, threshold: float) -> Bands:
        """The longest bands that miss at most MISS of the pairs at the threshold with at most 48 of them.

        A pair of similarity s shares a band with probability 1 − (1 − s^rows)^count (Leskovec et al., Mining of
        Massive Datasets, 3.4). At 0.5: 3 rows, 40 bands; at 0.8: 8 rows, 29 bands.
        """
        threshold = min(threshold, 0.99)  # datasketch wants at least two bands
        fitting = [
            cls(rows=rows, count=count)
            for rows in range(1, 9)
            if (count := math.ceil(math.log(MISS) / math.log1p(-(threshold**rows)))) <= 48
        ]
        return fitting[-1]


def near_pairs(
    unique: Grams,
    counts_S: NDArray[np.int64],
    *,
    threshold: float,
    common: int,
    seed: int = 1,
    progress: Callable[[float], None] = lambda share: None,
) -> list[Pair]:
    """Pairs of texts at least `threshold` alike, by `one` then `other`; `unique` and `counts_S` as from grams.py.

    Every verified pair is exact; a pair at the threshold is missed with probability MISS where its similarity is not
    owed to common grams. Where one of the two is nearly all common grams (a worked example before every question), both
    its similarity and that of the rare grams alone must reach the threshold, and the smaller one is reported.
    """
    rare_S = counts_S <= common
    crowd_N = _in_crowd(unique, rare_S)
    rare = _only(unique, rare_S)
    found: dict[tuple[int, int], float] = {}
    bands = Bands.at(threshold)
    rounds = [min(BANDS_AT_ONCE, bands.count - at) for at in range(0, bands.count, BANDS_AT_ONCE)]
    for number, count in enumerate(rounds):
        # Each sixteen has permutations of its own, so the bands stay independent.
        for one, other in _bucketed(rare, Bands(rows=bands.rows, count=count), seed + number):
            if (one, other) not in found:
                similarity = jaccard(unique.of(one), unique.of(other))
                if crowd_N[one] or crowd_N[other]:
                    similarity = min(similarity, jaccard(rare.of(one), rare.of(other)))
                found[one, other] = similarity
        progress((number + 1) / len(rounds))
    return [
        Pair(one=one, other=other, similarity=similarity)
        for (one, other), similarity in sorted(found.items())
        if similarity >= threshold
    ]


def components(count: int, links: Sequence[tuple[int, int]]) -> list[int]:
    """[N] the smallest index in each text's connected group: being alike is taken to be transitive."""
    parent = list(range(count))
    for one, other in links:
        low, high = sorted((_root(parent, one), _root(parent, other)))
        parent[high] = low
    return [_root(parent, place) for place in range(count)]


def _in_crowd(unique: Grams, rare_S: Bools) -> Bools:
    """[N] whether fewer than RARE_SHARE of a text's grams are rare."""
    texts = len(unique.offsets) - 1
    rare_N = np.bincount(unique.texts_S()[rare_S], minlength=texts)
    return rare_N < RARE_SHARE * np.diff(unique.offsets)


def _only(unique: Grams, keep_S: Bools) -> Grams:
    kept_before = np.zeros(len(keep_S) + 1, np.int64)
    np.cumsum(keep_S, out=kept_before[1:])
    return Grams(
        values_S=unique.values_S[keep_S],
        starts_S=unique.starts_S[keep_S],
        offsets=kept_before[unique.offsets],
    )


def _bucketed(rare: Grams, bands: Bands, seed: int) -> Iterator[tuple[int, int]]:
    try:
        import datasketch  # pyright: ignore[reportMissingTypeStubs]
    except ModuleNotFoundError as error:
        raise PoolError(
            "near-duplicates are found with datasketch: pip install 'snoozing-env[pool]'"
        ) from error

    untyped: Any = datasketch
    permutations = bands.rows * bands.count
    index = untyped.MinHashLSH(num_perm=permutations, params=(bands.count, bands.rows))
    # datasketch mixes and permutes 32-bit hashes with numpy, a text at a time; ours are hashes already.
    short_S = (rare.values_S >> np.uint64(32)).astype(np.uint32)
    values = (short_S[a:b].tolist() for a, b in pairwise(rare.offsets.tolist()))
    sketches = untyped.MinHash.generator(values, num_perm=permutations, seed=seed, hashfunc=int)
    for text, sketch in enumerate(sketches):
        if not sketch.is_empty():
            alike: list[int] = index.query(sketch)
            yield from ((other, text) for other in alike)
            index.insert(text, sketch, check_duplication=False)


def _root(parent: list[int], place: int) -> int:
    while parent[place] != place:
        parent[place] = parent[parent[place]]
        place = parent[place]
    return place
