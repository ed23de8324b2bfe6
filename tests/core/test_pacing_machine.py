"""The planner against every order of events that hypothesis finds: starts, verdicts, losses, updates, steps, kills."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from snoozing_env.pacing import Flight, PacingConfig, Planner
from snoozing_env.pacing.planner import Counts
from snoozing_env.pacing.quotas import Quotas
from snoozing_env.places import Places
from snoozing_env.types import Group
from tests.core.schedules import group

SHARES = {"even": 1, "odd": 2}


def dataset_of(task: int) -> str:
    return "odd" if task % 2 else "even"


class PlannerMachine(RuleBasedStateMachine):
    """One run. A group's first token comes with its dispatch, which is the oldest that it can be."""

    planner_type: type[Planner] = Planner

    def __init__(self) -> None:
        super().__init__()
        self.next_id = 0
        self.version_of: dict[int, int] = {}
        self.trained: Counter[int] = Counter()
        self.batches: list[list[Group]] = []
        self.settled: list[Mapping[str, int]] = []

    @initialize(
        bound=st.sampled_from([0, 1, 2, 5]),
        over_age=st.sampled_from(["drop", "keep-corrected"]),
        stragglers=st.sampled_from(["wait", "let-go"]),
        max_running=st.sampled_from([2, 64]),
        by_dataset=st.booleans(),
    )
    def begin(self, bound: int, over_age: str, stragglers: str, max_running: int, by_dataset: bool) -> None:
        options: dict[str, Any] = {"over_age": over_age, "stragglers": stragglers, "max_running": max_running}
        self.by_dataset = by_dataset
        self.planner = self.planner_type(PacingConfig(max_staleness=bound, **options), batch=3)
        if by_dataset:
            self.planner.quotas = Quotas(self._ask, self._settle)

    def _ask(self, batch: int, shares: Mapping[str, int] | None) -> Places:
        return Places(batch, shares or SHARES, lend_after=1e9, dataset_of=dataset_of)

    def _settle(self, places: Places, groups: Sequence[Group]) -> None:
        self.settled.append(Counter(dataset_of(g.outcome.task) for g in groups))

    # -- events -----------------------------------------------------------------------------------------

    @precondition(lambda self: self.planner.room())
    @rule(few=st.integers(1, 16))
    def start(self, few: int) -> None:
        wanted = self.planner.wanted(min(few, self.planner.room()))
        names = [name for name, n in wanted.items() for _ in range(n)] if self.by_dataset else [""] * few
        for name in names[: self.planner.room()]:
            id = 2 * self.next_id + (name == "odd")  # the group's id is its task, odd ones of the odd dataset
            self.next_id += 1
            self.version_of[id] = self.planner.version
            self.planner.start(
                Flight(id=id, task=id, key=str(id), version=self.planner.version, started_s=0.0)
            )

    @precondition(lambda self: self.planner.running)
    @rule(few=st.integers(1, 8), newest=st.booleans(), filtered=st.integers(0, 7))
    def finish(self, few: int, newest: bool, filtered: int) -> None:
        """Some end, in the order of their dispatch or against it; one of them may be uninformative."""
        order = list(self.planner.running)[:: -1 if newest else 1]
        for i, flight in enumerate(order[:few]):
            self.planner.finish(flight.id, group(flight.id, flight.version), admitted=i != filtered)

    @precondition(lambda self: self.planner.running)
    @rule(data=st.data())
    def lose(self, data: st.DataObject) -> None:
        self.planner.lose(data.draw(st.sampled_from(self.planner.running)).id)

    @precondition(lambda self: self.planner.version < self.planner.step)
    @rule()
    def publish(self) -> None:
        self.planner.publish(self.planner.step)

    @precondition(lambda self: self.planner.ready())
    @rule(at_once=st.booleans())
    def take(self, at_once: bool) -> None:
        step = self.planner.step
        taken = self.planner.take()
        assert len(taken) == 3, "a step that was ready is full"
        assert all(step - self.version_of[g.id] <= self.planner.config.bound for g in taken)
        if self.by_dataset:
            assert self.settled[-1] == SHARES
        self.trained.update(g.id for g in taken)
        if at_once:
            self.publish()

    @rule(dice=st.integers(1, 10))
    def kill(self, dice: int) -> None:
        """Now and then. What had finished is in the journal; what ran is lost, and counted so before the books are opened again."""
        if dice < 10:
            return
        planner, gone = self.planner, len(self.planner.running)
        counts = Counts(**{**_as_dict(planner.counts), "lost": planner.counts.lost + gone})
        places = planner.quotas.state() if planner.quotas is not None else []
        planner.restore(step=planner.step, accepted=planner.accepted, counts=counts)
        if planner.quotas is not None:
            planner.quotas.restore(places)

    # -- laws -------------------------------------------------------------------------------------------

    @invariant()
    def every_group_is_accounted_for_once(self) -> None:
        assert self.planner.balance() == 0
        assert self.planner.counts.started == self.next_id
        assert max(self.trained.values(), default=0) <= 1
        assert not set(self.trained) & {g.id for g in self.planner.accepted}

    @invariant()
    def nothing_is_dropped_by_who_waits_for_stragglers(self) -> None:
        if self.planner.config.stragglers == "wait":
            assert self.planner.counts.over_age == self.planner.counts.expired == 0

    @invariant()
    def something_may_always_happen(self) -> None:
        planner = self.planner
        assert planner.running or planner.ready() or planner.room() or planner.version < planner.step


def _as_dict(counts: Counts) -> dict[str, int]:
    return {name: getattr(counts, name) for name in Counts.__slots__}


TestPlanner = PlannerMachine.TestCase
TestPlanner.settings = settings(max_examples=100, stateful_step_count=50, deadline=None)


class Generous(Planner):
    """Starts one group more than can be trained in time."""

    def room(self) -> int:
        return super().room() + 1


class Forgetful(Planner):
    """Loses a waiting group with every step."""

    def take(self) -> list[Group]:
        taken = super().take()
        self._accepted = self._accepted[1:]
        return taken


class LateTake(Planner):
    """Off by one: trains groups that are one update too old."""

    def lag(self, group: Group) -> int:
        return super().lag(group) - 1


@pytest.mark.parametrize("broken", [Generous, Forgetful, LateTake])
def test_a_planner_that_breaks_a_law_is_found(broken: type[Planner]) -> None:
    class Broken(PlannerMachine):
        planner_type = broken

    with pytest.raises(AssertionError, match="assert"):
        run_state_machine_as_test(
            Broken,
            settings=settings(
                max_examples=4000,  # it stops at the first that breaks; one in some hundreds does
                stateful_step_count=60,
                deadline=None,
                database=None,
                derandomize=True,
                phases=(Phase.generate,),
            ),
        )
