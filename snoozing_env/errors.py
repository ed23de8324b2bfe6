"""Every error a user of this package can meet, in one tree.

SnoozingError
├── ConfigError        a recipe or scheduler config says something it cannot mean
├── PoolError          a source of texts or a list made from them cannot be read
├── CatalogueError     the task set is unusable: missing, empty, duplicate keys
├── OutcomeError       a finished group reports something no grader may report
├── StateError         a checkpoint does not fit this run, or cannot be written
├── EmbeddingError     a task text cannot be turned into a vector: no model, no server, no space
├── EngineError        the rollout engine is unreachable, refused, or died
│   └── WeightTransferError   new weights did not arrive whole
├── LoopError          the thread that rolls out ended, or stands still
└── SaturationError    nothing left to learn from; the message says why
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class SnoozingError(Exception):
    """Base of every error this package raises on purpose."""


class ConfigError(SnoozingError, ValueError):
    """A config value or key is wrong; the message names it and what would be right."""


class CatalogueError(SnoozingError):
    """The task set cannot be scheduled: it is missing, empty, or two tasks share a key."""


class PoolError(SnoozingError):
    """A source of texts, an exclusion list or a cluster list is missing, unreadable or does not fit."""


class OutcomeError(SnoozingError, ValueError):
    """A group outcome carries a reward that no grader may give (NaN, infinite, out of range)."""


class StateError(SnoozingError):
    """A checkpoint belongs to another task set or version, or could not be written."""


class EmbeddingError(SnoozingError):
    """Task texts cannot be embedded: the model, the endpoint or the cache failed."""


class EngineError(SnoozingError):
    """The rollout engine cannot be reached, refused a request, or died."""


class WeightTransferError(EngineError):
    """The engine did not take the new weights; it still serves the old ones."""


class LoopError(SnoozingError):
    """The event loop of the rollouts ended or stands still; the message says where and why."""


class SaturationError(SnoozingError):
    """No group can teach the policy any more; the message carries the report."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`" Did you mean 'x'?"` for the nearest known word, else an empty string."""
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f" Did you mean {near[0]!r}?" if near else ""
