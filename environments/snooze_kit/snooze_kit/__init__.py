"""What the snooze environments share.

The names below load on first use: a grading worker, or a script that only wants a verdict, imports
`snooze_kit` in milliseconds and pays for verifiers only when it touches task data or the harness.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from snooze_kit.check import Finding, check, check_async, check_processes
    from snooze_kit.data import SnoozeTask, SnoozeTaskData, task_key
    from snooze_kit.fuzz import FuzzReport, fuzzed_replies, grade_fuzzed
    from snooze_kit.harness import InprocChatHarness
    from snooze_kit.pool import Grading, GradingPool, default_pool
    from snooze_kit.traces import reply_trace
    from snooze_kit.verdict import GraderError, Verdict

_HOME = {
    "Finding": "check",
    "FuzzReport": "fuzz",
    "GraderError": "verdict",
    "Grading": "pool",
    "GradingPool": "pool",
    "InprocChatHarness": "harness",
    "SnoozeTask": "data",
    "SnoozeTaskData": "data",
    "Verdict": "verdict",
    "check": "check",
    "check_async": "check",
    "check_processes": "check",
    "default_pool": "pool",
    "fuzzed_replies": "fuzz",
    "grade_fuzzed": "fuzz",
    "reply_trace": "traces",
    "task_key": "data",
}

__all__ = [
    "Finding",
    "FuzzReport",
    "GraderError",
    "Grading",
    "GradingPool",
    "InprocChatHarness",
    "SnoozeTask",
    "SnoozeTaskData",
    "Verdict",
    "check",
    "check_async",
    "check_processes",
    "default_pool",
    "fuzzed_replies",
    "grade_fuzzed",
    "reply_trace",
    "task_key",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'snooze_kit' has no attribute {name!r}; it has {', '.join(__all__)}")
    home = importlib.import_module(f"snooze_kit.{_HOME[name]}")
    value = globals()[name] = getattr(home, name)
    # Importing the submodule `check` sets it as an attribute over the function of the same name, whatever name was asked for.
    if _HOME[name] == "check":
        globals()["check"] = home.check
    return value
