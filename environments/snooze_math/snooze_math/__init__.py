"""Math for the verifiers v1 format: arithmetic, GSM8K, SVAMP, MAWPS, MATH-500, and a grader that cannot hang.

Loaded on first use: `snooze_math.grade` needs no verifiers, and grading workers import this package too.
The in-process chat harness is exported so that verifiers takes it as this task set's default harness.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from snooze_kit.harness import InprocChatHarness
    from snooze_kit.verdict import Verdict

    from snooze_math.config import MathConfig
    from snooze_math.grading.grade import grade, grade_async
    from snooze_math.taskset import MathData, MathTask, MathTaskset

_HOME = {
    "InprocChatHarness": "snooze_kit.harness",
    "MathConfig": "snooze_math.config",
    "MathData": "snooze_math.taskset",
    "MathTask": "snooze_math.taskset",
    "MathTaskset": "snooze_math.taskset",
    "Verdict": "snooze_kit.verdict",
    "grade": "snooze_math.grading.grade",
    "grade_async": "snooze_math.grading.grade",
}

__all__ = [
    "InprocChatHarness",
    "MathConfig",
    "MathData",
    "MathTask",
    "MathTaskset",
    "Verdict",
    "grade",
    "grade_async",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'snooze_math' has no attribute {name!r}; it has {', '.join(__all__)}")
    value = globals()[name] = getattr(importlib.import_module(_HOME[name]), name)
    return value
