"""Tasks of a verifiers v1 task set ⇄ the scheduler's indices.

Works with any installed task set: the curriculum fields (`dataset`, `domain`, `difficulty_prior`, `snooze_factor`,
`cluster`, `side`) are read with defaults, so an environment that knows nothing of this project schedules as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.metadata import distributions
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import verifiers.v1 as vf
from pydantic import Field, ValidationError
from verifiers.v1.task import task_key
from verifiers.v1.utils.loaders import taskset_class

from snoozing_env.config import FrozenConfig, explain
from snoozing_env.errors import CatalogueError, ConfigError, did_you_mean
from snoozing_env.rollout.pool_lists import NO_LISTS, PoolCounts, apply_lists
from snoozing_env.schedulers import check_tasks
from snoozing_env.schedulers.priors import load_priors
from snoozing_env.types import TaskInfo


class EnvironmentConfig(FrozenConfig):
    """Which verifiers environment to run, and on which of its tasks."""

    id: str = "snooze-math"
    """Installed verifiers v1 package, e.g. `snooze-math`."""
    taskset: dict[str, Any] = Field(default_factory=dict)
    """Options of the task set, as under verifiers' `--env.taskset.*`."""
    limit: int | None = Field(default=None, ge=1)
    """Use only the first tasks; required for endless task sets."""
    harness: str | None = None
    """verifiers harness id, for every agent that names none itself; always takes verifiers' own episode. None = the
    direct path for single-turn tasks; otherwise the harness that the environment's package exports, else `null`
    where it offers tools (a process per rollout), else the in-process chat harness of snooze-kit."""
    reward_range: tuple[float, float] = (0.0, 1.0)
    """Smallest and largest total reward of the environment; mapped to [0, 1]."""
    priors: str = ""
    """Prior sidecar of `snooze stratify` (priors.parquet): its measured pass rates replace the task set's own
    `difficulty_prior`, task by task; empty = none."""
    exclude: str | None = None
    """exclude.jsonl of `snooze pool`: tasks on it are left out, matched by key, else by the hash of their text."""
    clusters: str | None = None
    """clusters.jsonl of `snooze pool`: tasks on it get its cluster, in place of the environment's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorMatch:
    """How a prior sidecar fits a task set."""

    path: str
    matched: int
    """Tasks whose prior it gave."""
    missing: int
    """Tasks it does not know; they keep the task set's own prior, if any."""
    unused: int
    """Its rows without a task here."""

    def __str__(self) -> str:
        return f"{self.path}: {self.matched} tasks matched, {self.missing} missing in it, {self.unused} rows unused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """N tasks and what a scheduler may know of them, in the same order."""

    config: EnvironmentConfig
    env: vf.Env
    tasks: tuple[vf.Task, ...]
    infos: tuple[TaskInfo, ...]
    domains: tuple[str, ...]
    priors: PriorMatch | None = None
    """None = no sidecar was asked for."""
    pooled: PoolCounts = NO_LISTS
    """What the lists of `snooze pool` did to the task set."""

    def __len__(self) -> int:
        return len(self.tasks)


def load_catalogue(config: EnvironmentConfig, overrides: Mapping[str, Any] | None = None) -> Catalogue:
    """Load the task set of an environment; `overrides` replace single task-set options (an evaluation split, say).

    Raises:
        ConfigError: the environment is not installed (with the nearest name) or refuses an option.
        CatalogueError: no tasks, duplicate keys, a dataset that cannot be found, an endless task set without a limit,
            a prior sidecar of other tasks, an exclusion or cluster list that fits none of the tasks or leaves none.
        StateError: the prior sidecar cannot be read.
        PoolError: such a list cannot be read.
    """
    env = _load_env(config, {**config.taskset, **(overrides or {})})
    taskset = env.taskset
    if config.limit is not None:
        taskset = taskset.take(config.limit)
    elif not taskset.bounded:
        raise CatalogueError(f"environment {config.id!r} yields tasks without end; set environment.limit")
    try:
        tasks = tuple(taskset)
    except (OSError, ValueError, RuntimeError) as error:
        raise CatalogueError(f"environment {config.id!r} cannot load its tasks: {error}") from error
    tasks, infos, pooled = apply_lists(
        tasks, [task_info(task) for task in tasks], exclude=config.exclude, clusters=config.clusters
    )
    check_tasks(infos)
    infos, match = _with_priors(infos, config.priors)
    domains = tuple(
        str(getattr(task.data, "domain", "") or info.dataset) for task, info in zip(tasks, infos, strict=True)
    )
    return Catalogue(
        config=config, env=env, tasks=tasks, infos=infos, domains=domains, priors=match, pooled=pooled
    )


def _with_priors(infos: tuple[TaskInfo, ...], path: str) -> tuple[tuple[TaskInfo, ...], PriorMatch | None]:
    """The tasks with the priors of a sidecar, matched by key, and how many that were."""
    if not path:
        return infos, None
    priors = load_priors(Path(path))
    known = dict(zip(priors.keys, priors.prior_N.tolist(), strict=True))
    matched = sum(info.key in known for info in infos)
    match = PriorMatch(path=path, matched=matched, missing=len(infos) - matched, unused=len(known) - matched)
    if not matched:
        raise CatalogueError(
            f"{path} has priors of {len(known)} tasks and none of the {len(infos)} tasks here is among them; stratify the "
            "same environment with the same task-set options (split, style), or leave environment.priors empty"
        )
    return tuple(replace(i, difficulty_prior=known.get(i.key, i.difficulty_prior)) for i in infos), match


def task_info(task: vf.Task) -> TaskInfo:
    """The curriculum fields of a task's data, typed or from the extra fields of its wire form."""
    data = task.data
    prior, factor = getattr(data, "difficulty_prior", None), getattr(data, "snooze_factor", None)
    return TaskInfo(
        key=durable_key(task),
        dataset=str(getattr(data, "dataset", "") or ""),
        difficulty_prior=None if prior is None else float(prior),
        snooze_factor=None if factor is None else float(factor),
        cluster=getattr(data, "cluster", None),
        duration_s=getattr(data, "duration_s", None),
        text=data.prompt_text,
        side=getattr(data, "side", None),
    )


def durable_key(task: vf.Task) -> str:
    """The task's own key, or a hash of its content: verifiers' default key also hashes the position, so state keyed
    by it would be lost whenever the task set is reordered or filtered (D6)."""
    if type(task).key is not vf.Task.key:
        return task.key
    return task_key(task.data.model_dump(mode="json", exclude_none=True, exclude={"idx"}))


def _load_env(config: EnvironmentConfig, taskset: Mapping[str, Any]) -> vf.Env:
    try:
        seats = _seats(config)
        resolved = vf.resolve_env_config({"taskset": {"id": config.id, **taskset}, **seats})
        return vf.load_environment(resolved)
    except ModuleNotFoundError as error:
        if config.harness is not None and str(error).startswith(f"harness {config.harness!r}"):
            raise ConfigError(f"environment.harness: {error}") from error
        if config.id.replace("-", "_").lower() not in str(error):
            raise
        known = _installed_environments()
        hint = did_you_mean(config.id, known) or (f" Installed: {', '.join(known)}." if known else "")
        raise ConfigError(
            f"environment {config.id!r} is not installed.{hint} Install it with: pip install {config.id}"
        ) from error
    except ValidationError as error:
        cls = vf.taskset_config_type(config.id)
        lines = explain(cls, error, where=f"environment {config.id!r}")
        raise ConfigError("\n".join(lines)) from error


def _seats(config: EnvironmentConfig) -> dict[str, dict[str, Any]]:
    """What each agent of an environment plays with where its author left that open.

    verifiers' own defaults are a paid remote sandbox and a harness that runs the model's shell commands.
    """
    harness = config.harness or _default_harness(config.id)
    seats: dict[str, dict[str, Any]] = {}
    for name, field in vf.env_config_type(config.id).model_fields.items():
        if isinstance(seat := field.default, vf.AgentConfig):
            seats[name] = {} if "runtime" in seat.model_fields_set else {"runtime": {"type": "subprocess"}}
            if seat.harness is None:
                seats[name]["harness"] = {"id": harness}
    return seats


def _default_harness(environment: str) -> str:
    exported = vf.default_harness_id(environment)
    if exported == environment:
        return exported
    taskset = taskset_class(environment)
    task = taskset.task_type()
    offers_tools = any(
        cls.toolsets.__func__ is not base.toolsets.__func__
        for cls, base in ((taskset, vf.Taskset), (task, vf.Task))
    )
    return "null" if offers_tools or find_spec("snooze_kit") is None else "snooze-kit"


def _installed_environments() -> list[str]:
    """Installed distributions that depend on verifiers, which is how its environments are recognised."""
    found = set[str]()
    for dist in distributions():
        requires = dist.requires or []
        if any(r.split(";")[0].strip().startswith("verifiers") and "extra ==" not in r for r in requires):
            found.add(dist.metadata["Name"])
    return sorted(found - {"snooze-kit", "snoozing-env"})
