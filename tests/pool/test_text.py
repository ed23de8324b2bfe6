"""Laws of what counts as the same text, and of hashed grams."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snoozing_env.pool.grams import grams, jaccard, read_corpus, text_counts
from snoozing_env.pool.templates import TemplateMask
from snoozing_env.pool.text import longest_shared_run, text_hash, words


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (r"Let $\frac{m}{n}$ be $1{,}000$", "let m/n be 1,000"),
        (r"\(x^{2}\)-axis \cdot 3", "X^2-axis * 3"),
        ("an  angle of $60^\\circ$", "an angle of 60°"),
        ("It isn't two-digit.", "it isn’t two digit"),
        (r"\left( a \right) \leq \dfrac12", "(a) ≤ 1/2"),
        ("ﬁne ½", "FINE 1⁄2"),
    ],
)
def test_dress_does_not_make_a_text_another(one: str, other: str) -> None:
    assert words(one) == words(other)
    assert text_hash(one) == text_hash(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [("23 + 45", "23 * 45"), ("23 + 45", "23 + 46"), ("x < 3", "x > 3"), ("???", "!!!"), ("2.5", "25")],
)
def test_numbers_signs_and_wordless_texts_stay_apart(one: str, other: str) -> None:
    assert text_hash(one) != text_hash(other)


@settings(max_examples=50, deadline=None)
@given(st.text(max_size=200))
def test_every_text_has_words_and_a_hash_whatever_it_is(text: str) -> None:
    assert len(text_hash(text)) == 16
    assert all(word and word == word.casefold() for word in words(text))


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.lists(st.sampled_from(["a", "b", "c", "7", "8"]), max_size=9), min_size=1, max_size=6),
    st.integers(1, 4),
)
def test_hashed_grams_are_the_grams_counted_by_hand(texts: list[list[str]], n: int) -> None:
    def by_hand(tokens: list[str]) -> list[tuple[str, ...]]:
        return [tuple(tokens[i : i + n]) for i in range(max(1, len(tokens) - n + 1))] if tokens else []

    found = grams(read_corpus(" ".join(t) for t in texts), n)
    expected = [gram for t in texts for gram in by_hand(t)]
    assert len(found.values_S) == len(expected)
    names: dict[int, tuple[str, ...]] = {}
    for value, gram in zip(found.values_S.tolist(), expected, strict=True):
        assert names.setdefault(value, gram) == gram
    assert len(names) == len(set(expected))


def test_masked_numbers_are_all_the_same_and_words_are_not() -> None:
    corpus = read_corpus(["take 12 apples", "take 3.5 apples", "take some apples"])
    one, two, other = (grams(corpus, 3, mask_numbers=True).of(i).tolist() for i in range(3))
    assert one == two != other


def test_jaccard_is_what_two_sets_give_by_hand() -> None:
    unique = grams(read_corpus(["a b c d", "b c d e", "x"]), 2).unique()
    assert jaccard(unique.of(0), unique.of(1)) == 2 / 4
    assert jaccard(unique.of(0), unique.of(2)) == 0.0


def test_copies_count_as_one_witness_of_a_gram() -> None:
    unique = grams(read_corpus(["a b", "a b", "a b c"]), 2).unique()
    assert sorted(text_counts(unique, np.array([0, 0, 2])).tolist()) == [1, 2, 2, 2]
    assert sorted(text_counts(unique, np.array([0, 1, 2])).tolist()) == [1, 3, 3, 3]


def test_a_mask_covers_the_template_and_leaves_the_problem() -> None:
    spelled = words("How fast is the ferry? Give your answer as a common fraction. Its rope has length 7.")
    masked = [word for word, hidden in zip(spelled, TemplateMask()(spelled), strict=True) if hidden]
    assert " ".join(masked) == "give your answer as a common fraction"
    assert TemplateMask(["its rope"])(spelled).sum() == len(masked) + 2


def test_the_longest_shared_run_is_found_in_the_middle() -> None:
    assert longest_shared_run("we saw the old red barn burn", "an old red barn stood") == "old red barn"
