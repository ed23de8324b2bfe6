"""What `snooze pool` found, applied to a task set: tasks left out, clusters set."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import verifiers.v1 as vf

from snoozing_env.errors import CatalogueError
from snoozing_env.pool.lists import DUPLICATE, Named, read_list
from snoozing_env.pool.text import text_hash
from snoozing_env.types import TaskInfo

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolCounts:
    """How many tasks the lists touched."""

    excluded: int = 0
    clustered: int = 0


NO_LISTS = PoolCounts()


def apply_lists(
    tasks: Sequence[vf.Task], infos: Sequence[TaskInfo], *, exclude: str | None, clusters: str | None
) -> tuple[tuple[vf.Task, ...], tuple[TaskInfo, ...], PoolCounts]:
    """Tasks and infos without the excluded ones and with the lists' clusters, in the same order, and the counts (also logged).

    A task is matched by its key, else by the hash of its text. "duplicate" excludes a task only where an earlier one of
    the same text stays, so a list made from another order of the data never removes every copy.

    Raises:
        CatalogueError: a list fits none of the tasks, or excludes them all.
        PoolError: a list cannot be read.
    """
    excluding = None if exclude is None else read_list(exclude, "reason")
    clustering = None if clusters is None else read_list(clusters, "cluster")
    if excluding is None and clustering is None:
        return tuple(tasks), tuple(infos), NO_LISTS
    hashes = [text_hash(info.text) for info in infos]
    kept = list(range(len(infos)))
    if excluding is not None:
        kept = list(_kept(infos, hashes, excluding))
        if infos and not kept:
            raise CatalogueError(
                f"{exclude} excludes all {len(infos)} tasks; nothing is left to train on. Read its reasons"
            )
        named = any(excluding.get(i.key, h) is not None for i, h in zip(infos, hashes, strict=True))
        if excluding.lines and not named:
            raise CatalogueError(_misfit(exclude or "", excluding, infos))
    found = {place: _cluster(clustering, infos[place].key, hashes[place]) for place in kept}
    clustered = sum(cluster is not None for cluster in found.values())
    if clustering is not None and clustering.lines and not clustered:
        raise CatalogueError(_misfit(clusters or "", clustering, infos))
    counts = PoolCounts(excluded=len(infos) - len(kept), clustered=clustered)
    logger.info(
        "pool lists: %d of %d tasks excluded, %d got a cluster", counts.excluded, len(infos), counts.clustered
    )
    return (
        tuple(tasks[place] for place in kept),
        tuple(replace(infos[place], cluster=found[place] or infos[place].cluster) for place in kept),
        counts,
    )


def _kept(infos: Sequence[TaskInfo], hashes: Sequence[str], excluding: Named) -> Iterator[int]:
    seen = set[str]()
    for place, (info, fingerprint) in enumerate(zip(infos, hashes, strict=True)):
        reason = excluding.get(info.key, fingerprint)
        if reason is None or (reason == DUPLICATE and fingerprint not in seen):
            seen.add(fingerprint)
            yield place


def _cluster(clustering: Named | None, key: str, fingerprint: str) -> str | None:
    return None if clustering is None else clustering.get(key, fingerprint)


def _misfit(path: str, named: Named, infos: Sequence[TaskInfo]) -> str:
    return (
        f"none of the {named.lines} lines of {path} names one of the {len(infos)} tasks, by key or by text; it was made from "
        "other data. Run `snooze pool` on this environment (env:ID?...) or drop the option"
    )
