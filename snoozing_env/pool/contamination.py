"""Evaluation items that a training text contains: shared n-grams of words, weighed by what is left without boilerplate.

One shared 13-gram is the usual rule (GPT-3, appendix C) and it flags contest boilerplate. Here an evaluation item is contaminated by
a training text when the n-grams they share cover at least `coverage` of the item's *own* words: those under no template
(templates.py) and in no n-gram that `common` or more unrelated texts have.
Copies count as one text there, or an item repeated a hundred times in training would look like boilerplate.

N-grams are compared twice: as they stand, and with every number the same, for copies with other numbers; there numbers
and signs are no own words. Where 0.6 comes from: 26 contest items that share boilerplate only reach 0.29 (0.69 with no
templates), 12 copies in other dress 0.82 to 1.0; no MATH-500 item reaches 0.6 against GSM8K; GSM8K test against its training set
reaches it for three items, all real; and with one word in fifty of a copy replaced 95 % of copies still do, one in twenty 73 %.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from snoozing_env.pool.grams import Corpus, Grams, grams
from snoozing_env.pool.templates import TemplateMask
from snoozing_env.pool.text import words
from snoozing_env.types import Bools, Ints

LEAST_WORDS = 8
"""Shorter items are compared as wholes (exact and near duplicates) only: eight common words meet by chance."""
LEAST_OWN = 8
"""Own words the shared n-grams must cover at least, so that an item that is nearly all boilerplate is not flagged for one name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """An evaluation item and a training text that share more than boilerplate."""

    item: int
    """Index of the evaluation item."""
    text: int
    """Index of the training text."""
    coverage: float
    """Share of the item's own words that lie in shared n-grams."""
    grams: int
    """Shared n-grams."""
    shared: str
    """The longest shared run of words, as the item spells them."""
    numbers_changed: bool
    """True where the n-grams are shared only once numbers are ignored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OverlapRule:
    """When an overlap is contamination."""

    n: int = 13
    coverage: float = 0.6
    common: int = 10
    """Unrelated texts that may share an n-gram before it counts as boilerplate."""
    ignore_numbers: bool = True
    templates: tuple[str, ...] = ()


def overlaps(
    corpus: Corpus, texts: Sequence[str], *, items: Ints, group_N: Ints, rule: OverlapRule
) -> list[Overlap]:
    """Every contaminated pair of an evaluation item (an index in `items`) and another text, best coverage first per item.

    corpus: the words of all `texts`. group_N: [N] equal for texts that are copies or near-copies of each other.
    """
    search = _Search(corpus=corpus, texts=texts, items=items, group_N=group_N, rule=rule)
    found: dict[tuple[int, int], Overlap] = {}
    lengths = corpus.lengths_N[items]
    for n in range(LEAST_WORDS, rule.n + 1):
        own = items[lengths == n] if n < rule.n else items[lengths >= n]
        for masked in (False, True) if rule.ignore_numbers and n == rule.n else (False,):
            for overlap in search.at(own, n, masked=masked) if len(own) else ():
                known = found.get((overlap.item, overlap.text))
                if known is None or overlap.coverage > known.coverage:
                    found[overlap.item, overlap.text] = overlap
    return sorted(found.values(), key=lambda o: (o.item, -o.coverage, o.text))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Search:
    """What one search keeps the same for every n."""

    corpus: Corpus
    texts: Sequence[str]
    items: Ints
    group_N: Ints
    rule: OverlapRule

    def at(self, own: Ints, n: int, *, masked: bool) -> Iterator[Overlap]:
        """Contaminated pairs of the items `own` by shared n-grams, numbers ignored if `masked`."""
        found = grams(self.corpus, n, mask_numbers=masked, least=n)
        shared = _Shared.of(found, own=own, items=self.items, group_N=self.group_N, common=self.rule.common)
        masker = TemplateMask(self.rule.templates)
        for item, starts_by_text, common_starts in shared.by_item():
            spelled = words(self.texts[item])
            boilerplate = masker(spelled) | _covered(common_starts, n, len(spelled))
            if masked:
                boilerplate |= np.array([not word[0].isalpha() for word in spelled])
            total = int((~boilerplate).sum())
            for text, starts in starts_by_text.items():
                covered = _covered(starts, n, len(spelled))
                own_words = int((covered & ~boilerplate).sum())
                if own_words >= max(min(LEAST_OWN, len(spelled)), self.rule.coverage * total):
                    yield Overlap(
                        item=item, text=text, coverage=own_words / total, grams=len(starts),
                        shared=" ".join(_longest_run(covered, spelled)), numbers_changed=masked,
                    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shared:
    """Grams of evaluation items that occur in some other text, joined with those texts."""

    item_P: Ints
    """[P] an evaluation item per shared place"""
    start_P: Ints
    text_P: Ints
    """[P] the text that has the gram, −1 where only the count matters"""
    usual_P: Bools
    """[P] whether the gram is boilerplate; such a place stands once, not once per text"""

    @classmethod
    def of(cls, found: Grams, *, own: Ints, items: Ints, group_N: Ints, common: int) -> _Shared:
        texts_S = found.texts_S()
        mine_S = np.isin(texts_S, own)
        wanted = np.unique(found.values_S[mine_S])
        at_S = np.searchsorted(wanted, found.values_S)
        hit_S = at_S < len(wanted)
        hit_S[hit_S] = wanted[at_S[hit_S]] == found.values_S[hit_S]
        # Only grams of items matter from here on: a thousandth of a large pool.
        ids, owners, starts = at_S[hit_S], texts_S[hit_S], found.starts_S[hit_S]
        usual_W = _group_counts(ids, group_N[owners], len(wanted)) > common
        train = ~np.isin(owners, items)
        order = np.argsort(ids[train], kind="stable")
        train_ids, train_texts = ids[train][order], owners[train][order]
        asked = np.isin(owners, own)
        low = np.searchsorted(train_ids, ids[asked], side="left")
        many = np.searchsorted(train_ids, ids[asked], side="right") - low
        many = np.where(usual_W[ids[asked]], np.minimum(many, 1), many)
        repeat = np.repeat(np.arange(len(many)), many)
        within = np.arange(len(repeat)) - np.repeat(np.cumsum(many) - many, many)
        return cls(
            item_P=owners[asked][repeat], start_P=starts[asked][repeat],
            text_P=train_texts[low[repeat] + within], usual_P=usual_W[ids[asked]][repeat],
        )  # fmt: skip

    def by_item(self) -> Iterator[tuple[int, dict[int, Ints], Ints]]:
        """Per item: the starts of its grams in each text, boilerplate grams apart."""
        order = np.argsort(self.item_P, kind="stable")
        edges = np.flatnonzero(np.diff(self.item_P[order], prepend=-1))
        for block in np.split(order, edges[1:]) if len(order) else []:
            usual = self.usual_P[block]
            starts: defaultdict[int, list[int]] = defaultdict(list)
            for text, start in zip(
                self.text_P[block][~usual].tolist(), self.start_P[block][~usual].tolist(), strict=True
            ):
                starts[text].append(start)
            yield (
                int(self.item_P[block[0]]),
                {text: np.unique(found) for text, found in starts.items()},
                np.unique(self.start_P[block][usual]),
            )


def _group_counts(ids: Ints, groups: Ints, size: int) -> NDArray[np.int64]:
    width = int(groups.max(initial=0)) + 1
    return np.bincount(np.unique(ids * width + groups) // width, minlength=size)


def _covered(starts: Ints, n: int, length: int) -> Bools:
    covered = np.zeros(length, np.bool_)
    for start in starts.tolist():
        covered[start : start + n] = True
    return covered


def _longest_run(covered: Bools, spelled: Sequence[str]) -> Sequence[str]:
    edges = np.flatnonzero(np.diff(np.concatenate([[0], covered.astype(np.int8), [0]])))
    starts, ends = edges[::2], edges[1::2]
    best = int(np.argmax(ends - starts))
    return spelled[starts[best] : ends[best]]
