"""Tail batching as a decision: what is put off, when it runs, and for how long it waits at most."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snoozing_env.pacing.tail import Tail, TailConfig

BATCH = 4


def tail(**config: float) -> Tail:
    return Tail(TailConfig(**config))  # type: ignore[arg-type]


def park(tail: Tail, seconds: list[float], *, step: int = 0, first: int = 0) -> list[int]:
    tasks = np.arange(first, first + len(seconds))
    return tail.park(tasks, np.array(seconds), step=step, batch=BATCH)


def test_only_what_is_far_over_the_usual_is_put_off():
    waiting = tail(over=4.0)
    assert park(waiting, [1.0, 1.1, 0.9, 25.0, 3.9]) == [0, 1, 2, 4]
    assert waiting.parked == (3,)
    assert park(tail(over=4.0), [25.0] * 5) == [0, 1, 2, 3, 4], "where all are alike, none is long"


def test_a_round_begins_with_room_for_a_whole_batch_and_takes_the_long_ones_first():
    waiting = tail(within=100)
    park(waiting, [1.0] * 20 + [25.0] * 3)
    assert waiting.round(BATCH, step=1, batch=BATCH) == [], "three of four"
    park(waiting, [25.0], first=23)
    assert waiting.round(BATCH - 1, step=1, batch=BATCH) == [], "the step has begun with short ones"
    assert waiting.round(BATCH, step=2, batch=BATCH) == [20, 21, 22, 23]
    assert park(waiting, [25.0], step=2, first=24) == [24], "in a long round nothing is put off"
    assert park(waiting, [25.0], step=3, first=25) == []


def test_what_has_waited_long_enough_runs_however_little_there_is():
    waiting = tail(within=3)
    park(waiting, [1.0] * 20 + [25.0], step=5)
    assert waiting.round(1, step=7, batch=BATCH) == []
    assert waiting.round(1, step=8, batch=BATCH) == [20]


@given(st.lists(st.lists(st.sampled_from([1.0, 1.0, 1.0, 30.0]), min_size=1, max_size=6), max_size=60))
def test_no_task_starves_is_lost_or_starts_twice(steps: list[list[float]]):
    waiting, parked_at, started, drawn = tail(within=5), dict[int, int](), list[int](), 0
    for step, seconds in enumerate(steps):
        now = waiting.round(BATCH, step=step, batch=BATCH)
        now += park(waiting, seconds, step=step, first=drawn)
        drawn += len(seconds)
        started += now
        for task in waiting.parked:
            parked_at.setdefault(task, step)
        for task in now:
            # Two batches wait at most, so that two steps after its turn has come it has started.
            assert step - parked_at.get(task, step) <= 5 + 2
    assert sorted(started + list(waiting.parked)) == list(range(drawn))
    assert len(waiting.parked) <= 2 * BATCH


def test_a_bound_of_no_steps_and_a_factor_of_one_are_refused():
    with pytest.raises(ValueError, match="greater than or equal to 1"):
        TailConfig(within=0)
    with pytest.raises(ValueError, match="greater than 1"):
        TailConfig(over=1.0)
