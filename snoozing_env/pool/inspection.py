"""The whole look at a pool: rows in, clusters, exclusions with evidence, and counts out."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from snoozing_env.errors import PoolError
from snoozing_env.pool.config import PoolConfig
from snoozing_env.pool.contamination import Overlap, OverlapRule, overlaps
from snoozing_env.pool.grams import Corpus, Grams, grams, read_corpus, text_counts
from snoozing_env.pool.lists import DUPLICATE, EXACT, NEAR, NEAR_DUPLICATE, NGRAM, PARENT, REASONS
from snoozing_env.pool.near import Pair, components, near_pairs
from snoozing_env.pool.neighbours import EmbedderFactory, Neighbour, neighbours
from snoozing_env.pool.rows import PoolRow
from snoozing_env.pool.text import longest_shared_run
from snoozing_env.types import Ints

Progress = Callable[[str, float], None]
"""Told the stage's name and how much of it is done, in [0, 1]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exclusion:
    """A training row that must not be trained on, and why."""

    row: PoolRow
    reason: str
    """One of `REASONS`, the strongest that applies."""
    evidence: tuple[Mapping[str, Any], ...]
    """The rows it collides with (provenance), the shared text, Jaccard similarity, n-grams."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """What was found."""

    rows: tuple[PoolRow, ...]
    cluster_N: tuple[str, ...]
    """[N] id of each row's cluster; equal within a group of (near-)duplicates, independent of the order of rows."""
    pairs: tuple[Pair, ...]
    """Near-duplicates among *distinct* texts, as indices of the first row with each."""
    overlaps: tuple[Overlap, ...]
    neighbours: tuple[Neighbour, ...]
    exclusions: tuple[Exclusion, ...]

    @property
    def cluster_sizes(self) -> Counter[str]:
        return Counter(self.cluster_N)


def inspect_pool(
    rows: Iterable[PoolRow],
    config: PoolConfig,
    *,
    embedder: EmbedderFactory | None = None,
    progress: Progress = lambda stage, share: None,
) -> Inspection:
    """Compare every row with every other. 100,000 prompts take a minute or two of CPU and about 1 GB.

    Raises:
        PoolError: a template is no regular expression, or the embedder is unknown.
    """
    return _Look(tuple(rows), config, embedder, progress).result()


class _Look:
    """One inspection in its steps; texts are the distinct ones, a text's row is the first that has it."""

    def __init__(
        self,
        rows: tuple[PoolRow, ...],
        config: PoolConfig,
        embedder: EmbedderFactory | None,
        progress: Progress,
    ) -> None:
        self.rows, self.config, self.embedder, self.progress = rows, config, embedder, progress
        self.rows_of: dict[str, list[int]] = {}
        for place, row in enumerate(rows):
            self.rows_of.setdefault(row.hash, []).append(place)
        self.copies = list(self.rows_of.values())
        """[U] the rows of each distinct text."""
        self.texts = [rows[places[0]].text for places in self.copies]
        sides = [{rows[place].side for place in places} for places in self.copies]
        self.items = np.array([i for i, side in enumerate(sides) if "evaluation" in side], np.int64)
        self.trained = np.array([i for i, side in enumerate(sides) if "train" in side], np.int64)

    def result(self) -> Inspection:
        self.progress("reading words", 0.0)
        corpus = read_corpus(self.texts)
        unique = grams(corpus, self.config.shingle).unique()
        pairs = self._near(corpus, unique)
        group_U = components(len(self.texts), [(p.one, p.other) for p in pairs])
        found = self._overlaps(corpus, np.array(group_U, np.int64))
        near_texts = self._neighbours()
        exclusions = tuple(self._exclusions(pairs, found, near_texts))
        first = [places[0] for places in self.copies]
        return Inspection(
            rows=self.rows,
            cluster_N=self._cluster_ids(group_U),
            pairs=tuple(Pair(one=first[p.one], other=first[p.other], similarity=p.similarity) for p in pairs),
            overlaps=tuple(found),
            neighbours=tuple(near_texts),
            exclusions=exclusions,
        )

    def _near(self, corpus: Corpus, unique: Grams) -> list[Pair]:
        counts_S = text_counts(unique, np.arange(len(corpus)))
        # A gram of one text in two hundred is what a genre says; two hundred bounds the pairs of a family in a small pool.
        common = max(200, len(corpus) // 200)
        return near_pairs(
            unique, counts_S, threshold=self.config.near, common=common, seed=self.config.seed,
            progress=lambda share: self.progress("near-duplicates", share),
        )  # fmt: skip

    def _overlaps(self, corpus: Corpus, group_U: Ints) -> list[Overlap]:
        if not len(self.items):
            return []
        self.progress("contamination", 0.0)
        rule = OverlapRule(
            n=self.config.ngram, coverage=self.config.coverage, ignore_numbers=self.config.ignore_numbers,
            common=self.config.common_texts(len(corpus)), templates=tuple(self.config.templates),
        )  # fmt: skip
        try:
            found = overlaps(corpus, self.texts, items=self.items, group_N=group_U, rule=rule)
        except re.error as error:
            raise PoolError(f"templates: {error.pattern!r} is no regular expression: {error}") from error
        self.progress("contamination", 1.0)
        return found

    def _neighbours(self) -> list[Neighbour]:
        if self.config.embedder == "off":
            return []
        if self.embedder is None:
            raise PoolError(
                f"embedder {self.config.embedder!r}: this caller brings no embedders; leave it off"
            )
        self.progress("embeddings", 0.0)
        both = np.intersect1d(self.items, self.trained)
        return neighbours(
            self.texts, items=np.setdiff1d(self.items, both), others=self.trained,
            embedder=self.embedder(self.config.embedder), least=self.config.cosine,
        )  # fmt: skip

    def _cluster_ids(self, group_U: Sequence[int]) -> tuple[str, ...]:
        hashes = [self.rows[places[0]].hash for places in self.copies]
        names: dict[int, str] = {}
        for text, group in enumerate(group_U):
            names[group] = min(hashes[text], names.get(group, hashes[text]))
        ids = [""] * len(self.rows)
        for text, places in enumerate(self.copies):
            for place in places:
                ids[place] = names[group_U[text]][:12]
        return tuple(ids)

    def _exclusions(
        self, pairs: Sequence[Pair], found: Sequence[Overlap], near_texts: Sequence[Neighbour]
    ) -> Iterator[Exclusion]:
        claims = self._claims(pairs, found)
        hints: defaultdict[int, list[Mapping[str, Any]]] = defaultdict(list)
        for neighbour in near_texts:
            hints[neighbour.text].append(self._evidence(neighbour.item, cosine=round(neighbour.cosine, 3)))
        excluded: set[str] = set()
        children: list[PoolRow] = []
        for text, places in enumerate(self.copies):
            mine = [self.rows[place] for place in places if self.rows[place].side == "train"]
            for number, row in enumerate(mine):
                reason, evidence = self._verdict(claims.get(text, []), copy_of=mine[0] if number else None)
                if reason:
                    excluded.add(row.key)
                    yield Exclusion(row=row, reason=reason, evidence=(*evidence, *hints.get(text, ())))
                elif row.parent:
                    children.append(row)
        for row in children:
            if row.parent in excluded:
                yield Exclusion(row=row, reason=PARENT, evidence=({"parent": row.parent},))

    @staticmethod
    def _verdict(
        claims: Sequence[tuple[str, Mapping[str, Any]]], *, copy_of: PoolRow | None
    ) -> tuple[str, list[Mapping[str, Any]]]:
        if claims:
            strongest = min(claims, key=lambda claim: _RANK[claim[0]])[0]
            if _RANK[strongest] < _RANK[DUPLICATE]:
                return strongest, [evidence for _, evidence in claims]
        if copy_of is not None:
            return DUPLICATE, [{**copy_of.provenance, "jaccard": 1.0}]
        return (claims[0][0], [evidence for _, evidence in claims]) if claims else ("", [])

    def _claims(
        self, pairs: Sequence[Pair], found: Sequence[Overlap]
    ) -> dict[int, list[tuple[str, Mapping[str, Any]]]]:
        """What speaks against each training text."""
        claims: defaultdict[int, list[tuple[str, Mapping[str, Any]]]] = defaultdict(list)
        items, trained = set(self.items.tolist()), set(self.trained.tolist())
        for text in items & trained:
            claims[text].append((EXACT, self._evidence(text, jaccard=1.0)))
        for pair in pairs:
            for text, other in ((pair.one, pair.other), (pair.other, pair.one)):
                if text in trained and other in items:
                    claims[text].append((NEAR, self._evidence(other, **self._alike(pair))))
                elif self.config.drop_near and text in trained and other < text:
                    kept = self.rows[self.copies[other][0]].provenance
                    claims[text].append((NEAR_DUPLICATE, {**kept, **self._alike(pair)}))
        for overlap in found:
            if overlap.text in trained:
                claims[overlap.text].append(
                    (NGRAM, self._evidence(overlap.item, **_overlap_fields(overlap, self.config.ngram)))
                )
        return claims

    def _evidence(self, item: int, **fields: Any) -> dict[str, Any]:
        """Provenance of the evaluation row a text collides with."""
        place = next(p for p in self.copies[item] if self.rows[p].side == "evaluation")
        return {**self.rows[place].provenance, **fields}

    def _alike(self, pair: Pair) -> dict[str, Any]:
        shared = longest_shared_run(self.texts[pair.one], self.texts[pair.other])
        return {"jaccard": round(pair.similarity, 4), "shared": shared}


_RANK = {reason: rank for rank, reason in enumerate(REASONS)}


def _overlap_fields(overlap: Overlap, n: int) -> dict[str, Any]:
    return {
        "coverage": round(overlap.coverage, 3), "n": n, "ngrams": overlap.grams, "shared": overlap.shared,
        "numbers_changed": overlap.numbers_changed,
    }  # fmt: skip
