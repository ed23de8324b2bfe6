"""snoozing-env: spend RL rollouts only where the policy can learn.

`build_scheduler` is the way in for a trainer of your own; `snooze train @ recipe.toml` for a whole run.
"""

from snoozing_env.errors import (
    CatalogueError,
    ConfigError,
    EmbeddingError,
    EngineError,
    OutcomeError,
    SaturationError,
    SnoozingError,
    StateError,
    WeightTransferError,
)
from snoozing_env.schedulers import KINDS, LoadReport, Scheduler, build_scheduler
from snoozing_env.types import Group, GroupOutcome, TaskInfo, Trajectory

__version__ = "0.1.0"

__all__ = [
    "KINDS",
    "CatalogueError",
    "ConfigError",
    "EmbeddingError",
    "EngineError",
    "Group",
    "GroupOutcome",
    "LoadReport",
    "OutcomeError",
    "SaturationError",
    "Scheduler",
    "SnoozingError",
    "StateError",
    "TaskInfo",
    "Trajectory",
    "WeightTransferError",
    "build_scheduler",
]
