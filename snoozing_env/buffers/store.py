"""Finished groups on disk: one parquet row per rollout, exact to the last bit of every log-prob (B4)."""
# pyright: basic
# pyarrow ships no type information; the two functions below are its typed border.

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from snoozing_env.types import Group, GroupOutcome, Trajectory

_TRAJECTORY = Trajectory.__dataclass_fields__
_LISTS = {
    "prompt_ids": pa.list_(pa.int64()),
    "completion_ids": pa.list_(pa.int64()),
    "logprobs": pa.list_(pa.float64()),
    "mask": pa.list_(pa.int8()),
}
_SCHEMA = pa.schema(
    [
        ("group_id", pa.int64()),
        ("group_version", pa.int64()),
        ("key", pa.string()),
        ("prompt", pa.string()),
        ("gold", pa.string()),
    ]
    + [("reward_G", pa.float64()), ("duration_s", pa.float64()), ("tokens", pa.int64())]
    + [(name, _LISTS[name]) for name in _LISTS]
    + [("reward", pa.float64()), ("valid", pa.bool_()), ("truncated", pa.bool_()), ("version", pa.int64())]
    + [
        ("last_version", pa.int64()),
        ("anchor", pa.float64()),
        ("stored", pa.bool_()),
        ("text", pa.string()),
        ("error", pa.string()),
    ]
)


def dump_groups(groups: Sequence[Group]) -> bytes:
    """Groups as a parquet file in memory."""
    rows: list[dict[str, Any]] = []
    for group in groups:
        for reward, t in zip(group.outcome.rewards_G, group.trajectories, strict=True):
            row = {"group_id": group.id, "key": group.key, "prompt": group.prompt, "gold": group.gold}
            row["group_version"] = group.outcome.version
            row |= {
                "reward_G": float(reward),
                "duration_s": group.outcome.duration_s,
                "tokens": group.outcome.tokens,
            }
            rows.append(row | {name: getattr(t, name) for name in _TRAJECTORY})
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(rows, schema=_SCHEMA), sink, compression="zstd")
    return sink.getvalue().to_pybytes()


def parse_groups(payload: bytes, index_of: Mapping[str, int]) -> list[Group]:
    """The groups of `dump_groups` whose task still exists, with its present index; others are left out."""
    rows = pq.read_table(pa.BufferReader(payload)).to_pylist()
    groups = [
        _group(list(members), index_of) for _, members in groupby(rows, key=lambda row: row["group_id"])
    ]
    return [group for group in groups if group is not None]


def _group(rows: list[dict[str, Any]], index_of: Mapping[str, int]) -> Group | None:
    head = rows[0]
    if head["key"] not in index_of:
        return None
    trajectories = tuple(_trajectory(row) for row in rows)
    outcome = GroupOutcome(
        task=index_of[head["key"]],
        rewards_G=np.array([row["reward_G"] for row in rows]),
        valid_G=np.array([t.valid for t in trajectories]),
        truncated_G=np.array([t.truncated for t in trajectories]),
        # A group that took a stored success in is as old as its fresh rollouts.
        version=head.get("group_version", min(t.version for t in trajectories)),
        last_version=max(t.last_version for t in trajectories),
        duration_s=head["duration_s"],
        tokens=head["tokens"],
    )
    return Group(
        id=head["group_id"],
        key=head["key"],
        outcome=outcome,
        trajectories=trajectories,
        prompt=head["prompt"],
        gold=head["gold"],
    )


def _trajectory(row: dict[str, Any]) -> Trajectory:
    fields: dict[str, Any] = {
        name: tuple(row[name]) if name in _LISTS else row[name] for name in _TRAJECTORY if name in row
    }
    return Trajectory(**fields)
