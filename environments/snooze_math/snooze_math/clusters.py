"""Near-duplicates by their words: questions made from one template share a cluster, and a cluster takes one side.

MAWPS and SVAMP tell a few hundred stories with other numbers, names and a word more or less; a random split would
hold out questions whose twin is trained on. Links are transitive (union-find), so no pair of them is ever split.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter, defaultdict
from collections.abc import Sequence

NEAR = 0.8
"""Jaccard similarity of two questions' word sets from which they count as one."""
EVAL_SHARE = 5
"""One cluster in this many is held out."""


def words(question: str) -> frozenset[str]:
    """The distinct words, numbers and case ignored."""
    return frozenset(re.findall(r"[^\W\d_]+", question.lower()))


def held_out(cluster: str) -> bool:
    """Whether a cluster is on the held-out side; a property of its id alone."""
    return int(hashlib.sha256(f"side {cluster}".encode()).hexdigest(), 16) % EVAL_SHARE == 0


def exact_clusters(questions: Sequence[str]) -> list[str]:
    """An id per question from its words in order: one cluster for equal texts with other numbers."""
    return [_digest(" ".join(re.findall(r"[^\W\d_]+", question.lower()))) for question in questions]


def near_clusters(questions: Sequence[str], *more: Sequence[str]) -> list[str]:
    """An id per question, equal within each connected group of near-duplicates; independent of the order.

    `more` are further texts of the same rows (the story without its question); alike in any column is alike.
    """
    parent = list(range(len(questions)))
    for column in (questions, *more):
        for one, other in _near_pairs([words(text) for text in column]):
            parent[_root(parent, one)] = _root(parent, other)
    names: dict[int, str] = {}
    for place, name in enumerate(exact_clusters(questions)):
        root = _root(parent, place)
        names[root] = min(name, names.get(root, name))
    return [names[_root(parent, place)] for place in range(len(questions))]


def _near_pairs(bags: Sequence[frozenset[str]]) -> list[tuple[int, int]]:
    """Every pair at least NEAR alike. Two such sets share one of their rarest words (prefix filter), so few are compared."""
    counts = Counter(word for bag in bags for word in bag)
    seen: defaultdict[str, list[int]] = defaultdict(list)
    pairs = []
    for place, bag in enumerate(bags):
        rare = sorted(bag, key=lambda word: (counts[word], word))[: len(bag) - math.ceil(NEAR * len(bag)) + 1]
        for other in {other for word in rare for other in seen[word]}:
            shared = len(bag & bags[other])
            if shared >= NEAR * (len(bag) + len(bags[other]) - shared):
                pairs.append((other, place))
        for word in rare:
            seen[word].append(place)
    return pairs


def _root(parent: list[int], place: int) -> int:
    while parent[place] != place:
        parent[place] = parent[parent[place]]
        place = parent[place]
    return place


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
