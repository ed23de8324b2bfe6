"""One optimizer step as a line of the run log, from what each part of a run says of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from snoozing_env.report.records import StepRecord
from snoozing_env.rollout.loop import StepBatch
from snoozing_env.schedulers import Curriculum

EVENTS = ("snoozed", "woken", "forgotten")


class SnoozeEvents:
    """What the scheduler's running totals gained since they were last asked for."""

    def __init__(self, scheduler: Curriculum) -> None:
        self._scheduler = scheduler
        self._counts = self._totals()

    def since(self) -> dict[str, int]:
        """By event, since the last call or `restart`."""
        before, self._counts = self._counts, self._totals()
        return {name: int(self._counts[name] - before[name]) for name in EVENTS}

    def restart(self) -> None:
        """Count from here, as after a checkpoint was loaded."""
        self._counts = self._totals()

    def _totals(self) -> dict[str, float]:
        metrics = self._scheduler.metrics()
        return {name: metrics[name] for name in EVENTS}


def step_record(
    step: int,
    batch: StepBatch,
    losses: Mapping[str, Any],
    *,
    pool: Mapping[str, float],
    histogram: tuple[int, ...],
    **more: Any,
) -> StepRecord:
    """The record of a finished step.

    Args:
        losses: what TRL reported.
        pool: the scheduler's metrics.
        histogram: [10] tasks by estimated pass rate.
        more: further fields of the record.
    """
    return StepRecord(
        step=step,
        version=step,
        generated_groups=batch.generated_groups,
        trained_groups=len(batch.groups),
        generated_tokens=batch.generated_tokens,
        trained_tokens=batch.trained_tokens,
        survival=batch.survival if batch.generated_groups else None,
        asleep_share=pool["asleep_share"],
        passes=pool["passes"],
        reward_mean=batch.reward_mean,
        pass_rate_histogram=histogram,
        carried_groups=batch.carried_groups,
        invalid_rollouts=batch.invalid_rollouts,
        lag_mean=batch.lag_mean,
        loss=losses.get("loss"),
        grad_norm=losses.get("grad_norm"),
        clip_fraction=losses.get("clip_ratio/region_mean", losses.get("cispo_clip_ratio")),
        entropy=losses.get("entropy"),
        ratio_mean=losses.get("ratio/mean", losses.get("ratio")),
        logprob_gap=losses.get("ratio/logprob_gap"),
        truncated=batch.truncated_share,
        rungs=batch.rungs,
        seconds_rollout=batch.seconds,
        tasks=tuple(g.key for g in batch.groups),
        **more,
    )
