"""Laws of the goodput account: tokens add up to what was generated, and what is made of both (A9)."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from snoozing_env.gates import GateConfig
from snoozing_env.goodput import LOST, PHASES, STATES, Account, Undone
from snoozing_env.goodput.account import LEVELS
from snoozing_env.types import Group, GroupOutcome
from tests.core.goodput_world import GATE, LEVEL, MAX, MIN, MIXED, OUT_OF_BAND, Clock, group, lost

# -- tokens ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rewards", "cause"),
    [(MAX, "all_max"), (MIN, "all_min"), (LEVEL, "no_spread"), (OUT_OF_BAND, "out_of_band")],
)
def test_a_filtered_group_is_lost_to_the_filter_that_took_it(rewards: list[float], cause: str) -> None:
    account = Account(GATE, Clock())
    account.engine.finish(group(0, rewards), "filtered")
    assert lost(account.engine.reading()) == {cause: 8}
    later = Account(GATE, Clock())
    later.engine.finish(group(0, rewards), "accepted")
    later.engine.filter(group(0, rewards))
    assert later.engine.reading() == account.engine.reading()


def test_an_invalid_rollouts_time_is_lost_in_proportion_to_its_tokens() -> None:
    clock = Clock()
    account = Account(GATE, clock)
    account.engine.start(0)
    clock.now = 4.0
    account.engine.land(0)
    account.engine.finish(group(0, valid=[False, True], tokens=12), "accepted")
    reading = account.engine.reading()
    assert (reading["work/lost_failures_s"], reading["work/waiting_s"]) == (1.0, 3.0)


def test_an_invalid_rollouts_tokens_are_lost_to_failures_and_the_others_go_with_the_group() -> None:
    account = Account(GATE, Clock())
    account.engine.finish(group(0, valid=[False, True]), "filtered")
    assert lost(account.engine.reading()) == {"invalid": 3, "too_few_valid": 5}
    wider = Account(GateConfig(min_valid=2), Clock())
    three = GroupOutcome(
        task=0, rewards_G=np.array([0.0, 1.0, 0.0]), valid_G=np.array([True, True, False]), tokens=9
    )
    bad = group(0, valid=[False, True]).trajectories[0]
    one = Group(id=1, key="t", outcome=three, trajectories=(bad,))
    wider.engine.finish(one, "accepted")
    wider.engine.train([one])
    reading = wider.engine.reading()
    assert (reading["tokens/trained"], lost(reading)) == (6, {"invalid": 3})


def test_a_cancelled_group_costs_time_and_no_tokens() -> None:
    clock = Clock()
    account = Account(GATE, clock)
    account.engine.start(0)
    clock.now = 6.0
    account.engine.cancel(0, failed=True)
    clock.now = 8.0
    reading = account.engine.reading()
    assert (reading["work/lost_failures_s"], reading["tokens/generated"]) == (6.0, 0)
    assert reading["engine/failed_s"] == 2.0
    account.engine.start(1)
    account.engine.land(1)
    clock.now = 9.0
    assert account.engine.reading()["engine/waiting_s"] == 1.0, "a group that was served ends the outage"


class Tokens(RuleBasedStateMachine):
    """Groups in every order of fates, with kills that go back to the newest checkpoint; counted once more by hand."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self.account = Account(GATE, self.clock)
        self.waiting: dict[int, Group] = {}
        self.flying: list[int] = []
        self.fate: dict[str, int] = {}
        self.generated = 0
        self.seconds = 0.0
        self.next = 0
        self.logged: list[dict[str, float]] = []
        self.save()

    def count(self, fate: str, tokens: int) -> None:
        self.fate[fate] = self.fate.get(fate, 0) + tokens

    @rule(
        fate=st.sampled_from(["accepted", "filtered", "over_age"]),
        tokens=st.integers(4, 50),
        invalid=st.booleans(),
        seconds=st.floats(0, 10),
    )
    def finish(self, fate: Any, tokens: int, invalid: bool, seconds: float) -> None:
        one = group(self.next, MIN if fate == "filtered" else MIXED, tokens=tokens, valid=[not invalid, True])
        self.next += 1
        self.account.engine.start(one.id)
        self.clock.now += seconds
        self.seconds += seconds
        self.account.engine.land(one.id)
        self.account.engine.finish(one, fate)
        self.generated += tokens
        if invalid:
            self.count("invalid", 3)
        kept = tokens - 3 * invalid
        if fate == "accepted":
            self.waiting[one.id] = one
        elif fate == "over_age":
            self.count("over_age", kept)
        else:
            self.count("too_few_valid" if invalid else "all_min", kept)

    @rule(seconds=st.floats(0, 10))
    def depart(self, seconds: float) -> None:
        """A group that stays in flight, until it is cancelled or dies with its process."""
        self.account.engine.start(-1 - self.next)
        self.flying.append(-1 - self.next)
        self.next += 1
        self.clock.now += seconds
        self.seconds += seconds

    @precondition(lambda self: self.flying)
    @rule()
    def cancel(self) -> None:
        self.account.engine.cancel(self.flying.pop(), failed=False)

    def kept(self, one: Group) -> int:
        return sum(sum(t.mask) for t in one.trajectories if t.valid)

    @precondition(lambda self: self.waiting)
    @rule(n=st.integers(1, 5), seconds=st.floats(0, 10))
    def train(self, n: int, seconds: float) -> None:
        taken = [self.waiting.pop(id) for id in list(self.waiting)[:n]]
        self.account.engine.train(taken)
        with self.account.trainer.during("training"):
            self.clock.now += seconds
        self.seconds += seconds
        self.count("trained", sum(map(self.kept, taken)))
        self.logged.append(self.account.step(close=True))

    @precondition(lambda self: self.waiting)
    @rule(by_id=st.booleans())
    def expire(self, by_id: bool) -> None:
        _, old = self.waiting.popitem()
        if by_id:
            self.account.engine.expire_all_but(set(self.waiting))
        else:
            self.account.engine.expire([old])
        self.count("expired", self.kept(old))

    @rule(n=st.integers(1, 3))
    def replay(self, n: int) -> None:
        self.account.engine.replay([group(0)] * n)
        self.count("replayed", 8 * n)

    @rule()
    def save(self) -> None:
        state = self.account.state() | {"engine": self.account.engine.state()}
        self.disk = (
            json.dumps(state),
            dict(self.waiting),
            dict(self.fate),
            self.generated,
            list(self.logged),
            self.seconds,
        )

    @rule(undone=st.integers(0, 40), idle=st.floats(0, 9))
    def kill(self, undone: int, idle: float) -> None:
        """A new process: starts up for a while, loads the checkpoint, and counts what the old one did for nothing."""
        text, waiting, fate, self.generated, self.logged, self.seconds = self.disk
        self.waiting, self.fate, self.logged, self.flying = dict(waiting), dict(fate), list(self.logged), []
        self.account = Account(GATE, self.clock, undone=Undone(seconds=3.0, tokens=undone))
        self.clock.now += idle
        self.account.add(json.loads(text))
        self.account.engine.add(json.loads(text)["engine"])
        self.generated += undone
        self.seconds += 3.0 + idle
        self.count("undone", undone)

    @invariant()
    def every_token_is_somewhere(self) -> None:
        reading, fates = self.account.engine.reading(), self.account.engine.fates
        assert fates.balance() == 0
        assert reading["tokens/generated"] == self.generated
        assert reading["tokens/trained"] == self.fate.get("trained", 0)
        assert reading["tokens/replayed"] == self.fate.get("replayed", 0)
        assert reading["tokens/waiting"] == sum(map(self.kept, self.waiting.values()))
        expected = {k: v for k, v in self.fate.items() if k not in ("trained", "replayed") and v}
        assert lost(reading) == expected
        by_family = {f: sum(expected.get(c, 0) for c in causes) for f, causes in LOST.items()}
        assert {f: reading[f"tokens/lost_{f}"] for f in LOST} == by_family

    @invariant()
    def every_second_is_somewhere_too(self) -> None:
        reading = self.account.engine.reading()
        work = sum(v for name, v in reading.items() if name.startswith("work/"))
        assert work == pytest.approx(reading["engine/generating_s"])
        assert sum(reading[f"engine/{s}_s"] for s in STATES) == pytest.approx(self.seconds)
        assert self.account.seconds == pytest.approx(self.seconds)

    @invariant()
    def the_steps_of_the_log_add_up_to_the_books(self) -> None:
        """Also across a kill, which cuts the log back to the checkpoint."""
        if not self.logged:
            return
        sums: dict[str, float] = {}
        for step in self.logged:
            for name, value in step.items():
                sums[name] = sums.get(name, 0) + value
        waiting = self.logged[-1].get("tokens/waiting", 0)
        gone = sum(sums.get(f"tokens/lost_{family}", 0) for family in LOST)
        assert sums["tokens/generated"] == sums.get("tokens/trained", 0) + gone + waiting
        assert sum(sums.get(f"time/{p}_s", 0) for p in PHASES) == pytest.approx(self.account.closed_s)


TestTokens = Tokens.TestCase


# -- metrics --------------------------------------------------------------------------------------------------


def test_goodput_is_useful_over_wall_time_of_each_side_and_of_both() -> None:
    """By hand: 10 s; the trainer trains 4 s; of 8 s generating, 6 were for a group that is trained, 2 for nothing."""
    clock = Clock()
    account = Account(GATE, clock)
    account.trainer.enter("waiting")
    account.engine.start(0)
    clock.now = 6.0
    account.engine.land(0)
    account.engine.finish(group(0, tokens=60), "accepted")
    account.engine.train([group(0, tokens=60)])
    account.trainer.enter("training")
    account.engine.start(1)
    clock.now = 8.0
    account.engine.land(1)
    account.engine.finish(group(1, MAX, tokens=20), "filtered")
    clock.now = 10.0
    assert account.step() == {
        "time/waiting_s": 6.0, "time/training_s": 4.0,
        "engine/generating_s": 8.0, "engine/waiting_s": 2.0, "engine/flight_s": 8.0, "engine/groups_in_flight": 0.8,
        "tokens/generated": 80, "tokens/trained": 60, "tokens/lost_filters": 20, "tokens/lost_filters/all_max": 20,
        "work/trained_s": 6.0, "work/lost_filters_s": 2.0,
        "goodput/trainer": 0.4, "goodput/engine": 0.6, "goodput/time": 0.5, "goodput/tokens": 0.75,
        "goodput/waiting_on_rollouts": 0.6, "goodput/waiting_on_trainer": 0.2,
    }  # fmt: skip


def test_a_step_says_what_it_added_and_goodput_of_the_whole_run() -> None:
    clock = Clock()
    account = Account(GATE, clock)
    account.trainer.enter("training")
    clock.now = 3.0
    assert account.step(close=True)["goodput/trainer"] == 1.0
    account.trainer.enter("waiting")
    clock.now = 12.0
    step = account.step(close=True)
    assert (step["time/waiting_s"], step["goodput/trainer"]) == (9.0, 0.25)
    assert "time/training_s" not in step, "zeros are left out"
    assert account.closed_s == 12.0


def test_levels_are_not_differences() -> None:
    account = Account(GATE, Clock())
    account.engine.finish(group(0), "accepted")
    account.step(close=True)
    account.engine.finish(group(1), "accepted")
    step = account.step(close=True)
    assert (step["tokens/waiting"], step["tokens/generated"]) == (16, 8)
    assert "tokens/waiting" in LEVELS


def test_before_any_time_has_passed_there_is_no_goodput() -> None:
    assert Account(GATE, Clock()).step() == {}


def test_a_group_from_before_the_books_counts_as_generated_when_its_fate_is_known() -> None:
    account = Account(GATE, Clock())
    account.engine.train([group(7)])
    account.engine.expire([group(8)])
    reading = account.engine.reading()
    assert (reading["tokens/generated"], reading["tokens/trained"], lost(reading)) == (16, 8, {"expired": 8})


def test_a_group_restored_from_a_journal_is_on_the_books_as_it_finished() -> None:
    account = Account(GATE, Clock())
    for id, (rewards, fate) in enumerate([(MIXED, "accepted"), (MAX, "filtered"), (MIXED, "over_age")]):
        account.engine.restore(id, group(id, rewards).outcome, fate)
    reading = account.engine.reading()
    assert (reading["tokens/waiting"], lost(reading)) == (8, {"all_max": 8, "over_age": 8})
    account.engine.restore(3, group(3, MIXED).outcome, "filtered")
    assert lost(account.engine.reading())["out_of_band"] == 8, "by a band that this run does not have"
