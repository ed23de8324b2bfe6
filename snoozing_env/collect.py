"""Collecting the batch of one step, as decisions: what to draw next, what to keep, when to stop. No clock, no waiting.

    buffer ─▶ open places ── none? ─────────────────────────────────────────────▶ the batch
                  │ some                                                              ▲
                  ▼                                                                   │
    ladder ─▶ next_draw() ─▶ tasks ─▶ the caller rolls out ─▶ add(groups): observe ALL ─▶ gate ─▶ buffer

A run and the simulator turn the same crank, so they cannot decide differently. Under exact shares of the batch each
place belongs to a dataset and is refilled from it (M1). A dataset that has nobody awake, or that has cost `lend_after`
groups a place without filling it, lends its open places to the others and is repaid later (M2).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from snoozing_env.buffers.fresh import FreshBuffer
from snoozing_env.gates import Admission, GateConfig, Ladder, Rung, judge, refill_size
from snoozing_env.places import Places, places_of, settle
from snoozing_env.schedulers import Curriculum, Scheduler
from snoozing_env.types import Group, Ints

MANY = 10**9


class Collector:
    """What the steps of a run have in common: scheduler, buffer, gate, ladder and the running survival."""

    def __init__(
        self,
        scheduler: Scheduler,
        buffer: FreshBuffer,
        *,
        gate: GateConfig,
        ladder: Ladder,
        draw: Callable[[int], Ints] | None = None,
    ) -> None:
        """`draw`: how n tasks are drawn where not from one dataset in particular; None = by the scheduler."""
        self.scheduler, self.buffer, self.gate, self.ladder = scheduler, buffer, gate, ladder
        self._draw = scheduler.draw if draw is None else draw
        self.survival: dict[str, float] = {}
        """Running estimate of ρ that sizes the refills: per dataset under exact shares, else one under "". Not one for
        all: the probes of a barren dataset would make the others' refills overshoot, and the surplus grow stale."""

    def begin(self, batch: int, *, version: int) -> Collection:
        """Open the batch of the step that trains `version`, filled as far as the buffer reaches."""
        return Collection(self, batch, version)

    def places(self, batch: int) -> Places:
        """Whose the places of the next batch are."""
        return places_of(self.scheduler, batch, self.ladder.config)

    def needs(self, places: Places) -> Mapping[str, int]:
        """Groups to generate by dataset so that about the open places come out; "" = from anywhere."""
        if not places.open:
            rate = np.mean([self.survival.get(name, 1.0) for name in places.givers or ("",)])
            return {"": refill_size(missing=places.free, survival=float(rate), limit=MANY)}
        return {
            name: refill_size(missing=n, survival=self.survival.get(name, 1.0), limit=places.budget(name))
            for name, n in places.open.items()
        }

    def draw(self, n: int, wanted: Mapping[str, int] | None) -> Ints:
        """n tasks, of the wanted datasets alone where some are named."""
        if wanted is None or not isinstance(self.scheduler, Curriculum):
            return self._draw(n)
        return self.scheduler.draw(n, missing=wanted)

    def learn(self, name: str, judged: Sequence[Admission]) -> None:
        """Move a dataset's survival towards that of a round."""
        rate = judged.count("admitted") / max(len(judged), 1)
        self.survival[name] = 0.7 * self.survival.get(name, 1.0) + 0.3 * rate


class Collection:
    """The batch of one step while it is being filled, and what it has cost so far."""

    def __init__(self, collector: Collector, batch: int, version: int) -> None:
        self._owner, self._batch, self.version = collector, batch, version
        self._expired_before = collector.buffer.expired
        self._places = collector.places(batch)
        self.groups: list[Group] = []
        """[≤B] informative groups, oldest first within a refill."""
        self.generated = self.tokens = self.valid = self.invalid = 0
        """Groups, their tokens, and their rollouts with and without a verdict."""
        self.rewards = 0.0
        """Sum over the valid rollouts, before the gate."""
        self.verdicts = Counter[Admission]()
        self.rung: Rung = "refill"
        self.rungs: list[Rung] = []
        """Rungs of the saturation ladder climbed beyond refilling."""
        self._budget_start = 0
        self._fill()

    @property
    def expired(self) -> int:
        """Groups that grew too old to train since the step began."""
        return self._owner.buffer.expired - self._expired_before

    @property
    def survival(self) -> float:
        """ρ: informative share of the groups generated for this step (F5)."""
        return self.verdicts["admitted"] / max(self.generated, 1)

    def next_draw(self) -> Ints:
        """Tasks to roll out now, each to be given to `add`; empty = the batch is as full as it gets.

        It is empty with no group at all when `dead_steps` full searches found nothing informative (F3).
        """
        while self._places.missing:
            self._climb()
            if self.rung == "partial" and not self._search_again():
                break
            if self.rung == "wake":
                self._owner.scheduler.wake(self._places.missing)
            drawn_B, dry = self._draw()
            if len(drawn_B):
                return drawn_B
            if not dry:  # every task of the pool is in flight elsewhere
                break
            self._fill()
        self._close()
        return np.zeros(0, np.int64)

    def add(self, finished: Sequence[Group], rescued: Sequence[Group] = ()) -> None:
        """Observe every group of a draw, keep the informative ones and those that `rescued` made so; the latter count as
        what they were, for the scheduler and for survival."""
        owner, gate = self._owner, self._owner.gate
        owner.scheduler.observe_many(group.outcome for group in finished)
        wide = self.rung in ("widen", "wake")
        judged: list[Admission] = [judge(gate, group.outcome, wide=wide) for group in finished]
        owner.buffer.put(g for g, verdict in zip(finished, judged, strict=True) if verdict == "admitted")
        owner.buffer.put(rescued)
        self._count(finished, judged)
        self._fill()
        self._places.charge(group.outcome.task for group in finished)
        self._fill()

    def _count(self, finished: Sequence[Group], judged: Sequence[Admission]) -> None:
        self.verdicts.update(judged)
        by_dataset: dict[str, list[Admission]] = {}
        for group, verdict in zip(finished, judged, strict=True):
            by_dataset.setdefault(self._places.dataset_of(group.outcome.task), []).append(verdict)
        for name, verdicts in by_dataset.items():
            self._owner.learn(name, verdicts)
        self.generated += len(finished)
        self.tokens += sum(group.tokens for group in finished)
        for group in finished:
            rewards = group.outcome.valid_rewards
            self.rewards += float(rewards.sum())
            self.valid += rewards.size
            self.invalid += group.outcome.rewards_G.size - rewards.size

    def _fill(self) -> None:
        self.groups += self._places.fill(self._owner.buffer, version=self.version)

    def _climb(self) -> None:
        self.rung = self._owner.ladder.rung(generated=self.generated - self._budget_start, batch=self._batch)
        if self.rung != "refill" and (not self.rungs or self.rungs[-1] != self.rung):
            self.rungs.append(self.rung)

    def _draw(self) -> tuple[Ints, bool]:
        """The next tasks, and whether a dataset turned out to have nobody awake."""
        places, ladder = self._places, self._owner.ladder.config
        limit = max(int(ladder.partial_after * self._batch) - (self.generated - self._budget_start), 1)
        needs = self._owner.needs(places)
        wanted = needs if places.open else places.givers
        n = min(sum(needs.values()), limit)
        drawn_B = self._owner.draw(n, wanted)
        short = wanted is not None and len(drawn_B) < n
        return drawn_B, short and places.lend_dry(wanted or (), drawn_B.tolist())

    def _search_again(self) -> bool:
        """At the end of the ladder: False = train on what there is, or stop; True = nothing at all, search once more."""
        self._places.lend(list(self._places.open))
        self._fill()
        if self.groups or self._owner.ladder.close_step(trained=0) == "stop":
            return False
        self._budget_start, self.rung = self.generated, "refill"
        return True

    def _close(self) -> None:
        if not self.groups:
            return
        self._owner.ladder.close_step(trained=len(self.groups))
        settle(self._owner.scheduler, self._places, self.groups)
