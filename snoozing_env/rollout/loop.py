"""The synchronous rollout loop: one call collects the informative groups of one training step.

    step.next_draw() ─▶ tasks ─▶ runner ×n (gathered) ─▶ step.add(groups) ─▶ still places open? draw again
                                     │
                                     └─▶ on_finished: the outcome log, stored successes

What is drawn, kept and given up is decided in `snoozing_env.collect`; this is the shell that waits. Every wait here is
on the runner's gather, which the deadlines of group, rollout and verdict bound; no group is in flight between two
calls, so a checkpoint taken after a step needs no in-flight ledger.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np

from snoozing_env.buffers.fresh import FreshBuffer
from snoozing_env.collect import Collection, Collector
from snoozing_env.errors import SaturationError
from snoozing_env.gates import Admission, GateConfig, Ladder, Rung
from snoozing_env.pacing.rounds import Rounds
from snoozing_env.rollout.engines.base import Engine
from snoozing_env.rollout.runner import run_all
from snoozing_env.schedulers import Scheduler
from snoozing_env.types import Group, GroupOutcome, Ints, Trajectory


@dataclass(frozen=True, slots=True, kw_only=True)
class StepBatch:
    """What one step trains on and what it cost."""

    groups: tuple[Group, ...]
    """[≤B] informative groups, oldest first."""
    version: int
    generated_groups: int
    generated_tokens: int
    admissions: dict[Admission, int]
    """Verdicts of the gate over the groups generated for this step."""
    reward_mean: float | None
    """Mean over every valid generated rollout, before the gate; None when nothing was generated."""
    invalid_rollouts: int
    carried_groups: int
    """Informative groups that wait for the next step."""
    expired_groups: int
    rungs: tuple[Rung, ...]
    """Rungs of the saturation ladder that this step climbed beyond refilling."""
    seconds: float
    replayed: int = 0
    """Of the groups, those that were trained before."""
    anchors: tuple[Trajectory, ...] = ()
    """Stored successes that are trained beside the groups."""

    @property
    def to_train(self) -> tuple[Group, ...]:
        """The groups, then the anchors, which the trainer gets as one more of any size."""
        if not self.anchors:
            return self.groups
        outcome = GroupOutcome(task=0, rewards_G=np.ones(len(self.anchors)), version=self.version)
        return (*self.groups, Group(id=-1, key="", outcome=outcome, trajectories=self.anchors))

    @property
    def trained_tokens(self) -> int:
        return sum(group.tokens for group in self.groups)

    @property
    def truncated_share(self) -> float | None:
        """Share of the valid trained rollouts that hit the token limit."""
        valid = [t.truncated for group in self.groups for t in group.trajectories if t.valid]
        return sum(valid) / len(valid) if valid else None

    @property
    def survival(self) -> float:
        """ρ: informative share of the groups generated for this step (F5)."""
        return self.admissions.get("admitted", 0) / max(self.generated_groups, 1)

    @property
    def lag_mean(self) -> float:
        """Mean weight updates between first token and training."""
        return sum(self.version - g.outcome.version for g in self.groups) / max(len(self.groups), 1)


class ServedRunner(Protocol):
    """Rolls out one task with an engine; the group runner in a run."""

    @property
    def engine(self) -> Engine: ...

    async def run(self, index: int, *, group_id: int, within_s: float | None = None) -> Group:
        """A finished group, at the latest after `within_s`: rollouts that are unfinished then are invalid. Raises
        `EngineError` when the engine cannot serve."""
        ...


class SyncLoop:
    """Draws, rolls out, observes and gates until a step has its batch (k = 0 in requirement A2)."""

    def __init__(
        self,
        runner: ServedRunner,
        scheduler: Scheduler,
        buffer: FreshBuffer,
        *,
        gate: GateConfig,
        ladder: Ladder,
        group_s: float | None = None,
        rounds: Rounds | None = None,
        on_finished: Callable[[Sequence[Group], int], None] | None = None,
        rescue: Callable[[Group], Awaitable[Group | None]] | None = None,
    ) -> None:
        """`group_s`: seconds a group may take; unfinished rollouts are cancelled then (A5). None = no limit.
        `rounds`: tail batching."""
        self.runner, self.scheduler, self.buffer, self.ladder = runner, scheduler, buffer, ladder
        self._group_s = group_s
        self._rounds = rounds
        self._step = (0, 1)
        """Version that is trained, and its batch."""
        draw = None if rounds is None else partial(self._draw_in_rounds, rounds)
        self.collector = Collector(scheduler, buffer, gate=gate, ladder=ladder, draw=draw)
        self.next_group_id = 0
        self._on_finished, self._rescue = on_finished, rescue
        """Told of every finished group, informative or not, and the version that is trained, once the scheduler knows."""

    async def collect(self, batch: int, *, version: int) -> StepBatch:
        """The informative groups of one step: `batch` of them, or fewer after the last rung of the ladder.

        Raises:
            SaturationError: nothing informative was left in `dead_steps` full searches; says what was found instead.
            EngineError: the engine cannot serve.
        """
        if self.runner.engine.version != version:
            raise RuntimeError(
                f"the engine serves version {self.runner.engine.version}, the step trains {version}; publish first"
            )
        started, self._step = time.perf_counter(), (version, batch)
        step = self.collector.begin(batch, version=version)
        while len(drawn := step.next_draw()):
            first, self.next_group_id = self.next_group_id, self.next_group_id + len(drawn)
            finished = await run_all(
                self.runner.run(int(t), group_id=first + i, within_s=self._group_s)
                for i, t in enumerate(drawn)
            )
            if self._rounds is not None:
                for group in finished:
                    self._rounds.durations.observe(group.outcome.task, group.outcome.duration_s)
            step.add(finished, await self._rescued(finished))
            if self._on_finished is not None:
                self._on_finished(finished, version)
        if not step.groups:
            raise SaturationError(saturation_report(step.generated, step.verdicts, self.scheduler))
        return self._step_batch(step, started)

    def _draw_in_rounds(self, rounds: Rounds, n: int) -> Ints:
        version, batch = self._step
        return rounds.draw(n, step=version, batch=batch)

    async def _rescued(self, finished: Sequence[Group]) -> list[Group]:
        """Groups that a stored success gives a gradient."""
        if self._rescue is None:
            return []
        joined = [await self._rescue(group) for group in finished]
        return [group for group in joined if group is not None]

    def _step_batch(self, step: Collection, started: float) -> StepBatch:
        return StepBatch(
            groups=tuple(step.groups),
            version=step.version,
            generated_groups=step.generated,
            generated_tokens=step.tokens,
            admissions=dict(step.verdicts),
            reward_mean=step.rewards / step.valid if step.valid else None,
            invalid_rollouts=step.invalid,
            carried_groups=len(self.buffer),
            expired_groups=step.expired,
            rungs=tuple(step.rungs),
            seconds=time.perf_counter() - started,
        )


def saturation_report(generated: int, verdicts: Counter[Admission], scheduler: Scheduler) -> str:
    """Why a search found nothing, and what to do."""
    found = ", ".join(f"{n} {_MEANING[verdict]}" for verdict, n in verdicts.most_common())
    asleep = scheduler.metrics().get("asleep_share", 0.0)
    return (
        f"no informative group among the last {generated} generated: {found}. {asleep:.0%} of the tasks are asleep. "
        "Add tasks the policy solves sometimes (harder ones if most are all correct), or check the grader if most are invalid."
    )


_MEANING: dict[Admission, str] = {
    "admitted": "informative",
    "all_max": "all correct",
    "all_min": "all wrong",
    "no_spread": "with equal rewards",
    "out_of_band": "outside the band filter",
    "too_few_valid": "with too few valid rollouts",
}
