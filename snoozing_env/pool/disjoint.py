"""Whether two sides of a generated task set share a problem: exactly, in canonical form, or nearly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from snoozing_env.pool.grams import grams, read_corpus, text_counts
from snoozing_env.pool.near import near_pairs
from snoozing_env.pool.text import text_hash

NEAR = 0.9
"""Jaccard similarity of 3-word grams from which two generated prompts are the same problem. Lower would flag the template: two
problems of one form share all words but the numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedProblems:
    """How much the two sides share."""

    exact: int
    """Held-out prompts that are also trained on, dress ignored."""
    canonical: int
    """Held-out problems that are also trained on in the environment's own canonical form."""
    near: int
    """Held-out prompts at least NEAR like one that is trained on, the exact ones among them where their dress differs."""
    examples: tuple[tuple[str, str], ...]
    """(training prompt, held-out prompt) of up to five near ones."""

    @property
    def worst(self) -> int:
        """The largest of the three: they count the same problem more than once."""
        return max(self.exact, self.canonical, self.near)


def shared_problems(
    train: Sequence[str],
    held_out: Sequence[str],
    *,
    canonical: tuple[Sequence[str], Sequence[str]] = ((), ()),
) -> SharedProblems:
    """Compare every held-out prompt with every training prompt; `canonical` are both sides' canonical forms.

    125,000 short prompts take half a minute of CPU.
    """
    seen = {text_hash(text) for text in train}
    exact = [text for text in held_out if text_hash(text) in seen]
    forms = set(canonical[0])
    texts = list(dict.fromkeys([*train, *held_out]))
    side = set(held_out)
    unique = grams(read_corpus(texts), 3).unique()
    counts = text_counts(unique, range(len(texts)))
    pairs = near_pairs(unique, counts, threshold=NEAR, common=max(200, len(texts) // 200))
    crossing = [
        (texts[p.one], texts[p.other]) for p in pairs if (texts[p.one] in side) != (texts[p.other] in side)
    ]
    return SharedProblems(
        exact=len(exact),
        canonical=sum(form in forms for form in canonical[1]),
        near=len({other if other in side else one for one, other in crossing}),
        examples=tuple(crossing[:5]),
    )
