"""The contract, over every snooze environment that is installed; and that the contract itself can be broken."""

from __future__ import annotations

import asyncio
from importlib.metadata import distributions

import pytest
import verifiers.v1 as vf
from snooze_kit import (
    GraderError,
    SnoozeTask,
    SnoozeTaskData,
    check,
    check_processes,
    fuzzed_replies,
    grade_fuzzed,
)
from snooze_kit.fingerprint import FingerprintError, fingerprint_elsewhere, load

from snoozing_env.pool.disjoint import shared_problems
from snoozing_env.rollout.catalogue import EnvironmentConfig, load_catalogue
from snoozing_env.rollout.contract import check_generator

INSTALLED = {
    name.lower().replace("_", "-"): dist
    for dist in distributions()
    if (name := dist.metadata["Name"] or "").lower().startswith(("snooze-", "snooze_"))
}
ENVIRONMENTS = sorted(INSTALLED.keys() - {"snooze-kit"})


def in_containers(name):
    """Whether an environment runs what the policy wrote, and so needs an engine to grade."""
    return any(need.startswith("snoozing-sandboxes") for need in INSTALLED[name].requires or ())


GRADED = [
    pytest.param(name, marks=pytest.mark.docker if in_containers(name) else ()) for name in ENVIRONMENTS
]


def test_at_least_one_environment_is_looked_at():
    assert "snooze-math" in ENVIRONMENTS


@pytest.mark.parametrize("name", GRADED)
def test_an_environment_keeps_the_contract(name):
    taskset = load_catalogue(EnvironmentConfig(id=name, limit=40)).env.taskset
    assert check(taskset, limit=24, fuzzed=60) == []


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_an_environment_yields_the_same_tasks_in_every_process(name):
    assert check_processes({"id": name}, limit=40) == []


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_a_generators_sides_share_no_problem(name):
    report = check_generator(name, size=400)
    if report is not None:
        assert (report.shared.exact, report.shared.canonical, report.shared.near) == (0, 0, 0)


class GuessData(SnoozeTaskData):
    answer: str = ""


class GuessTask(SnoozeTask[GuessData, vf.TaskConfig]):
    """Grades what is said to it in the way its prompt names."""

    @vf.reward
    async def says(self, trace: vf.Trace) -> float:
        reply, mood = trace.last_reply, self.data.domain
        if mood == "fragile" and "\0" in reply:
            raise ValueError("embedded null byte")
        if mood == "silent" and "\0" in reply:
            raise GraderError("no verdict")
        if mood == "generous" and len(reply) > 5000:
            return 7.0
        if mood == "parrot" and reply == self.data.prompt:
            return 1.0
        return float(reply == self.data.answer)

    def gold_reply(self) -> str:
        return self.data.answer

    def lazy_replies(self):
        return {"repeat the question": self.data.prompt}


def guesses(mood: str) -> list[GuessTask]:
    data = (GuessData(prompt=f"Guess {n}", answer=f"n{n}", domain=mood, dataset="guess") for n in range(8))
    return [GuessTask(each, vf.TaskConfig()) for each in data]


@pytest.mark.parametrize(
    ("mood", "crashes", "wrong", "unknown"),
    [("sound", 0, 0, 0), ("fragile", 60, 0, 0), ("silent", 0, 0, 60), ("generous", 0, 20, 0)],
)
def test_fuzzing_tells_crashes_impossible_rewards_and_missing_verdicts_apart(mood, crashes, wrong, unknown):
    report = asyncio.run(grade_fuzzed(guesses(mood), 800))
    assert report.replies == 800
    for seen, least in (
        (len(report.crashes), crashes),
        (len(report.wrong_rewards), wrong),
        (report.unknown, unknown),
    ):
        assert seen == 0 if least == 0 else seen >= least


class GuessTaskset(vf.Taskset[GuessTask, vf.TasksetConfig]):
    mood = "sound"

    def load(self):
        yield from guesses(self.mood)


@pytest.mark.parametrize(
    ("mood", "rules"),
    [
        ("sound", set()),
        ("fragile", {"fuzz-no-crash"}),
        ("generous", {"fuzz-reward-range"}),
        ("parrot", {"constant-at-most-half"}),
    ],
)
def test_the_contract_check_names_what_fuzzing_and_lazy_policies_break(mood, rules):
    taskset = GuessTaskset(vf.TasksetConfig())
    taskset.mood = mood
    found = check(taskset, fuzzed=100)
    assert {finding.rule for finding in found} == rules
    if mood == "parrot":
        assert "the policy 'repeat the question' earns 1.00" in found[0].text


def test_fuzzed_replies_are_the_same_for_a_seed_and_hold_every_kind():
    replies = list(fuzzed_replies(400, seed=3, golds=["\\boxed{7}"]))
    assert replies == list(fuzzed_replies(400, seed=3, golds=["\\boxed{7}"]))
    assert replies != list(fuzzed_replies(400, seed=4, golds=["\\boxed{7}"]))
    texts = [text for _, text in replies]
    assert len({kind for kind, _ in replies}) == 11
    assert sum(len(text) >= 1 << 20 for text in texts) == 2
    assert any("\0" in text for text in texts)
    assert any(0xD800 <= ord(letter) < 0xE000 for text in texts[:40] for letter in text)
    assert any(text.startswith("\\boxed{" * 100) for text in texts)


def test_a_process_that_cannot_load_the_tasks_says_why():
    with pytest.raises(FingerprintError, match=r"(?s)PYTHONHASHSEED=0: .*snooze.nowhere"):
        fingerprint_elsewhere({"id": "snooze-nowhere"}, 3, hash_seed="0")
    assert len(list(load({"id": "snooze-math", "size": 16}))) == 16


def test_shared_problems_are_told_apart_as_copies_forms_and_near_copies():
    long = "the grey heron waits in the reeds beside the slow river until a small fish comes near enough to be caught by its quick beak"
    train = ["What is 12 + 7?", long, "What is 5 + 5?"]
    held_out = ["what is 12+7", f"{long} again", "Add 7 to 12."]
    report = shared_problems(train, held_out, canonical=(["+ 12 7"], ["+ 12 7", "x"]))
    assert (report.exact, report.canonical, report.near) == (1, 1, 2)
    assert (long, f"{long} again") in report.examples
    assert shared_problems(train, ["What is 5 + 6?"]).worst == 0
