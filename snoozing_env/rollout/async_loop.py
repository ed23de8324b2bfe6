"""The asynchronous rollout loop: generation goes on while the trainer trains, never further ahead than the bound.

    fill ── planner.room() ─▶ draws.portions ─▶ longest first ─▶ fly ×n ─┬─ finished ─▶ observe ─▶ gate ─▶ planner
      ▲                                                                 └─ lost ─▶ release, pause, fill again
      └── after every finish, every take, every published version
    next_batch ── waits until the planner is ready (or the ladder settles for less) ─▶ B groups, oldest weights first

Everything here runs in one event loop and nothing polls: each event calls `fill`. What goes wrong inside a rollout is
an invalid trajectory of the group runner, and so is a rollout that its group's deadline cut off: a group with enough
others is used without it. An engine that does not answer costs its groups, which start again, until `patience_s` have
passed without one that finished.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from snoozing_env.errors import EngineError, SaturationError
from snoozing_env.gates import Admission, GateConfig, Ladder, Rung, judge
from snoozing_env.pacing import Draws, Durations, Fate, Flight, Planner
from snoozing_env.rollout.loop import StepBatch, saturation_report
from snoozing_env.schedulers import Scheduler
from snoozing_env.types import Group, GroupOutcome

GRACE_S = 5.0
"""Seconds after a group's deadline in which its runner must have ended it; then the loop does."""


class Runner(Protocol):
    """Rolls out one task; the group runner in a run."""

    async def run(self, index: int, *, group_id: int, within_s: float | None = None) -> Group:
        """A finished group, at the latest after `within_s`: rollouts that are unfinished then are invalid. Raises
        `EngineError` when the engine cannot serve."""
        ...


class Watcher:
    """Told what becomes of every group, in the loop's thread, after the scheduler was; subclasses keep books."""

    def finished(self, group: Group, fate: Fate) -> None: ...

    def lost(self, flight: Flight) -> None: ...

    def cut_off(self, group: Group) -> None:
        """What there is of a lost group, whose deadline left it too few rollouts."""

    def expired(self, groups: Sequence[Group]) -> None:
        """Accepted groups that were too old when their step came."""

    async def rescue(self, group: Group) -> Group | None:
        """A group that failed as a whole, made informative by other means; None = it stays as it is."""
        return None


@dataclass(slots=True)
class Tally:
    """What was generated since the last step was taken."""

    generated: int = 0
    tokens: int = 0
    rewards: float = 0.0
    valid: int = 0
    invalid: int = 0
    lost: int = 0
    verdicts: Counter[Admission] = field(default_factory=Counter[Admission])
    rungs: list[Rung] = field(default_factory=list[Rung])
    budget_start: int = 0
    started_s: float = 0.0

    def add(self, group: Group, verdict: Admission) -> None:
        rewards = group.outcome.valid_rewards
        self.generated += 1
        self.tokens += group.tokens
        self.rewards += float(rewards.sum())
        self.valid += rewards.size
        self.invalid += group.outcome.rewards_G.size - rewards.size
        self.verdicts[verdict] += 1


class AsyncLoop:
    """Keeps the engine busy within the bound; `planner` says how far that is."""

    def __init__(
        self,
        runner: Runner,
        scheduler: Scheduler,
        planner: Planner,
        durations: Durations,
        *,
        gate: GateConfig,
        ladder: Ladder,
        keys: tuple[str, ...],
        watcher: Watcher | None = None,
    ) -> None:
        """`keys` [N]: the tasks' durable keys."""
        self.runner, self.scheduler, self.planner, self.durations = runner, scheduler, planner, durations
        self.gate, self.ladder, self.keys = gate, ladder, keys
        self.draws = Draws(scheduler, planner, durations, ladder.config)
        self._watcher = watcher or Watcher()
        self.next_group_id = 0
        self._flights: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()
        self._tally = Tally()
        self._error: BaseException | None = None
        self._failing_since: float | None = None
        self._failures = 0
        self._held_until = 0.0
        self._closed = False

    # -- the trainer's side -----------------------------------------------------------------------------

    async def next_batch(self) -> StepBatch:
        """The informative groups of the next step: B of them, or fewer after the last rung of the ladder.

        Raises:
            SaturationError: nothing informative was left in `dead_steps` full searches.
            EngineError: no group finished within `patience_s`.
        """
        self.fill()
        while not self._settled():
            self._check_alive()
            self._changed.clear()
            await self._changed.wait()
        step, expired = self.planner.step, self.planner.expire()
        if expired:
            self._watcher.expired(expired)
        groups = self.planner.take()
        self.draws.took()
        self.ladder.close_step(trained=len(groups))
        batch = self._batch(step, groups, expired=len(expired))
        self._tally = Tally(started_s=self._now())
        self.fill()
        return batch

    def publish(self, version: int) -> None:
        """The engine serves these weights now."""
        self.planner.publish(version)
        self.fill()

    def interrupt(self, error: BaseException) -> None:
        """End the wait for the next batch, or the next such wait, with this; nothing is taken and nothing starts."""
        self._error = self._error or error
        self._changed.set()

    async def close(self) -> None:
        """Cancel what is in flight; its tasks are idle again."""
        self._closed = True
        for flight in self._flights:
            flight.cancel()
        await asyncio.gather(*self._flights, return_exceptions=True)
        self.draws.close()

    # -- starting ---------------------------------------------------------------------------------------

    def fill(self) -> None:
        """Start as many groups as the bound, the ladder and the engine's health allow."""
        if self._closed or self._error or self._now() < self._held_until:
            return
        batch, tally = self.planner.batch, self._tally
        rung = self._rung()
        if rung == "partial":
            return
        if rung == "wake":
            self.scheduler.wake(max(batch - len(self.planner.accepted), 1))
        budget = int(self.ladder.config.partial_after * batch) + tally.budget_start - tally.generated
        room = self.planner.room()
        if room <= 0:
            return
        for task_B in self.draws.portions(min(room, max(budget - len(self.planner.running), 1))):
            for task in task_B.tolist():
                self._start(task)

    def _start(self, task: int, attempt: int = 0) -> None:
        id, self.next_group_id = self.next_group_id, self.next_group_id + 1
        flight = Flight(
            id=id,
            task=task,
            key=self.keys[task],
            version=self.planner.version,
            started_s=self._now(),
            predicted_s=float(self.durations.predict(np.array([task]))[0]),
            attempt=attempt,
        )
        self.planner.start(flight)
        running = asyncio.get_running_loop().create_task(self._fly(flight), name=f"group {id}")
        self._flights.add(running)
        running.add_done_callback(self._landed)

    # -- finishing --------------------------------------------------------------------------------------

    async def _fly(self, flight: Flight) -> None:
        within_s = self.planner.config.group_s
        try:
            async with asyncio.timeout(within_s + GRACE_S):
                group = await self.runner.run(flight.task, group_id=flight.id, within_s=within_s)
        except TimeoutError:
            self._give_up(flight, _without_verdict(flight))
        except EngineError as error:
            self._lose(flight)
            self.scheduler.release(flight.task)
            self._hold(error)
        except asyncio.CancelledError:
            self._lose(flight)
            self.scheduler.release(flight.task)
            raise
        else:
            self._failing_since, self._failures = None, 0
            if self._too_late(flight, group):
                self._give_up(flight, group.outcome, tokens=group.tokens)
                self._watcher.cut_off(group)
            else:
                self._finish(flight, group, await self._watcher.rescue(group))

    def _too_late(self, flight: Flight, group: Group) -> bool:
        """Whether the deadline left too little of a group to use; with `min_valid` rollouts it counts (A5)."""
        few = group.outcome.valid_rewards.size < self.gate.min_valid
        return few and self._now() - flight.started_s >= self.planner.config.group_s

    def _give_up(self, flight: Flight, outcome: GroupOutcome, *, tokens: int = 0) -> None:
        """A group that its deadline ended. The task may be the reason: the scheduler counts it as a try without a
        verdict, and the ladder as one of the groups in which a step found nothing."""
        self._lose(flight)
        self.scheduler.observe(outcome)
        self.draws.ended(flight.task, judged=True)
        self._tally.generated += 1
        self._tally.tokens += tokens
        self._tally.verdicts["too_few_valid"] += 1

    def _finish(self, flight: Flight, group: Group, rescued: Group | None) -> None:
        self.scheduler.observe(group.outcome)
        self.durations.observe(flight.task, group.outcome.duration_s or self._now() - flight.started_s)
        verdict = judge(self.gate, group.outcome, wide=self._rung() in ("widen", "wake"))
        used = group if rescued is None else rescued
        fate = self.planner.finish(flight.id, used, admitted=verdict == "admitted" or rescued is not None)
        self.draws.ended(flight.task, judged=True)
        self._tally.add(group, verdict)
        if fate == "over_age" and self.planner.config.over_age == "requeue":
            self.scheduler.offer(flight.task)
        self._watcher.finished(used, fate)

    def _lose(self, flight: Flight) -> None:
        self.planner.lose(flight.id)
        self.draws.ended(flight.task, judged=False)
        self._watcher.lost(flight)
        self._tally.lost += 1

    def _hold(self, error: EngineError) -> None:
        """Start nothing for a while after the engine failed, longer each time; give it up after `patience_s`."""
        now, patience = self._now(), self.planner.config.patience_s
        if self._failing_since is None:
            self._failing_since = now
        failing = now - self._failing_since
        if failing >= patience:
            self._error = EngineError(
                f"no group finished in {failing:.0f} s of failing dispatches; last: {error}"
            )
            return
        if now >= self._held_until:  # failures of one outage arrive together and count once
            self._failures += 1
            self._held_until = now + min(0.25 * 2**self._failures, 15.0, max(patience - failing, 0.01))
            asyncio.get_running_loop().call_at(self._held_until, self._go_on)

    def _go_on(self) -> None:
        self._held_until = 0.0  # asyncio may ring a little early, and nothing rings twice
        self._resume()

    def _resume(self) -> None:
        self.fill()
        self._changed.set()

    def _landed(self, task: asyncio.Task[None]) -> None:
        self._flights.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._error = self._error or error
        if not self._closed:
            self._resume()

    # -- deciding ---------------------------------------------------------------------------------------

    def _settled(self) -> bool:
        """Whether to take the step now."""
        if self._error is not None:
            raise self._error
        if self.planner.ready():
            return True
        if self._rung() != "partial" or self.planner.running:
            return False
        if self.planner.accepted:
            return True
        if self.ladder.close_step(trained=0) == "stop":
            raise SaturationError(
                saturation_report(self._tally.generated, self._tally.verdicts, self.scheduler)
            )
        self._tally.budget_start = self._tally.generated
        self.fill()
        return False

    def _check_alive(self) -> None:
        """Something must be on its way, or this would wait for ever."""
        planner = self.planner
        if not planner.running and not planner.room() and self._now() >= self._held_until:
            raise RuntimeError(
                f"step {planner.step} waits and nothing may start: weights {planner.version} are served and the bound is "
                f"{planner.config.max_staleness}; publish newer weights before the next batch"
            )

    def _rung(self) -> Rung:
        tally = self._tally
        rung = self.ladder.rung(generated=tally.generated - tally.budget_start, batch=self.planner.batch)
        if rung != "refill" and tally.rungs[-1:] != [rung]:
            tally.rungs.append(rung)
        return rung

    def _batch(self, step: int, groups: list[Group], *, expired: int) -> StepBatch:
        tally = self._tally
        return StepBatch(
            groups=tuple(groups),
            version=step,
            generated_groups=tally.generated,
            generated_tokens=tally.tokens,
            admissions=dict(tally.verdicts),
            reward_mean=tally.rewards / tally.valid if tally.valid else None,
            invalid_rollouts=tally.invalid,
            carried_groups=len(self.planner.accepted),
            expired_groups=expired,
            rungs=tuple(tally.rungs),
            seconds=self._now() - tally.started_s,
        )

    def _now(self) -> float:
        return asyncio.get_running_loop().time()


def _without_verdict(flight: Flight) -> GroupOutcome:
    """A group that ran into its deadline: two rollouts, neither valid."""
    return GroupOutcome(
        task=flight.task, rewards_G=np.zeros(2), valid_G=np.zeros(2, np.bool_), version=flight.version
    )
