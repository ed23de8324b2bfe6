"""Held-out evaluation on a fixed, unfiltered task set: the only place to read progress off (F6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from pydantic import Field

from snoozing_env.config import FrozenConfig
from snoozing_env.errors import CatalogueError
from snoozing_env.intervals import clustered
from snoozing_env.rollout.catalogue import Catalogue
from snoozing_env.rollout.engines.base import SamplingParams
from snoozing_env.rollout.runner import GroupRunner, run_all
from snoozing_env.types import Floats, Group

SAMPLES_SHOWN = 12


class EvaluationConfig(FrozenConfig):
    """When and how the policy is measured."""

    every: int = Field(default=10, ge=1)
    """Training steps between two evaluations; the first and the last step are always evaluated."""
    samples: int = Field(default=1, ge=1)
    """Completions per held-out task."""
    temperature: float = Field(default=1.0, ge=0)
    """Sampling temperature; 0 = greedy."""
    taskset: dict[str, Any] = Field(default_factory=lambda: {"split": "eval"})
    """Task-set options that differ from the training set's, `split` above all."""
    limit: int | None = Field(default=None, ge=1)
    """Use only the first tasks of the held-out set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """Accuracy over a held-out set."""

    accuracy: float
    low: float
    """95 % interval over tasks."""
    high: float
    n_tasks: int
    n_samples: int
    by_domain: dict[str, float]
    by_side: dict[str, float]
    """Per one-sided behaviour (`side` of the task data); {} where tasks name none."""
    groups: tuple[Group, ...]

    def samples(self) -> list[dict[str, Any]]:
        """A few prompt / answer pairs for the report, spread over the set."""
        chosen = self.groups[:: max(len(self.groups) // SAMPLES_SHOWN, 1)][:SAMPLES_SHOWN]
        return [
            {
                "prompt": g.prompt,
                "completion": g.trajectories[0].text,
                "gold": g.gold,
                "reward": g.trajectories[0].reward,
            }
            for g in chosen
        ]


async def evaluate(runner: GroupRunner, config: EvaluationConfig) -> Evaluation:
    """Mean reward per held-out task; tasks whose every rollout is invalid are left out and so counted in n_tasks.

    Raises:
        EngineError: the engine cannot serve.
    """
    params = SamplingParams(max_tokens=runner.config.max_tokens, temperature=config.temperature)
    n = len(runner.catalogue)
    groups = await run_all(runner.run(i, group_id=i, sampling=params, n=config.samples) for i in range(n))
    judged = [g for g in groups if g.outcome.valid_rewards.size]
    if not judged:
        reason = next((t.error for g in groups for t in g.trajectories if t.error), "unknown")
        raise CatalogueError(
            f"no rollout of the {n} held-out tasks got a verdict; the first failure was: {reason}"
        )
    means: Floats = np.array([g.outcome.valid_rewards.mean() for g in judged])
    low, high = clustered(means)
    return Evaluation(
        accuracy=float(means.mean()),
        low=low,
        high=high,
        n_tasks=len(judged),
        n_samples=sum(int(g.outcome.valid_rewards.size) for g in judged),
        by_domain=_mean_by(runner.catalogue.domains, judged, means),
        by_side=_mean_by([info.side or "" for info in runner.catalogue.infos], judged, means),
        groups=tuple(judged),
    )


def check_held_out(train: Catalogue, held_out: Catalogue) -> None:
    """Raises `CatalogueError` when a held-out task is also trained on."""
    shared = {t.key for t in train.infos} & {t.key for t in held_out.infos}
    if shared:
        raise CatalogueError(
            f"{len(shared)} of the {len(held_out)} held-out tasks are also trained on (first: {min(shared)!r}); give "
            "[evaluation.taskset] a split or source of its own"
        )


def _mean_by(names: Sequence[str], groups: Sequence[Group], means: Floats) -> dict[str, float]:
    """Mean per name of the groups' tasks, unnamed ones left out."""
    values: dict[str, list[float]] = {}
    for group, mean in zip(groups, means, strict=True):
        if name := names[group.outcome.task]:
            values.setdefault(name, []).append(float(mean))
    return {name: float(np.mean(v)) for name, v in sorted(values.items())}
