"""Schedulers: which task next. A new one is one file (options, config, selector) and one line in `SchedulerConfig`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, get_args

from pydantic import Field

from snoozing_env.config import parse_config
from snoozing_env.errors import CatalogueError, ConfigError, did_you_mean
from snoozing_env.schedulers.band import BandConfig
from snoozing_env.schedulers.base import LoadReport, Scheduler
from snoozing_env.schedulers.curriculum import Curriculum
from snoozing_env.schedulers.dots import DotsConfig
from snoozing_env.schedulers.learnability import LearnabilityConfig
from snoozing_env.schedulers.lze import LzeConfig
from snoozing_env.schedulers.prioritized import PrioritizedConfig
from snoozing_env.schedulers.progress import ProgressConfig
from snoozing_env.schedulers.shared import CurriculumConfig
from snoozing_env.schedulers.staged import StagedConfig
from snoozing_env.schedulers.thompson import ThompsonConfig
from snoozing_env.schedulers.uniform import UniformConfig
from snoozing_env.types import TaskInfo

SchedulerConfig = Annotated[
    UniformConfig
    | BandConfig
    | ThompsonConfig
    | LearnabilityConfig
    | PrioritizedConfig
    | ProgressConfig
    | LzeConfig
    | DotsConfig
    | StagedConfig,
    Field(discriminator="kind"),
]
"""A recipe's `[scheduler]` table; a table without `kind` is uniform."""

KINDS: dict[str, type[CurriculumConfig]] = {
    config.model_fields["kind"].default: config for config in get_args(get_args(SchedulerConfig)[0])
}
"""Every scheduler's config by its `kind`; `--help` and the contract suite read this."""


def build_scheduler(
    config: Mapping[str, Any] | CurriculumConfig, tasks: Sequence[TaskInfo], seed: int
) -> Curriculum:
    """A scheduler over `tasks` from a recipe's `[scheduler]` table.

    Raises:
        ConfigError: unknown kind or key (with the nearest known one), or a value out of range.
        CatalogueError: no tasks, or two tasks share a key.
    """
    kind = config.get("kind", "uniform") if isinstance(config, Mapping) else getattr(config, "kind", None)
    if kind not in KINDS:
        raise ConfigError(
            f"scheduler.kind {kind!r} is unknown.{did_you_mean(str(kind), KINDS)} Known: {', '.join(sorted(KINDS))}."
        )
    check_tasks(tasks)
    return Curriculum(parse_config(KINDS[kind], config, where="scheduler"), tasks, seed)


def check_tasks(tasks: Sequence[TaskInfo]) -> None:
    """Raises `CatalogueError` unless there is at least one task and every key is unique (D6)."""
    if not tasks:
        raise CatalogueError("the task set is empty; check the environment's split, size and filters")
    first: dict[str, int] = {}
    for i, task in enumerate(tasks):
        if task.key in first:
            raise CatalogueError(
                f"tasks {first[task.key]} and {i} share the key {task.key!r}; keys identify state across runs, so drop "
                "the duplicate or give the tasks distinct ids"
            )
        first[task.key] = i


__all__ = [
    "KINDS",
    "Curriculum",
    "CurriculumConfig",
    "LoadReport",
    "Scheduler",
    "SchedulerConfig",
    "UniformConfig",
    "build_scheduler",
    "check_tasks",
]
