"""Random histories of one buffer as a hypothesis state machine."""
# pyright: basic
# hypothesis' decorators are untyped where rules return nothing.

from __future__ import annotations

from typing import ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from snoozing_env.testing.buffer_laws import belongs_to, finished, reborn, substance
from snoozing_env.testing.histories import run_histories
from snoozing_env.testing.stocks import BufferSubject, Stock
from snoozing_env.types import Group


def run_buffer_machine(subject: BufferSubject) -> None:
    """Try `subject.examples` random histories; raises what the smallest failing one raised."""
    run_histories(BufferHistory, subject)


class BufferHistory(RuleBasedStateMachine):
    """Random puts, takes, verdicts, weight updates and restarts, against what was put in and given out."""

    subject: ClassVar[BufferSubject]
    stock: Stock | None = None

    @initialize(seed=st.integers(0, 5))
    def build(self, seed: int) -> None:
        self.stock = self.subject.build(seed)
        self.put_in: list[Group] = []
        self.given: list[tuple[object, ...]] = []
        self.poisoned: set[str] = set()
        self.version = 0

    @rule(n=st.integers(0, 4), lag=st.integers(0, 2), tasks=st.integers(1, 9))
    def put(self, n: int, lag: int, tasks: int) -> None:
        """Groups that took up to two updates to finish, of few or of many tasks."""
        for _ in range(n):
            id = len(self.put_in)
            group = finished(id, version=max(self.version - lag, 0), key=f"task-{id % tasks}")
            self.put_in.append(group)
            self._stock.put(group)

    @rule(n=st.integers(0, 3), seed=st.integers(6, 9))
    def take(self, n: int, seed: int) -> None:
        twin = reborn(self.subject, self._stock, seed=seed)
        taken = self._stock.take(n, version=self.version, verify=self._verify)
        found = [substance(group) for group in taken]
        alike = [substance(group) for group in twin.take(n, version=self.version, verify=self._verify)]
        assert alike == found, "a restarted buffer hands out something else"
        assert len(taken) <= n
        assert len(set(found)) == len(found), "a step got a group twice"
        for group in taken:
            assert belongs_to(group, self.put_in), f"nobody put {substance(group)} in"
            self._check_age(group)
            assert self._verify(group) or not self.subject.verifies, "a rejected entry was handed out"
        if not self.subject.gives_again:
            assert not set(found) & set(self.given), "a group was given to two steps"
        self.given += found

    def _check_age(self, group: Group) -> None:
        if self.subject.bound is not None:
            lag = self.version - group.outcome.version
            assert lag <= self.subject.bound, (
                f"a lag of {lag} was handed out, the bound is {self.subject.bound}"
            )

    @rule(updates=st.integers(1, 3))
    def train(self, updates: int) -> None:
        self.version += updates

    @rule()
    def expire(self) -> None:
        before = len(self._stock)
        gone = self._stock.expire(version=self.version)
        assert len(self._stock) == before - gone
        for group in self._stock.groups:
            self._check_age(group)

    @precondition(lambda self: self.put_in)
    @rule(data=st.data())
    def poison(self, data: st.DataObject) -> None:
        """The grader changes its mind about all answers to a task."""
        self.poisoned.add(data.draw(st.sampled_from(sorted({group.key for group in self.put_in}))))

    def _verify(self, group: Group) -> bool:
        return group.key not in self.poisoned

    @rule(seed=st.integers(6, 9))
    def restart(self, seed: int) -> None:
        twin = reborn(self.subject, self._stock, seed=seed)
        assert list(map(substance, twin.groups)) == list(map(substance, self._stock.groups))
        assert twin.state() == self._stock.state()
        self.stock = twin

    @invariant()
    def within_capacity(self) -> None:
        if self.stock is not None:
            assert len(self.stock) == len(self.stock.groups) <= self.subject.capacity

    @property
    def _stock(self) -> Stock:
        assert self.stock is not None, "hypothesis runs initialize rules first"
        return self.stock
