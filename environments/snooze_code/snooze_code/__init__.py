"""Python problems for the verifiers v1 format, graded by hidden tests that the graded program cannot reach.

Loaded on first use: `snooze_code.grade` needs no verifiers.
The in-process chat harness is exported so that verifiers takes it as this task set's default harness.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from snooze_kit.harness import InprocChatHarness
    from snooze_kit.verdict import Verdict

    from snooze_code.config import CodeConfig, SandboxConfig
    from snooze_code.extract import extract
    from snooze_code.grading import Grading, Problem, grade, grade_async
    from snooze_code.sandbox import close_sandboxes
    from snooze_code.suite import Call, Suite
    from snooze_code.taskset import CodeData, CodeTask, CodeTaskset

_HOME = {
    "Call": "snooze_code.suite",
    "CodeConfig": "snooze_code.config",
    "CodeData": "snooze_code.taskset",
    "CodeTask": "snooze_code.taskset",
    "CodeTaskset": "snooze_code.taskset",
    "Grading": "snooze_code.grading",
    "InprocChatHarness": "snooze_kit.harness",
    "Problem": "snooze_code.grading",
    "SandboxConfig": "snooze_code.config",
    "Suite": "snooze_code.suite",
    "Verdict": "snooze_kit.verdict",
    "close_sandboxes": "snooze_code.sandbox",
    "extract": "snooze_code.extract",
    "grade": "snooze_code.grading",
    "grade_async": "snooze_code.grading",
}

__all__ = [
    "Call",
    "CodeConfig",
    "CodeData",
    "CodeTask",
    "CodeTaskset",
    "Grading",
    "InprocChatHarness",
    "Problem",
    "SandboxConfig",
    "Suite",
    "Verdict",
    "close_sandboxes",
    "extract",
    "grade",
    "grade_async",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'snooze_code' has no attribute {name!r}; it has {', '.join(__all__)}")
    value = globals()[name] = getattr(importlib.import_module(_HOME[name]), name)
    return value
