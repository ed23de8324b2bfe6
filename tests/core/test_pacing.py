"""The bound on staleness, over schedules of every kind."""

from __future__ import annotations

import numpy as np
import pytest

from snoozing_env.pacing import DurationConfig, Durations, Flight, PacingConfig, Planner
from snoozing_env.pacing.planner import Counts
from tests.core.schedules import Run, group, play, random_config

SCHEDULES = range(300)


def played(seed: int) -> Run:
    return play(Planner(random_config(seed), batch=1 + seed % 4), seed=seed)


def test_nothing_trained_is_older_than_the_bound_and_no_group_is_trained_twice_or_lost_from_the_ledger():
    for seed in SCHEDULES:
        run = played(seed)
        assert max(run.lags) <= run.planner.config.bound, f"schedule {seed}"
        assert len(set(run.trained)) == len(run.trained) == run.planner.counts.trained, f"schedule {seed}"
        assert run.planner.balance() == 0, f"schedule {seed}"


def test_pacing_that_waits_for_stragglers_drops_nothing():
    for seed in SCHEDULES:
        config = random_config(seed).model_copy(update={"stragglers": "wait", "over_age": "drop"})
        run = play(Planner(config, batch=1 + seed % 4), seed=seed)
        assert run.planner.counts.over_age == run.planner.counts.expired == 0, f"schedule {seed}"


def test_letting_stragglers_go_drops_some_of_them():
    config = PacingConfig(max_staleness=1, stragglers="let-go")
    assert sum(play(Planner(config, batch=4), seed=seed).planner.counts.over_age for seed in range(20)) > 0


class GenerousRoom(Planner):
    """Starts one batch too many."""

    def room(self) -> int:
        return super().room() + self.batch


class LateTake(Planner):
    """Off by one: takes groups that are one update too old."""

    def lag(self, group):  # type: ignore[no-untyped-def]
        return super().lag(group) - 1


@pytest.mark.parametrize(("broken", "stragglers"), [(GenerousRoom, "wait"), (LateTake, "let-go")])
def test_an_off_by_one_in_the_bound_does_not_survive_these_schedules(broken: type[Planner], stragglers: str):
    def breaks(seed: int) -> bool:
        config = random_config(seed).model_copy(update={"stragglers": stragglers, "over_age": "drop"})
        try:
            run = play(broken(config, batch=1 + seed % 4), seed=seed)
        except AssertionError:
            return True  # a livelock: everything it starts is too old when it finishes
        dropped = run.planner.counts.over_age + run.planner.counts.expired
        return max(run.lags) > config.bound or (stragglers == "wait" and dropped > 0)

    assert any(breaks(seed) for seed in range(20))


def test_room_is_what_can_still_be_trained_in_time():
    planner = Planner(PacingConfig(max_staleness=2), batch=4)
    assert planner.room() == 12
    for id in range(5):
        planner.start(Flight(id=id, task=id, key=str(id), version=0, started_s=0.0))
    assert planner.room() == 7
    planner.finish(0, group(0, 0), admitted=False)
    assert planner.room() == 8, "a filtered group gives its place back at once"
    planner.finish(1, group(1, 0), admitted=True)
    assert planner.room() == 8, "an accepted one keeps it until it is trained"
    planner.lose(2)
    assert planner.room() == 9


def test_while_a_step_is_trained_room_counts_from_the_weights_still_served():
    planner = Planner(PacingConfig(max_staleness=1), batch=2)
    for id in range(2):
        planner.start(Flight(id=id, task=id, key=str(id), version=0, started_s=0.0))
        planner.finish(id, group(id, 0), admitted=True)
    assert len(planner.take()) == 2
    assert planner.room() == 2, "weights 0 are good for step 1 only"
    planner.publish(1)
    assert planner.room() == 4
    with pytest.raises(ValueError, match="version 2 published after 1, with step 1 next"):
        planner.publish(2)


def test_a_group_in_flight_twice_is_refused():
    planner = Planner(PacingConfig(), batch=1)
    flight = Flight(id=1, task=1, key="1", version=0, started_s=0.0)
    planner.start(flight)
    with pytest.raises(ValueError, match="in flight already"):
        planner.start(flight)


def test_durations_start_at_the_prior_and_approach_what_is_seen():
    durations = Durations(DurationConfig(), [100.0, None, None])
    assert durations.predict(np.array([0]))[0] == pytest.approx(100.0)
    for _ in range(50):
        durations.observe(1, 10.0)
        durations.observe(2, 1000.0)
    fast, slow = durations.predict(np.array([1, 2]))
    assert fast < 30 < 300 < slow


def test_the_names_of_the_modes():
    assert PacingConfig().mode == "sync"
    assert PacingConfig(max_staleness=1).mode == "double-buffer"
    assert PacingConfig(max_staleness=8).mode == "bounded"
    assert PacingConfig(max_staleness=8, weight_updates="in-flight").mode == "in-flight"


def test_a_step_trains_no_more_groups_than_fit_however_many_a_resume_brings_back():
    planner = Planner(PacingConfig(max_staleness=2), batch=4)
    planner.restore(step=2, accepted=[group(id, 0) for id in range(10)], counts=Counts(started=10))
    planner.resize(3)  # the rest of a batch is replayed
    assert len(planner.take()) == 4, "all ten must be trained now or never, and four fit"
    assert len(planner.expire()) == 6
    assert planner.balance() == 0
