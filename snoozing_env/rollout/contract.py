"""`snooze check`: the environment contract over any installed task set."""

from __future__ import annotations

import time
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import verifiers.v1 as vf
from verifiers.v1.utils.loaders import taskset_class

from snoozing_env.errors import ConfigError
from snoozing_env.pool.disjoint import SharedProblems, shared_problems
from snoozing_env.rollout.catalogue import EnvironmentConfig, load_catalogue

GENERATED = 2_000
"""Tasks per side that an ordinary check generates; the benchmark makes 100,000."""
LEAST_PER_SECOND = 5_000
"""Tasks a generator makes per CPU second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratorReport:
    """What the two sides of a generator share, and how fast it is."""

    train: int
    held_out: int
    per_second: float
    """Tasks per CPU second, both sides."""
    shared: SharedProblems


def check_environment(name: str, options: Sequence[str]) -> list[str]:
    """Broken promises in words, empty when the contract holds; options are `key=value` in TOML notation.

    The contract of snooze-kit, the same tasks in fresh processes, and (for a generator) train and held-out sides apart.

    Raises:
        ConfigError: the environment is not installed, an option is malformed, or snooze-kit is missing.
        CatalogueError: the task set does not load.
    """
    try:
        from snooze_kit import check, check_processes
    except ModuleNotFoundError as error:
        raise ConfigError("the contract check is part of snooze-kit; pip install snooze-kit") from error
    parsed = _parse(options)
    catalogue = load_catalogue(EnvironmentConfig(id=name, taskset=parsed))
    findings = [*check(catalogue.env.taskset), *check_processes({"id": name, **parsed})]
    lines = [f"{f.rule}: {f.text}" + (f" (task {f.key})" if f.key else "") for f in findings]
    return [*lines, *_generator_findings(name)]


def check_generator(name: str, size: int = GENERATED) -> GeneratorReport | None:
    """Generate `size` tasks to train on and a quarter as many held out; None where the environment is no generator.

    An environment with a generator says so by a class method `generator_options(split, size)` of its task set.
    """
    options = getattr(taskset_class(name), "generator_options", None)
    if options is None:
        return None
    began = time.process_time()
    train, held_out = (
        list(load_catalogue(EnvironmentConfig(id=name, taskset=options(split, count))).tasks)
        for split, count in (("train", size), ("eval", size // 4))
    )
    spent = time.process_time() - began
    return GeneratorReport(
        train=len(train),
        held_out=len(held_out),
        per_second=(len(train) + len(held_out)) / spent,
        shared=shared_problems(
            [task.data.prompt_text for task in train],
            [task.data.prompt_text for task in held_out],
            canonical=(_canonical(train), _canonical(held_out)),
        ),
    )


def _canonical(tasks: Sequence[vf.Task]) -> list[str]:
    return [form() for task in tasks if (form := getattr(task, "canonical", None)) is not None]


def _generator_findings(name: str) -> list[str]:
    report = check_generator(name)
    if report is None or not report.shared.worst:
        return []
    shared = report.shared
    return [
        f"train-held-out-disjoint: of {report.held_out} held-out tasks {shared.exact} are trained on word for word, "
        f"{shared.canonical} in canonical form, {shared.near} nearly (Jaccard); e.g. {shared.examples[:2]}"
    ]


def _parse(options: Sequence[str]) -> dict[str, Any]:
    parsed: dict[str, Any] = {}
    for option in options:
        key, equals, value = option.partition("=")
        if not equals or not key:
            raise ConfigError(f"{option!r} is no option; write key=value, e.g. source=arithmetic or size=50")
        parsed[key] = parse_option(value)
    return parsed


def parse_option(value: str) -> Any:
    """A value in TOML notation, or the text itself where it is none: 50, true, [1, 2], arithmetic."""
    try:
        return tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return value
