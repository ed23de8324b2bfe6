"""The synchronous rollout loop: one call collects the informative groups of one training step.

    buffer.take(B) ── enough? ──────────────────────────────────────────────▶ B groups
         │ no                                                                    ▲
         ▼                                                                       │
    refill_size ─▶ scheduler.draw(n) ─▶ runner ×n (gathered) ─▶ observe ALL ─▶ gate ─▶ buffer.put
         ▲                                                                       │
         └──────── ladder: refill → widen band → wake sleepers → partial ◀───────┘ still missing

Every wait here is on the runner's gather, which the engine and the grading deadline bound; no group is in flight
between two calls, so a checkpoint taken after a step needs no in-flight ledger.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from snoozing_env.buffers.fresh import FreshBuffer
from snoozing_env.errors import SaturationError
from snoozing_env.gates import Admission, GateConfig, Ladder, Rung, judge, refill_size
from snoozing_env.rollout.runner import GroupRunner, run_all
from snoozing_env.schedulers import Scheduler
from snoozing_env.types import Group


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

    @property
    def trained_tokens(self) -> int:
        return sum(group.tokens for group in self.groups)

    @property
    def survival(self) -> float:
        """ρ: informative share of the groups generated for this step (F5)."""
        return self.admissions.get("admitted", 0) / max(self.generated_groups, 1)

    @property
    def lag_mean(self) -> float:
        """Mean weight updates between first token and training."""
        return sum(self.version - g.outcome.version for g in self.groups) / max(len(self.groups), 1)


@dataclass(slots=True)
class _Tally:
    """Counts of one step while it is being collected."""

    generated: int = 0
    tokens: int = 0
    rewards: float = 0.0
    valid: int = 0
    invalid: int = 0
    budget_start: int = 0


class SyncLoop:
    """Draws, rolls out, observes and gates until a step has its batch (k = 0 in requirement A2)."""

    def __init__(
        self,
        runner: GroupRunner,
        scheduler: Scheduler,
        buffer: FreshBuffer,
        *,
        gate: GateConfig,
        ladder: Ladder,
    ) -> None:
        self.runner, self.scheduler, self.buffer = runner, scheduler, buffer
        self.gate, self.ladder = gate, ladder
        self.survival = 1.0
        """Running estimate of ρ that sizes the refills."""
        self.next_group_id = 0

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
        started, expired = time.perf_counter(), self.buffer.expired
        tally, verdicts, rungs = _Tally(), Counter[Admission](), list[Rung]()
        groups = self.buffer.take(batch, version=version)
        while len(groups) < batch:
            rung = self.ladder.rung(generated=tally.generated - tally.budget_start, batch=batch)
            if rung != "refill" and (not rungs or rungs[-1] != rung):
                rungs.append(rung)
            if rung == "partial" and not self._give_up(groups, tally, verdicts):
                break
            if rung == "wake":
                self.scheduler.wake(batch - len(groups))
            await self._round(batch - len(groups), batch, tally, verdicts, wide=rung in ("widen", "wake"))
            groups += self.buffer.take(batch - len(groups), version=version)
        self.ladder.close_step(trained=len(groups))
        return StepBatch(
            groups=tuple(groups),
            version=version,
            generated_groups=tally.generated,
            generated_tokens=tally.tokens,
            admissions=dict(verdicts),
            reward_mean=tally.rewards / tally.valid if tally.valid else None,
            invalid_rollouts=tally.invalid,
            carried_groups=len(self.buffer),
            expired_groups=self.buffer.expired - expired,
            rungs=tuple(rungs),
            seconds=time.perf_counter() - started,
        )

    async def _round(
        self, missing: int, batch: int, tally: _Tally, verdicts: Counter[Admission], *, wide: bool
    ) -> None:
        """Generate, observe and gate as many groups as should fill the gap."""
        limit = max(int(self.ladder.config.partial_after * batch) - (tally.generated - tally.budget_start), 1)
        drawn = self.scheduler.draw(refill_size(missing=missing, survival=self.survival, limit=limit))
        first, self.next_group_id = self.next_group_id, self.next_group_id + len(drawn)
        finished = await run_all(self.runner.run(int(t), group_id=first + i) for i, t in enumerate(drawn))
        self.scheduler.observe_many(group.outcome for group in finished)
        judged = [judge(self.gate, group.outcome, wide=wide) for group in finished]
        self.buffer.put(g for g, verdict in zip(finished, judged, strict=True) if verdict == "admitted")
        verdicts.update(judged)
        tally.generated += len(finished)
        tally.tokens += sum(group.tokens for group in finished)
        for group in finished:
            rewards = group.outcome.valid_rewards
            tally.rewards += float(rewards.sum())
            tally.valid += rewards.size
            tally.invalid += group.outcome.rewards_G.size - rewards.size
        self.survival = 0.7 * self.survival + 0.3 * judged.count("admitted") / max(len(judged), 1)

    def _give_up(self, groups: Sequence[Group], tally: _Tally, verdicts: Counter[Admission]) -> bool:
        """At the end of the ladder: False = train on what there is, True = nothing at all, search once more."""
        if groups:
            return False
        if self.ladder.close_step(trained=0) == "stop":
            raise SaturationError(saturation_report(tally.generated, verdicts, self.scheduler))
        tally.budget_start = tally.generated
        return True


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
