"""A command line as a typed config: `--key value`, `@ FILE.toml`, `--help`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from pydantic import BaseModel

from snoozing_env.config import explain
from snoozing_env.errors import ConfigError

C = TypeVar("C", bound=BaseModel)


def parse_options(config: type[C], arguments: Sequence[str], *, prog: str, description: str, where: str) -> C:
    """The config that the words spell.

    Raises:
        ConfigError: an unknown key (with a suggestion), a bad value or an unreadable file; `where` names the table.
    """
    from pydantic import ValidationError
    from pydantic_config import ConfigFileError, cli

    try:
        return cli(  # pyright: ignore[reportCallIssue]  # its overloads leave out prog and description
            config, args=list(arguments), prog=prog, description=description
        )
    except ConfigFileError as error:
        cause = error.__cause__
        if isinstance(cause, ValidationError):
            raise ConfigError("\n".join(explain(config, cause, where=where))) from error
        raise ConfigError(str(error)) from error


def take_flags(words: Sequence[str], known: Sequence[str]) -> tuple[set[str], list[str]]:
    """The flags among the words (`--dry-run` is "dry_run"), and the other words in order."""
    named = {word: word.removeprefix("--").replace("-", "_") for word in words if word.startswith("--")}
    found = {name for name in named.values() if name in known}
    return found, [word for word in words if named.get(word) not in found]
