"""`snooze check`: the environment contract over any installed task set."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from typing import Any

from snoozing_env.errors import ConfigError
from snoozing_env.rollout.catalogue import EnvironmentConfig, load_catalogue


def check_environment(name: str, options: Sequence[str]) -> list[str]:
    """Broken promises in words, empty when the contract holds; options are `key=value` in TOML notation.

    Raises:
        ConfigError: the environment is not installed, an option is malformed, or snooze-kit is missing.
        CatalogueError: the task set does not load.
    """
    try:
        from snooze_kit import check
    except ModuleNotFoundError as error:
        raise ConfigError("the contract check is part of snooze-kit; pip install snooze-kit") from error
    catalogue = load_catalogue(EnvironmentConfig(id=name, taskset=_parse(options)))
    return [
        f"{f.rule}: {f.text}" + (f" (task {f.key})" if f.key else "") for f in check(catalogue.env.taskset)
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
