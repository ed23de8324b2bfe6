"""Task data that any trainer's sampler can read, and a task whose key survives reordering."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import TypeVar

import verifiers.v1 as vf
from pydantic import ConfigDict, Field, field_serializer, field_validator


class SnoozeTaskData(vf.TaskData):
    """The fields a curriculum reads (E4). Mutable curriculum state never goes here."""

    model_config = ConfigDict(frozen=True)

    dataset: str = ""
    """Where the task came from; the unit of mixture weights and of default snooze factors."""
    domain: str = ""
    """Kind of task inside the dataset: an operation, a subject, a level."""
    difficulty_prior: float | None = None
    """Expected pass rate in [0, 1] before any rollout, None = unknown."""
    snooze_factor: float | None = None
    """Passes to skip after a too-easy group; 0 = never snooze, inf = for good, None = the dataset's or the run's."""
    cluster: str | None = None
    """Tasks that teach the same thing share a cluster, None = unknown."""
    side: str | None = None
    """The one-sided behaviour a task rewards where another task rewards its opposite: refuse and comply, abstain and
    answer. A run that names both sides watches that neither is unlearned."""
    duration_s: float | None = Field(default=None, gt=0)
    """Seconds that a group of rollouts is expected to take, None = unknown; long ones are started first."""

    @field_validator("difficulty_prior")
    @classmethod
    def _prior_is_a_rate(cls, value: float | None) -> float | None:
        if value is not None and not 0.0 <= value <= 1.0:
            raise ValueError(
                f"difficulty_prior is {value}; it is an expected pass rate, give a number in [0, 1] or None"
            )
        return value

    @field_validator("snooze_factor")
    @classmethod
    def _factor_counts_passes(cls, value: float | None) -> float | None:
        if value is not None and not value >= 0.0:
            raise ValueError(
                f"snooze_factor is {value}; it counts passes to skip, give 0 (never snooze) or more, inf (for good) or None"
            )
        return value

    @field_serializer("snooze_factor", when_used="json")
    def _infinity_as_text(self, value: float | None) -> float | str | None:
        # JSON has no infinity: pydantic writes null, and "for good" would come back as "the default".
        return "Infinity" if value is not None and math.isinf(value) else value


DataT = TypeVar("DataT", bound=SnoozeTaskData)
ConfigT = TypeVar("ConfigT", bound=vf.TaskConfig)


def task_key(data: vf.TaskData, dataset: str = "") -> str:
    """SHA-256 of the dataset and of the source's id, or else of the prompt; never of the index."""
    if data.id is not None:
        content: object = ["id", data.id]
    elif data.prompt is None or isinstance(data.prompt, str):
        content = ["prompt", data.prompt]
    else:
        content = [
            "messages",
            [message.model_dump(mode="json", exclude_none=True) for message in data.prompt],
        ]
    return hashlib.sha256(json.dumps([dataset, content], sort_keys=True).encode()).hexdigest()


class SnoozeTask(vf.Task[DataT, vf.State, ConfigT]):
    """A task whose identity is its content: reordered, filtered or extended sets keep their state (D6)."""

    @property
    def key(self) -> str:
        return task_key(self.data, self.data.dataset)

    def gold_reply(self) -> str | None:
        """A reply that must earn full marks, None where the task has none to show."""
        return None

    def lazy_replies(self) -> Mapping[str, str]:
        """Replies of policies that do not do the task, by name: always abstain, name the first entity, copy the passage.

        They may read the prompt, never the answer. The contract check asks each name to earn at most half on average.
        """
        return {}

    def canonical(self) -> str:
        """What makes two tasks the same problem in other words or order; train and held-out sides may share none.

        The prompt by default; a generator that knows better (the same numbers swapped) says so here.
        """
        return self.data.prompt_text
