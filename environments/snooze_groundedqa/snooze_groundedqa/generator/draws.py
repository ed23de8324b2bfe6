"""Seeded draws of names and values that never repeat within one item."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from snooze_groundedqa.generator.names import MONTHS, Names
from snooze_groundedqa.generator.relations import Kind

T = TypeVar("T")


class Draws:
    """The source of one item. Indexing by `random()` is several times faster than `choice`, and as uniform here."""

    def __init__(self, rng: random.Random, names: Names) -> None:
        self.random = rng.random
        self.names = names
        self.used: set[str] = set()
        self._draw: Mapping[Kind, Callable[[], str]] = {
            "person": self.person,
            "year": lambda: str(1801 + int(self.random() * 199)),
            "place": lambda: self.pick(self.names.places),
            "count": lambda: str(11 + int(self.random() * 970)),
            "money": lambda: f"{1 + int(self.random() * 98)},{int(self.random() * 10)}00",
            "month": lambda: self.pick(MONTHS),
            "body": self._any_body,
        }

    def pick(self, choices: Sequence[T]) -> T:
        return choices[int(self.random() * len(choices))]

    def sample(self, choices: Sequence[T], count: int) -> list[T]:
        """`count` distinct ones in random order."""
        pool = list(choices)
        for place in range(count):
            other = place + int(self.random() * (len(pool) - place))
            pool[place], pool[other] = pool[other], pool[place]
        return pool[:count]

    def value(self, kind: Kind) -> str:
        """A value of this kind that the item has not used."""
        draw = self._draw[kind]
        while (text := draw()) in self.used:
            pass
        self.used.add(text)
        return text

    def body(self) -> str:
        return self.value("body")

    def bodies(self, count: int) -> list[str]:
        """Distinct bodies; the second shares its first word with the first, the last its kind: near misses in name."""
        mark, kind = self.pick(self.names.marks), self.pick(self.names.kinds)
        made = [f"the {mark} {kind}"]
        self.used.add(made[0])
        for place in range(1, count):
            while True:
                name = (
                    f"the {mark} {self.pick(self.names.kinds)}"
                    if place == 1
                    else f"the {self.pick(self.names.marks)} {kind}"
                    if place == count - 1
                    else self._any_body()
                )
                if name not in self.used:
                    break
            self.used.add(name)
            made.append(name)
        return made

    def person(self) -> str:
        return f"{self.pick(self.names.given)} {self.pick(self.names.family)}"

    def _any_body(self) -> str:
        return f"the {self.pick(self.names.marks)} {self.pick(self.names.kinds)}"
