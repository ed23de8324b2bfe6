"""Refusal for the verifiers v1 format: harmful requests and their safe look-alikes, and a detector anyone can use.

Loaded on first use: `snooze_refusal.detect` needs no verifiers. The in-process chat harness is exported so that
verifiers takes it as this task set's default harness.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from snooze_kit.harness import InprocChatHarness
    from snooze_kit.verdict import Verdict

    from snooze_refusal.config import RefusalConfig
    from snooze_refusal.detection.detect import detect
    from snooze_refusal.judge import JudgeConfig
    from snooze_refusal.taskset import RefusalData, RefusalTask, RefusalTaskset

_HOME = {
    "InprocChatHarness": "snooze_kit.harness",
    "JudgeConfig": "snooze_refusal.judge",
    "RefusalConfig": "snooze_refusal.config",
    "RefusalData": "snooze_refusal.taskset",
    "RefusalTask": "snooze_refusal.taskset",
    "RefusalTaskset": "snooze_refusal.taskset",
    "Verdict": "snooze_kit.verdict",
    "detect": "snooze_refusal.detection.detect",
}

__all__ = [
    "InprocChatHarness",
    "JudgeConfig",
    "RefusalConfig",
    "RefusalData",
    "RefusalTask",
    "RefusalTaskset",
    "Verdict",
    "detect",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(
            f"module 'snooze_refusal' has no attribute {name!r}; it has {', '.join(__all__)}"
        )
    value = globals()[name] = getattr(importlib.import_module(_HOME[name]), name)
    return value
