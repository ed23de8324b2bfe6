"""The generator for tiny policies: facts as characters, a reply of one value or "?".

    x1,y7,z9;y:         → 7       levels 1-3: two to four keys, values of one digit
    ax3,ay51,bx7;by:    → ?       levels 4-5: two-letter keys, so that both letters can stand there without the pair
    a=b,bx7,ax31;a=x:   → 7       level 6: "=" leads to another letter, whose x is asked

The side of an item is a hash of its facts in sorted order, so neither another order nor another question about the
same facts can be held out while one is trained on.
"""

from __future__ import annotations

import hashlib
import random
import string
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from snooze_groundedqa.generator.items import Item
from snooze_groundedqa.generator.names import Side

EVAL_EVERY = 5
"""One set of facts in this many is held out."""
LETTERS, ATTRIBUTES = string.ascii_lowercase[:12], "xyz"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What an item of a level looks like."""

    facts: int
    values: int
    """Values are below this."""
    paired: bool
    """Two-letter keys."""
    hop: bool = False


SHAPES: Mapping[int, Shape] = MappingProxyType(
    {
        1: Shape(facts=2, values=10, paired=False),
        2: Shape(facts=3, values=10, paired=False),
        3: Shape(facts=4, values=10, paired=False),
        4: Shape(facts=4, values=100, paired=True),
        5: Shape(facts=6, values=100, paired=True),
        6: Shape(facts=4, values=100, paired=True, hop=True),
    }
)


def side_of(passage: str) -> Side:
    """The side of a set of facts, whatever their order."""
    facts = ",".join(sorted(passage.split(",")))
    digest = hashlib.blake2b(facts.encode(), digest_size=8).digest()
    return "eval" if int.from_bytes(digest, "big") % EVAL_EVERY == 0 else "train"


def bare_item(number: int, *, level: int, side: Side, seed: int, answerable: bool) -> Item:
    """The item of this number on this side: the first of its draws that falls there."""
    rng = random.Random(f"bare/{seed}/{side}/{level}/{number}")
    while True:
        item = _draw(rng, level, answerable)
        if side_of(item.passage) == side:
            return item


def _draw(rng: random.Random, level: int, answerable: bool) -> Item:
    shape = SHAPES[level]
    if shape.hop:
        return _hop(rng, level, shape, answerable)
    key = f"{rng.choice(LETTERS)}{rng.choice(ATTRIBUTES)}" if shape.paired else rng.choice(LETTERS)
    facts = _facts(rng, key, shape, stated=answerable)
    kind = "answerable" if answerable else "entity swap" if shape.paired else "unknown entity"
    return _item(rng, facts, question=key, asked=key, level=level, kind=kind)


def _facts(rng: random.Random, key: str, shape: Shape, *, stated: bool) -> dict[str, str]:
    """`shape.facts` facts with or without `key`; where keys are pairs, both of its letters stand there anyway."""
    if not shape.paired:
        others = rng.sample([letter for letter in LETTERS if letter != key], shape.facts)
        keys = [key, *others[1:]] if stated else others
    else:
        pairs = [letter + attribute for letter in LETTERS for attribute in ATTRIBUTES]
        near = [
            rng.choice([pair for pair in pairs if pair[0] == key[0] and pair != key]),
            rng.choice([pair for pair in pairs if pair[1] == key[1] and pair != key]),
        ]
        rest = rng.sample([pair for pair in pairs if pair != key and pair not in near], shape.facts - 2)
        keys = [*near, key, *rest[1:]] if stated else near + rest
    return {name: str(rng.randrange(shape.values)) for name in keys}


def _hop(rng: random.Random, level: int, shape: Shape, answerable: bool) -> Item:
    start, end, other = rng.sample(LETTERS, 3)
    asked = rng.choice(ATTRIBUTES)
    left = [attribute for attribute in ATTRIBUTES if attribute != asked]
    keys = [end + asked if answerable else end + left[0], start + asked, other + left[1]][: shape.facts - 1]
    facts = {f"{start}=": end, **{name: str(rng.randrange(shape.values)) for name in keys}}
    kind = "answerable" if answerable else "missing relation"
    return _item(rng, facts, question=f"{start}={asked}", asked=end + asked, level=level, kind=kind)


def _item(
    rng: random.Random, facts: dict[str, str], *, question: str, asked: str, level: int, kind: str
) -> Item:
    order = list(facts)
    rng.shuffle(order)
    return Item(
        passage=",".join(name + facts[name] for name in order),
        question=question,
        answer=facts[asked] if kind == "answerable" else None,
        also=(),
        level=level,
        kind=kind,
        relation="lookup",
    )
