"""Where problems come from: an operation and a made-up word, drawn by a seed."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

LETTERS = "abcdefgh"
LENGTHS = (2, 8)
"""Shortest and longest word."""
OPERATIONS: Mapping[str, Callable[[str], str]] = MappingProxyType(
    {
        "first": lambda word: word[0],
        "reverse": lambda word: word[::-1],
        "sort": lambda word: "".join(sorted(word)),
    }
)
HELD_OUT = 5
"""One word in this many is held out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One operation on one word."""

    operation: str
    word: str

    @property
    def text(self) -> str:
        return f"{self.operation} {self.word}"

    @property
    def answer(self) -> str:
        return OPERATIONS[self.operation](self.word)


def problems(*, train: bool, size: int, lengths: Sequence[int], seed: int) -> list[Problem]:
    """`size` different problems of one side, the same ones in every process.

    Raises:
        ValueError: words of these lengths do not make that many problems.
    """
    rng = random.Random(f"{seed}/{train}")  # a seed of text hashes with sha512: stable across processes
    made: dict[str, Problem] = {}
    for _ in range(100 * size):
        word = "".join(rng.choices(LETTERS, k=rng.choice(lengths)))
        problem = Problem(operation=rng.choice(list(OPERATIONS)), word=word)
        if held_out(word) != train:
            made[problem.text] = problem
        if len(made) == size:
            return list(made.values())
    side = "train" if train else "held-out"
    raise ValueError(
        f"lengths {list(lengths)} have about {len(made)} {side} problems, {size} were asked for; "
        "lower `size` or add longer words"
    )


def held_out(word: str) -> bool:
    """Which side a word is on: a property of the word alone, so no seed or size moves it across."""
    return int(hashlib.sha256(word.encode()).hexdigest(), 16) % HELD_OUT == 0
