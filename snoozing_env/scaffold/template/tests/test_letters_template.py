"""Laws of letters-template: the contract, the two sides, what a scheduler reads, what counts as right."""

from __future__ import annotations

import pytest
from pydantic import ValidationError
from snooze_kit import SnoozeTask, check

from letters_template.config import SNOOZE_FACTORS, LettersTemplateConfig
from letters_template.grading import right
from letters_template.taskset import LettersTemplateTaskset


def taskset(**options) -> LettersTemplateTaskset:
    return LettersTemplateTaskset(LettersTemplateConfig(**options))


def tasks(**options) -> list[SnoozeTask]:
    return list(taskset(**options))


@pytest.mark.parametrize("style", ["instruct", "bare"])
@pytest.mark.parametrize("split", ["train", "eval"])
def test_the_contract_holds(split, style):
    assert check(taskset(split=split, style=style), limit=60) == []


def test_the_two_sides_share_no_word_whatever_the_seed():
    train = {task.data.word for seed in range(4) for task in tasks(seed=seed)}
    assert train.isdisjoint(task.data.word for seed in range(4) for task in tasks(split="eval", seed=seed))


def test_a_seed_draws_the_same_problems_and_another_seed_others():
    assert [task.key for task in tasks(seed=3)] == [task.key for task in tasks(seed=3)]
    assert {task.key for task in tasks(seed=3)} != {task.key for task in tasks(seed=4)}


def test_every_task_tells_a_scheduler_how_hard_it_is_and_how_long_it_may_sleep():
    made = tasks()
    assert {task.data.domain: task.data.snooze_factor for task in made} == SNOOZE_FACTORS
    longest = max(made, key=lambda task: len(task.data.word))
    shortest = min(made, key=lambda task: len(task.data.word))
    assert longest.data.difficulty_prior < shortest.data.difficulty_prior
    assert longest.data.cluster == f"{longest.data.domain} 5"


def test_a_run_may_set_snooze_factors_for_all_tasks_or_by_operation():
    made = tasks(snooze_factor=1, snooze_factors={"sort": 0})
    assert {task.data.domain: task.data.snooze_factor for task in made} == {
        "first": 1.0,
        "reverse": 1.0,
        "sort": 0.0,
    }


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [
        ("bad", True),
        ("The letters are sorted.\n**BAD**.", True),
        ("bad or dab", False),
        ("dab", False),
        ("", False),
        ("b a d", False),
    ],
)
def test_the_last_word_of_a_reply_is_its_answer(reply, verdict):
    assert right("bad", reply) is verdict


def test_options_that_cannot_be_met_are_refused_with_the_reason():
    with pytest.raises(ValidationError, match=r"words have 2-8 letters, got lengths \[1, 9\]"):
        LettersTemplateConfig(lengths=[1, 4, 9])
    with pytest.raises(ValueError, match="1000 were asked for; lower `size`"):
        tasks(lengths=[2], size=1000)
