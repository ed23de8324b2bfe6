"""How much of the generator's answerability shows without reading: from the question alone, and from string overlap.

Both adversaries learn: a logistic regression over the question's words and word pairs, and one over seven overlap
features with all their products, besides the best threshold on each single feature.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from snooze_groundedqa.generator import LEVELS, Item, items

from snoozing_env.types import Floats

STOP = " the a an of in is was did does do what which who whom whose when where how many much by for to and that with at it "
_NAME = re.compile(r"[A-Z]\w+(?: [A-Z]\w+)+")


def even(count: int) -> list[Item]:
    """`count` items of all levels, half of them without an answer."""
    return list(items(side="train", size=count, levels=sorted(LEVELS), unanswerable_share=0.5, seed=11))


def leaks(drawn: Sequence[Item]) -> dict[str, Any]:
    """Accuracies of both adversaries on the half of the items that they were not fitted to."""
    rng = np.random.default_rng(0)
    drawn = [drawn[i] for i in rng.permutation(len(drawn))]
    label = np.array([item.answer is not None for item in drawn], dtype=float)
    half = len(drawn) // 2
    overlap = np.array([_overlap(item) for item in drawn])
    singles = [_threshold(overlap[:, column], label, half) for column in range(overlap.shape[1])]
    by_level = {
        f"level {level}": _logistic(_products(overlap[rows]), label[rows])
        for level in sorted(LEVELS)
        if (rows := np.array([item.level == level for item in drawn])).any()
    }
    return {
        "question_only_accuracy": _logistic(_question_words(drawn, half), label),
        "overlap_best_single_accuracy": max(singles),
        "overlap_learned_accuracy": _logistic(_products(overlap), label),
        "overlap_learned_by_level": by_level,
        "items": len(drawn),
    }


def _overlap(item: Item) -> list[float]:
    """Coverage of the question by the passage and by its best two sentences, their gap, word pairs, its name, length."""
    asked = {word for word in _words(item.question) if f" {word} " not in STOP}
    passage = _words(item.passage)
    sentences = [set(_words(sentence)) for sentence in re.split(r"(?<=\.)\s", item.passage)]
    best = sorted((len(asked & sentence) / len(asked) for sentence in sentences), reverse=True)
    question = _words(item.question)
    pairs = set(pairwise(question))
    shared = len(pairs & set(pairwise(passage))) / len(pairs)
    name = _NAME.search(item.question[1:])
    named = float(name is not None and name[0] in item.passage)
    covered = len(asked & set(passage)) / len(asked)
    return [covered, best[0], best[1], best[0] - best[1], shared, named, len(passage) / 100]


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def _question_words(drawn: Sequence[Item], half: int) -> Floats:
    """[M, V] which words and word pairs a question has, of those seen five times in the first half."""
    bags = []
    for item in drawn:
        words = _words(item.question)
        bags.append({*words, *map(" ".join, pairwise(words))})
    seen: dict[str, int] = {}
    for bag in bags[:half]:
        for feature in bag:
            seen[feature] = seen.get(feature, 0) + 1
    index = {feature: place for place, feature in enumerate(f for f, n in sorted(seen.items()) if n >= 5)}
    table = np.zeros((len(bags), len(index)), dtype=np.float32)
    for row, bag in enumerate(bags):
        table[row, [index[feature] for feature in bag if feature in index]] = 1.0
    return table


def _products(features: Floats) -> Floats:
    """Standardised features and all their pairwise products."""
    scaled = (features - features.mean(0)) / (features.std(0) + 1e-9)
    pairs = [scaled[:, i] * scaled[:, j] for i in range(scaled.shape[1]) for j in range(i + 1)]
    return np.column_stack([scaled, *pairs])


def _threshold(feature: Floats, label: Floats, half: int) -> float:
    """Accuracy on the second half of the cut that is best on the first."""
    cuts = np.unique(feature[:half])
    right = [((feature[:half] >= cut) == label[:half]).mean() for cut in cuts]
    best, flip = cuts[int(np.argmax(np.abs(np.array(right) - 0.5)))], max(right) < 1 - min(right)
    return float((((feature[half:] >= best) ^ flip) == label[half:]).mean())


def _logistic(features: Floats, label: Floats, *, steps: int = 400, decay: float = 1e-3) -> float:
    """Accuracy on the second half of a logistic regression fitted to the first by gradient descent with momentum."""
    half = len(label) // 2
    train = np.column_stack([features, np.ones(len(label))])
    weights = np.zeros(train.shape[1])
    speed = np.zeros_like(weights)
    rate = 4.0 / (np.square(train[:half]).sum(1).mean() / 4 + 1)
    for _ in range(steps):
        chance = 1 / (1 + np.exp(-np.clip(train[:half] @ weights, -30, 30)))
        slope = train[:half].T @ (chance - label[:half]) / half + decay * weights
        speed = 0.9 * speed - 0.1 * rate * slope
        weights = weights + speed
    return float(((train[half:] @ weights > 0) == label[half:]).mean())
