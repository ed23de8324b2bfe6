"""The embedded generator's figures: speed, the same items in every process, nothing shared by train and held-out sides."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from snooze_groundedqa.generator import LEVELS, Item, Side, items

SHINGLE = 5
"""Words in a row that two near-duplicates would share often."""


def generator(quick: bool) -> dict[str, Any]:
    """Must show 4; over 100,000 items, a quarter of them held out."""
    total = 6000 if quick else 100_000
    found: dict[str, Any] = {"items": total}
    for bare in (False, True):
        name = "bare" if bare else "facts"
        began = time.process_time()
        train = drawn("train", total * 3 // 4, bare)
        held_out = drawn("eval", total // 4, bare)
        found[f"{name}_items_per_s"] = round(total / (time.process_time() - began))
        found[f"{name}_reproducible"] = digest(train[:600]) == _elsewhere(600, bare)
        texts = [{_key(item, bare) for item in side} for side in (train, held_out)]
        found[f"{name}_shared_exactly"] = len(texts[0] & texts[1])
        if not bare:
            found["facts_nearest_jaccard"] = _nearest(train, held_out)
    return found


def drawn(side: Side, size: int, bare: bool) -> list[Item]:
    return list(items(side=side, size=size, levels=sorted(LEVELS), unanswerable_share=0.45, bare=bare))


def _key(item: Item, bare: bool) -> str:
    """Bare items are compared by their facts alone, in any order: another question about them counts as the same."""
    return ",".join(sorted(item.passage.split(","))) if bare else f"{item.passage}\n{item.question}"


def digest(drawn: Sequence[Item]) -> str:
    return hashlib.sha256("".join(f"{i.passage}|{i.question}|{i.answer}" for i in drawn).encode()).hexdigest()


def _elsewhere(size: int, bare: bool) -> str:
    """The digest of the same items in another process with another hash seed."""
    code = f"from tests.bench.groundedqa_items import digest, drawn; print(digest(drawn('train', {size}, {bare})))"
    env = {**os.environ, "PYTHONHASHSEED": "7", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, env=env, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def _nearest(train: Sequence[Item], held_out: Sequence[Item]) -> float:
    """The largest Jaccard similarity of a training and a held-out item, over sets of five-word shingles; exact.

    A pair more alike than the best so far shares at least that part of the training item's shingles, so it shares one of the
    rarest of them (prefix filter): the bare language ("it closed for repairs in march"), with owners by the thousand,
    is looked up only for pairs that may matter.
    """
    sets = [_shingles(item) for item in held_out]
    owners: dict[int, list[int]] = {}
    for place, found in enumerate(sets):
        for shingle in found:
            owners.setdefault(shingle, []).append(place)
    nearest = 0.0
    for item in train:
        found = _shingles(item)
        common = sorted((shingle for shingle in found if shingle in owners), key=lambda s: len(owners[s]))
        spare = len(common) - int(nearest * len(found))
        for place in {place for shingle in common[: max(spare, 0)] for place in owners[shingle]}:
            shared = len(found & sets[place])
            nearest = max(nearest, shared / (len(found) + len(sets[place]) - shared))
    return round(nearest, 4)


def _shingles(item: Item) -> set[int]:
    words = f"{item.passage} {item.question}".lower().split()
    return {hash(tuple(words[place : place + SHINGLE])) for place in range(len(words) - SHINGLE + 1)}
