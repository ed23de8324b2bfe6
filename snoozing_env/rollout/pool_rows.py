"""An environment's tasks as rows of a pool: `env:snooze-math?source=gsm8k&path=...`."""

from __future__ import annotations

from collections.abc import Iterator

from snoozing_env.pool.rows import Address, PoolRow
from snoozing_env.pool.text import text_hash
from snoozing_env.rollout.catalogue import EnvironmentConfig, load_catalogue
from snoozing_env.rollout.contract import parse_option


def environment_rows(address: Address) -> Iterator[PoolRow]:
    """Each task with its durable key; the address's options are the task set's, `limit` cuts it.

    Raises:
        ConfigError: the environment is not installed or refuses an option.
        CatalogueError: it does not load.
    """
    options = dict(address.options)
    revision = options.get("revision", "")
    limit = address.limit
    options.pop("limit", None)
    taskset = {key: parse_option(value) for key, value in options.items()}
    catalogue = load_catalogue(EnvironmentConfig(id=address.name, taskset=taskset, limit=limit))
    for place, info in enumerate(catalogue.infos):
        yield PoolRow(
            text=info.text, source=f"env:{address.name}", revision=revision, row=place, key=info.key,
            hash=text_hash(info.text), side="train",
        )  # fmt: skip
