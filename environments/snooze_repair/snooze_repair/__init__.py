"""Repairing programs for the verifiers v1 format: a shell, an editor, many turns, hidden tests in a fresh box.

verifiers takes the task set, the environment and the harness of this package by their exported names.
"""

from snooze_repair.config import RepairConfig, RepairTaskConfig, SandboxConfig
from snooze_repair.env import RepairEnv, RepairEnvConfig
from snooze_repair.harness import RepairHarness, RepairHarnessConfig
from snooze_repair.scripted import gold_turns
from snooze_repair.taskset import RepairData, RepairTask, RepairTaskset

__all__ = [
    "RepairConfig",
    "RepairData",
    "RepairEnv",
    "RepairEnvConfig",
    "RepairHarness",
    "RepairHarnessConfig",
    "RepairTask",
    "RepairTaskConfig",
    "RepairTaskset",
    "SandboxConfig",
    "gold_turns",
]
