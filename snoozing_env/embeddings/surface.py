"""What a text looks like rather than what it says: length and counts, which sentence models leave out.

On GSM8K's questions these few numbers tell more of the difficulty than MiniLM's 384 (tests/bench/bench_dots.py).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from snoozing_env.embeddings.base import Vectors

SLAB = 4096
NAMES = ("characters", "words", "numbers", "sentences", "symbols")


def surface_rows(texts: Sequence[str]) -> Vectors:
    """[N, 5] log(1 + count) per text, each column at mean 0 and standard deviation 1 over the texts."""
    rows = np.empty((len(texts), len(NAMES)), np.float32)
    for start in range(0, len(texts), SLAB):
        rows[start : start + SLAB] = np.log1p(_counts(texts[start : start + SLAB]))
    spread = rows.std(axis=0)
    return (rows - rows.mean(axis=0)) / np.where(spread > 1e-6, spread, np.float32(1))


def _counts(texts: Sequence[str]) -> Vectors:
    """[n, 5] counts by first characters of words, numbers and runs of marks; bytes, so that no loop is over characters."""
    encoded = [f" {text} ".encode() for text in texts]
    data = np.frombuffer(b"".join(encoded), np.uint8)
    length = np.array([len(e) for e in encoded])
    starts = np.cumsum(length) - length
    digit = (data >= 48) & (data <= 57)
    word = digit | (data >= 128) | ((data | 32) >= 97) & ((data | 32) <= 122)
    mark = (data == ord(".")) | (data == ord("?")) | (data == ord("!"))
    symbol = ~word & ~mark & (data > 32) & (data != ord(","))

    def begin(kind: np.ndarray) -> np.ndarray:
        return kind & ~np.concatenate([[False], kind[:-1]])

    columns = [begin(word), begin(digit), begin(mark), symbol]
    sums = [np.add.reduceat(column.astype(np.float32), starts) for column in columns]
    return np.stack([length - 2, *sums], axis=1).astype(np.float32)
