"""Schedulers: which task next. Adding one is one new file and one line in KINDS."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from snoozing_env.config import FrozenConfig, parse_config
from snoozing_env.errors import CatalogueError, ConfigError, did_you_mean
from snoozing_env.schedulers.base import LoadReport, Scheduler
from snoozing_env.schedulers.uniform import UniformConfig, UniformScheduler
from snoozing_env.types import TaskInfo

KINDS: dict[str, tuple[type[Any], type[Any]]] = {"uniform": (UniformConfig, UniformScheduler)}
"""Every scheduler by its config's `kind`; the config union, `--help` and the contract suite read this."""

SchedulerConfig = UniformConfig


def build_scheduler(
    config: Mapping[str, Any] | FrozenConfig, tasks: Sequence[TaskInfo], seed: int
) -> Scheduler:
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
    config_type, scheduler_type = KINDS[kind]
    check_tasks(tasks)
    return scheduler_type(parse_config(config_type, config, where="scheduler"), tasks, seed)


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


__all__ = ["KINDS", "LoadReport", "Scheduler", "SchedulerConfig", "build_scheduler", "check_tasks"]
