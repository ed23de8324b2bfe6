"""Grounded QA for the verifiers v1 format: answer from the passage, or abstain where it does not say.

Loaded on first use: `snooze_groundedqa.grade` and `.match` need no verifiers.
The in-process chat harness is exported so that verifiers takes it as this task set's default harness.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from snooze_kit.harness import InprocChatHarness
    from snooze_kit.verdict import Verdict

    from snooze_groundedqa.config import GroundedQAConfig, ScoresConfig
    from snooze_groundedqa.grading.grade import ABSTAIN, grade
    from snooze_groundedqa.grading.matching import match
    from snooze_groundedqa.taskset import GroundedQAData, GroundedQATask, GroundedQATaskset

_HOME = {
    "ABSTAIN": "snooze_groundedqa.grading.grade",
    "GroundedQAConfig": "snooze_groundedqa.config",
    "GroundedQAData": "snooze_groundedqa.taskset",
    "GroundedQATask": "snooze_groundedqa.taskset",
    "GroundedQATaskset": "snooze_groundedqa.taskset",
    "InprocChatHarness": "snooze_kit.harness",
    "ScoresConfig": "snooze_groundedqa.config",
    "Verdict": "snooze_kit.verdict",
    "grade": "snooze_groundedqa.grading.grade",
    "match": "snooze_groundedqa.grading.matching",
}

__all__ = [  # noqa: RUF022  # the task set first: readers look there
    "GroundedQATaskset",
    "GroundedQAConfig",
    "GroundedQAData",
    "GroundedQATask",
    "ABSTAIN",
    "InprocChatHarness",
    "ScoresConfig",
    "Verdict",
    "grade",
    "match",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(
            f"module 'snooze_groundedqa' has no attribute {name!r}; it has {', '.join(__all__)}"
        )
    value = globals()[name] = getattr(importlib.import_module(_HOME[name]), name)
    return value
