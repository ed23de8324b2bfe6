"""Laws of contamination: copies in other dress are found, boilerplate is not."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from snoozing_env.errors import PoolError
from snoozing_env.pool import contamination
from snoozing_env.pool.text import words

# --import-mode=importlib gives a data module beside the tests no name of its own.
_SPEC = importlib.util.spec_from_file_location("contest", Path(__file__).with_name("contest.py"))
contest = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(contest)


def flagged(found) -> set[int]:
    """Evaluation items that some training text is excluded for."""
    return {evidence["row"] for exclusion in found.exclusions for evidence in exclusion.evidence}


def test_items_that_share_only_boilerplate_are_not_flagged(inspect) -> None:
    assert len(contest.BOILERPLATE_ONLY) >= 20
    assert flagged(inspect(contest.TRAINING, contest.BOILERPLATE_ONLY)) == set()


def test_the_plain_rule_of_one_shared_13_gram_would_flag_them() -> None:
    def has(tokens: list[str]) -> set[tuple[str, ...]]:
        return {tuple(tokens[i : i + 13]) for i in range(len(tokens) - 12)}

    trained = set().union(*(has(words(text)) for text in contest.TRAINING))
    assert sum(bool(has(words(text)) & trained) for text in contest.BOILERPLATE_ONLY) >= 10


def test_copies_with_other_numbers_spacing_case_or_latex_are_all_flagged(inspect) -> None:
    items, copies = zip(*contest.COPIES, strict=True)
    assert len(items) >= 10
    found = inspect([*contest.TRAINING, *copies], items)
    assert flagged(found) == set(range(len(items)))
    pairs = {(e.row.row - len(contest.TRAINING), v["row"]) for e in found.exclusions for v in e.evidence}
    assert pairs == {(place, place) for place in range(len(items))}


def test_n_grams_alone_flag_every_copy(inspect) -> None:
    items, copies = zip(*contest.COPIES, strict=True)
    found = inspect([*contest.TRAINING, *copies], items, near=1.0)
    assert {o.item - len(contest.TRAINING) - len(copies) for o in found.overlaps} | flagged(found) == set(
        range(len(items))
    )
    assert all(o.coverage >= 0.6 and len(o.shared.split()) >= 13 for o in found.overlaps)


def test_copies_with_other_numbers_are_left_alone_when_numbers_matter(inspect) -> None:
    items, copies = zip(*contest.COPIES, strict=True)
    found = inspect(copies, items, near=1.0, ignore_numbers=False)
    assert not any(overlap.numbers_changed for overlap in found.overlaps)
    assert 0 < len({overlap.item for overlap in found.overlaps}) < len(items)


def test_a_leak_repeated_many_times_does_not_become_boilerplate(inspect) -> None:
    item, copy = contest.COPIES[5]
    found = inspect([f"{copy} Copy number {n}." for n in range(40)], [item])
    assert len(found.exclusions) == 40


def test_a_phrase_of_many_unrelated_texts_is_boilerplate_without_a_template(inspect) -> None:
    phrase = (
        "our company will pay a small bonus to whoever sends the most complete reply before noon on friday"
    )
    topics = [
        f"{a} {b} {c} {d}"
        for a, b, c, d in zip(*[iter([f"w{n}{'xyzk'[n % 4]}" for n in range(400)])] * 4, strict=False)
    ]
    item = f"describe glaciers briefly {phrase}"
    assert flagged(inspect([f"{topic} {topic[::-1]} {phrase}" for topic in topics[:3]], [item])) == {0}
    assert (
        flagged(
            inspect([f"{topic} {topic[::-1]} {topic[1:]} {phrase}" for topic in topics], [item], near=0.95)
        )
        == set()
    )


def test_a_template_of_your_own_is_masked_and_a_broken_one_is_refused(inspect) -> None:
    phrase = "the committee kindly asks every reader to mind the usual twelve rules of this yearly event"
    train, item = f"Ants walk home. {phrase}", f"Bees fly out. {phrase}"
    assert flagged(inspect([train], [item])) == {0}
    assert flagged(inspect([train], [item], near=1.0, templates=["the committee .* yearly event"])) == set()
    with pytest.raises(PoolError, match=r"templates: .*is no regular expression"):
        inspect([train], [item], templates=["(unclosed"])


def test_short_items_are_compared_as_wholes_only(inspect) -> None:
    found = inspect(
        ["Well then: what is the name of it, my friend from far away?"], ["What is the name of it?"]
    )
    assert len(words("What is the name of it?")) < contamination.LEAST_WORDS
    assert found.exclusions == ()
