"""Laws of the embedded problems: every reference passes, every bug is caught, nothing hidden is shown."""

from __future__ import annotations

import ast
import asyncio
from collections import Counter
from dataclasses import replace

import pytest
from snooze_code.asserts import call_of
from snooze_code.expressions import HIDDEN, LEVELS, drawn, expressions, side
from snooze_code.grading import Grading, Problem, grade_async
from snooze_code.loading import row_of
from snooze_code.problems import PRIORS, Authored, authored
from snooze_code.sandbox import Place, close_sandboxes

from tests.conftest import engine_missing

LOCAL = Place(backend="local", boxes=4)


@pytest.fixture(scope="module", autouse=True)
def _sandboxes_end_with_the_module():
    yield
    close_sandboxes()


def problem_of(one: Authored) -> Problem:
    return Problem(suite=one.suite, entry=one.entry, cpu_s=2.0)


def graded(programs: list[tuple[Authored, str]], place: Place) -> list[tuple[Authored, str, Grading]]:
    async def all_of_them() -> list[Grading]:
        return await asyncio.gather(
            *(grade_async(problem_of(one), f"```python\n{code}\n```", place) for one, code in programs)
        )

    return [(*pair, grading) for pair, grading in zip(programs, asyncio.run(all_of_them()), strict=True)]


def references() -> list[tuple[Authored, str]]:
    return [(one, one.reference) for one in authored()]


def mistakes() -> list[tuple[Authored, str]]:
    return [(one, code) for one in authored() for code in one.wrong_solutions]


def fails(results: list[tuple[Authored, str, Grading]], wanted: bool) -> list[str]:
    return [
        f"{one.name}: {grading.verdict}\n{code}"
        for one, code, grading in results
        if grading.verdict.correct is not wanted
    ]


def test_there_are_six_levels_of_at_least_twenty_problems_with_three_bugs_each():
    counts = Counter(one.level for one in authored())
    assert sorted(counts) == [1, 2, 3, 4, 5, 6]
    assert min(counts.values()) >= 20
    assert counts.total() >= 120
    assert all(len(one.bugs) == 3 for one in authored())
    assert len({one.name for one in authored()}) == counts.total()


def test_both_kinds_are_on_every_level_and_no_domain_is_most_of_a_level():
    for level in PRIORS:
        here = [one for one in authored() if one.level == level]
        assert 4 <= sum(not one.signature for one in here) <= len(here) // 2
        assert len({one.domain for one in here}) >= 5


def test_priors_fall_with_the_level_and_stay_inside_the_unit_interval():
    assert [PRIORS[level] for level in sorted(PRIORS)] == sorted(PRIORS.values(), reverse=True)
    assert 0 < min(PRIORS.values()) < max(PRIORS.values()) < 1


def test_every_bug_changes_one_place_of_its_reference_and_stays_python():
    for one in authored():
        for old, _ in one.bugs:
            assert one.reference.count(old) == 1, (one.name, old)
        for code in one.wrong_solutions:
            ast.parse(code)


def test_examples_are_shown_and_hidden_tests_are_not():
    for one in authored():
        prompt = row_of(one).prompt
        assert one.statement in prompt
        if one.signature:
            shown = [call_of(f"assert {text}", one.entry) for text in one.examples]
            assert all(str(text) in prompt for text in one.examples)
            hidden = {repr(call.args) for call in one.suite.calls}
            assert hidden.isdisjoint(repr(call.args) for call in shown)
            assert len(one.suite.calls) >= 5
        else:
            assert {given for given, _ in one.suite.cases}.isdisjoint(given for given, _ in one.examples)
            assert len(one.suite.cases) >= 5


def test_no_constant_and_no_visible_example_passes_a_hidden_suite():
    for one in authored():
        answers = [repr(call.expected) for call in one.suite.calls] + [
            wanted for _, wanted in one.suite.cases
        ]
        assert len(set(answers)) >= 2, one.name


def test_every_reference_passes_its_hidden_tests_and_its_examples():
    assert fails(graded(references(), LOCAL), True) == []
    shown = [
        (replace(one, suite=replace(one.suite, calls=calls, cases=cases)), one.reference)
        for one in authored()
        for calls, cases in [_examples(one)]
    ]
    assert fails(graded(shown, LOCAL), True) == []


def _examples(one: Authored):
    if one.signature:
        return tuple(call_of(f"assert {text}", one.entry) for text in one.examples), ()
    return (), one.examples


def test_every_third_wrong_solution_is_rejected():
    assert fails(graded(mistakes()[::3], LOCAL), False) == []


@pytest.mark.docker
def test_in_containers_every_reference_passes_and_all_three_bugs_of_every_problem_are_caught():
    if engine_missing():
        pytest.skip(engine_missing())
    docker = Place(boxes=4)
    assert fails(graded(references(), docker), True) == []
    assert fails(graded(mistakes(), docker), False) == []


@pytest.mark.parametrize("level", sorted(LEVELS))
def test_expressions_fit_the_points_they_show_and_are_graded_on_others(level):
    for made in expressions(level)[::29]:
        f = eval(f"lambda x: {made.answer}")
        points = dict(pair.removeprefix("f(").split(")=") for pair in made.prompt.rstrip(";").split())
        assert all(f(int(x)) == int(y) for x, y in points.items())
        inputs = [call.args[0] for call in made.suite.calls]
        assert set(inputs).isdisjoint(map(int, points))
        assert set(inputs) <= set(HIDDEN)
        assert all(f(call.args[0]) == call.expected for call in made.suite.calls)


def test_no_prompt_has_two_answers_that_the_hidden_inputs_tell_apart():
    everything = [made for level in LEVELS for made in expressions(level)]
    assert len({made.prompt for made in everything}) == len(everything)


def test_about_one_expression_in_five_is_held_out_and_levels_take_turns():
    train = drawn(split="train", size=30, levels=[1, 2, 3], seed=0)
    assert [made.level for made in train] == [1, 2, 3] * 10
    assert {made.prompt for made in train}.isdisjoint(
        made.prompt for made in drawn(split="eval", size=120, levels=[1, 2, 3], seed=1)
    )
    sides = Counter(side(made.prompt) for level in LEVELS for made in expressions(level))
    assert 0.15 < sides["eval"] / sides.total() < 0.25


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"levels": [9], "size": 3}, r"levels \[9\] do not exist; choose some of \[1, 2, 3\]"),
        (
            {"levels": [1], "size": 6000},
            r"level 1 \(x plus or minus a digit\) has \d+ train prompts, 6000 were",
        ),
    ],
)
def test_impossible_requests_for_expressions_say_what_would_be_possible(arguments, message):
    with pytest.raises(ValueError, match=message):
        drawn(split="train", seed=0, **arguments)
