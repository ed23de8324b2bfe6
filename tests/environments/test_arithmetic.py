"""Laws of the embedded arithmetic source."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from snooze_math.arithmetic import LEVELS, problems, side

ALL = sorted(LEVELS)


@pytest.mark.parametrize("split", ["train", "eval"])
@pytest.mark.parametrize("level", ALL)
def test_every_answer_is_what_python_computes_and_every_question_names_its_numbers(level, split):
    for problem in problems(split=split, size=20, levels=[level], seed=3):
        assert problem.bare.endswith("=")
        assert int(problem.answer) == eval(problem.bare[:-1]) >= 0
        numbers = Counter(re.findall(r"\d+", problem.bare))
        assert Counter(re.findall(r"\d+", problem.question)) == numbers
        assert problem.level == level


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 9999), st.integers(0, 9999), st.sampled_from("+*-"))
def test_swapping_the_operands_never_changes_the_side(a, b, sign):
    assert side(f"{a}{sign}{b}=") == side(f"{b}{sign}{a}=")


def test_train_and_eval_share_no_problem_even_when_operands_are_swapped():
    def fingerprints(split, seed):
        chosen = problems(split=split, size=800, levels=[2, 4, 5, 7, 8], seed=seed)
        return {tuple(sorted(re.findall(r"\d+|\D", problem.bare))) for problem in chosen}

    assert fingerprints("train", 0).isdisjoint(fingerprints("eval", 1))


def test_about_one_problem_in_five_is_held_out_on_every_level():
    for level in ALL:
        held_out = Counter(side(f"{text}=") for form in LEVELS[level].forms for text, _ in form.fill())
        assert 0.16 < held_out["eval"] / held_out.total() < 0.25, LEVELS[level].description


def test_no_expression_belongs_to_two_levels():
    seen: dict[str, int] = {}
    for level in ALL:
        for form in LEVELS[level].forms:
            for text, _ in form.fill():
                assert text not in seen, f"{text} is on level {seen[text]} and level {level}"
                seen[text] = level


@settings(max_examples=25, deadline=None)
@given(
    levels=st.lists(st.sampled_from(ALL), min_size=1, unique=True),
    size=st.integers(1, 70),
    seed=st.integers(0, 2**32),
)
def test_levels_take_turns_in_equal_shares_and_no_problem_repeats(levels, size, seed):
    chosen = problems(split="train", size=size, levels=levels, seed=seed)
    assert len({problem.bare for problem in chosen}) == len(chosen) == size
    assert [problem.level for problem in chosen] == [levels[i % len(levels)] for i in range(size)]


def test_a_seed_gives_the_same_list_and_a_larger_size_keeps_the_smaller_one():
    small = problems(split="train", size=40, levels=[1, 4], seed=7)
    assert small == problems(split="train", size=40, levels=[1, 4], seed=7)
    assert small == problems(split="train", size=90, levels=[1, 4], seed=7)[:40]
    assert small != problems(split="train", size=40, levels=[1, 4], seed=8)


def test_questions_vary_in_wording():
    chosen = problems(split="train", size=60, levels=[4], seed=0)
    assert len({re.sub(r"\d+", "N", problem.question) for problem in chosen}) >= 5


def test_priors_fall_as_levels_get_harder():
    priors = [LEVELS[level].prior for level in ALL]
    assert priors == sorted(priors, reverse=True)
    assert 0 < priors[-1] < priors[0] < 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"levels": [1], "size": 60, "split": "eval"},
            r"level 1 \(one-digit addition\) has 24 distinct eval .* 60 were",
        ),
        ({"levels": [4, 99], "size": 6}, r"levels \[99\] do not exist; choose some of \[1, 2"),
        ({"levels": [4, 4], "size": 6}, r"\[4, 4\] name one twice"),
        ({"levels": [], "size": 6}, r"levels is empty; choose"),
        ({"levels": [4], "size": 0}, r"size is 0; ask for at least one"),
        ({"levels": [4], "size": 5, "split": "test"}, r"split is 'test'; it must be 'train' or 'eval'"),
    ],
)
def test_impossible_requests_say_what_would_be_possible(arguments, message):
    with pytest.raises(ValueError, match=message):
        problems(**{"split": "train", **arguments})
