"""Laws of the goodput account: seconds of trainer and engine add up to the wall time, whatever happens (A9)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from snoozing_env.goodput import PHASES, STATES, EngineTime, TrainerTime
from tests.core.goodput_world import Clock


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
