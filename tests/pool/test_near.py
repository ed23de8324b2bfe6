"""Laws of near-duplicates and clusters."""

from __future__ import annotations

import random

import numpy as np
import pytest

from snoozing_env.pool.grams import grams, jaccard, read_corpus, text_counts
from snoozing_env.pool.near import MISS, Bands, components, near_pairs

WORDS = [f"{a}{b}" for a in "bcdfghklmnprst" for b in ("a", "en", "i", "or", "u")]


def stories(count: int, seed: int) -> list[str]:
    """Texts in families: each a base story with some of its words replaced."""
    rng = random.Random(seed)
    made = []
    for _ in range(count // 4):
        base = [rng.choice(WORDS) for _ in range(rng.randint(6, 30))]
        for rate in (0.0, 0.05, 0.15, 0.3):
            made.append(" ".join(rng.choice(WORDS) if rng.random() < rate else word for word in base))
    return made


def brute_force(texts: list[str], threshold: float) -> set[tuple[int, int]]:
    unique = grams(read_corpus(texts), 3).unique()
    return {
        (i, j)
        for j in range(len(texts))
        for i in range(j)
        if jaccard(unique.of(i), unique.of(j)) >= threshold
    }


def pairs(texts: list[str], threshold: float, common: int = 1000) -> dict[tuple[int, int], float]:
    unique = grams(read_corpus(texts), 3).unique()
    counts = text_counts(unique, np.arange(len(texts)))
    return {
        (p.one, p.other): p.similarity for p in near_pairs(unique, counts, threshold=threshold, common=common)
    }


@pytest.mark.parametrize("threshold", [0.5, 0.8])
def test_what_is_found_is_what_comparing_all_pairs_finds(threshold: float) -> None:
    texts = stories(240, seed=4)
    expected, found = brute_force(texts, threshold), pairs(texts, threshold)
    assert set(found) <= expected, "a reported pair is below the threshold"
    assert len(expected) > 50
    assert len(set(found)) >= (1 - 4 * MISS) * len(expected)


@pytest.mark.parametrize("threshold", [0.4, 0.5, 0.6, 0.8, 0.95])
def test_bands_miss_at_most_what_they_promise_at_the_threshold(threshold: float) -> None:
    bands = Bands.at(threshold)
    assert (1 - threshold**bands.rows) ** bands.count <= MISS
    assert bands.count <= 48


def test_what_many_texts_begin_with_makes_none_of_them_alike() -> None:
    example = " ".join(f"w{'abcdefghijklmnop'[n % 16]}{'qrstu'[n % 5]}" for n in range(30))
    own = stories(80, seed=2)
    with_example = set(pairs([f"{example} {text}" for text in own], 0.5, common=20))
    assert with_example
    assert all(one // 4 == other // 4 for one, other in with_example), "stories of two families are alike"


def test_being_alike_is_transitive_and_groups_are_named_by_their_first() -> None:
    assert components(6, [(1, 2), (4, 2), (0, 5)]) == [0, 1, 1, 3, 1, 0]


def test_clusters_do_not_depend_on_the_order_of_rows(inspect) -> None:
    texts = stories(60, seed=9)
    order = list(range(len(texts)))
    random.Random(1).shuffle(order)
    straight = inspect(texts).cluster_N
    shuffled = inspect([texts[i] for i in order]).cluster_N
    assert [straight[i] for i in order] == list(shuffled)
    assert max(map(straight.count, straight)) > 1


def test_the_known_near_duplicates_of_gsm8k_are_found(inspect, questions) -> None:
    train, test = questions("gsm8k_train"), questions("gsm8k_test")
    found = inspect(train, test)
    crossing = {(p.one, p.other - len(train)) for p in found.pairs if p.one < len(train) <= p.other}
    assert crossing == {(20, 632), (1314, 602), (5162, 602)}
    assert {e.row.row for e in found.exclusions} == {20, 1314, 5162}
    assert all(p.similarity >= 0.5 for p in found.pairs)
