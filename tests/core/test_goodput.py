"""Laws of the goodput account: seconds add up to the wall time, tokens to what was generated, whatever happens (A9)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from snoozing_env.gates import GateConfig
from snoozing_env.goodput import LOST, PHASES, STATES, Account, EngineTime, TrainerTime, Undone
from snoozing_env.goodput.account import LEVELS
from snoozing_env.types import Group, GroupOutcome, Trajectory

GATE = GateConfig(band=(0.05, 0.9))
MIXED, MAX, MIN, LEVEL = [0.0, 1.0], [1.0, 1.0], [0.0, 0.0], [0.5, 0.5]
OUT_OF_BAND = [0.0, 0.05]


@dataclass
class Clock:
    """A clock that moves when told."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def group(id: int, rewards: Sequence[float] = MIXED, *, tokens: int = 8, valid: Sequence[bool] = ()) -> Group:
    """A group of two rollouts whose first has 3 of the tokens."""
    valid_G = np.array(valid or [True] * len(rewards))
    lengths = (3, tokens - 3)
    trajectories = tuple(
        Trajectory(
            prompt_ids=(1,),
            completion_ids=(2,) * n,
            logprobs=(0.0,) * n,
            mask=(1,) * n,
            reward=r,
            valid=bool(ok),
        )
        for n, r, ok in zip(lengths, rewards, valid_G, strict=True)
    )
    outcome = GroupOutcome(task=0, rewards_G=np.array(rewards), valid_G=valid_G, tokens=tokens)
    return Group(id=id, key="t", outcome=outcome, trajectories=trajectories)


def lost(reading: Mapping[str, float]) -> dict[str, float]:
    """Tokens by cause, where there are some."""
    return {name.split("/")[-1]: v for name, v in reading.items() if name.count("/") == 2 and v}


# -- time -----------------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.sampled_from(PHASES), st.integers(0, 999), st.integers(0, 999))))
def test_the_trainers_phases_add_up_to_the_wall_time(events: list[tuple[Any, int, int]]) -> None:
    clock = Clock(5.0)
    time = TrainerTime(clock)
    expected = dict.fromkeys(PHASES, 0)
    for phase, inside, after in events:
        with time.during(phase):
            clock.now += inside
        clock.now += after
        expected[phase] += inside
        expected["starting"] += after
    assert time.seconds == expected


def test_a_phase_that_raises_ends_and_the_one_before_goes_on() -> None:
    clock = Clock()
    time = TrainerTime(clock)
    time.enter("training")
    with pytest.raises(RuntimeError, match="full disk"), time.during("saving"):  # noqa: PT012
        clock.now += 2.0
        raise RuntimeError("full disk")
    clock.now += 3.0
    assert (time.seconds["saving"], time.seconds["training"]) == (2.0, 3.0)


class EngineTimes(RuleBasedStateMachine):
    """Every order of starts, landings, pauses and evaluations."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self.time = EngineTime(self.clock)
        self.running: list[int] = []
        self.own = self.flight_seconds = self.paused = 0.0
        self.next = self.parts = 0

    @rule(seconds=st.floats(0, 100))
    def wait(self, seconds: float) -> None:
        self.clock.now += seconds
        self.flight_seconds += seconds * len(self.running)
        self.paused += seconds * self.parts / 2

    @rule()
    def start(self) -> None:
        self.time.start(self.next)
        self.running.append(self.next)
        self.next += 1

    @precondition(lambda self: self.running)
    @rule(which=st.integers(0, 99), failed=st.sampled_from([None, True, False]))
    def land(self, which: int, failed: bool | None) -> None:
        self.own += self.time.land(self.running.pop(which % len(self.running)), failed=failed)

    @precondition(lambda self: self.parts < 2)
    @rule()
    def pause(self) -> None:
        self.time.pause(0.5)
        self.parts += 1

    @precondition(lambda self: self.parts)
    @rule()
    def go_on(self) -> None:
        self.time.pause(-0.5)
        self.parts -= 1

    @rule(on=st.booleans())
    def evaluate(self, on: bool) -> None:
        self.time.evaluate(on)

    @invariant()
    def states_add_up_and_the_groups_share_the_generating(self) -> None:
        now = self.time.read()
        seconds = now.by_state
        assert set(seconds) == set(STATES)
        assert sum(seconds.values()) == pytest.approx(self.clock.now)
        assert seconds["generating"] == pytest.approx(self.own + now.running)
        assert seconds["paused"] == pytest.approx(self.paused)
        assert now.in_flight == pytest.approx(self.flight_seconds)


TestEngineTimes = EngineTimes.TestCase


def test_groups_in_flight_together_share_the_engine_and_those_alone_have_it_all() -> None:
    clock = Clock()
    time = EngineTime(clock)
    time.start(0)
    clock.now = 4.0  # group 0 alone: 4 s
    time.start(1)
    clock.now = 10.0  # both: 3 s each
    assert time.land(0) == 7.0
    time.pause(0.5)  # one of two engines takes weights
    clock.now = 12.0  # group 1 alone with half the engines: 1 s
    time.pause(-0.5)
    assert time.land(1) == 4.0
    now = time.read()
    assert (now.by_state["generating"], now.by_state["paused"], now.in_flight) == (11.0, 1.0, 18.0)


def test_an_idle_engine_waits_for_the_trainer_unless_it_evaluates_or_has_failed() -> None:
    clock = Clock()
    time = EngineTime(clock)
    clock.now = 1.0
    time.evaluate(True)
    clock.now = 3.0
    time.evaluate(False)
    time.start(0)
    time.land(0, failed=True)
    clock.now = 7.0  # after a failure, until something is served again
    time.start(1)
    clock.now = 8.0
    time.land(1, failed=None)  # cancelled: says nothing of the engine
    clock.now = 16.0
    time.start(2)
    time.land(2, failed=False)
    clock.now = 32.0
    assert time.read().by_state == {
        "generating": 1.0, "waiting": 17.0, "paused": 0.0, "evaluating": 2.0, "failed": 12.0, "undone": 0.0,
    }  # fmt: skip


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
