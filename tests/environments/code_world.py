"""Tasks of snooze-code whose programs run without containers: ours, and quick."""

from __future__ import annotations

import asyncio

import verifiers.v1 as vf
from snooze_code import CodeConfig, CodeTask, CodeTaskset
from snooze_kit import reply_trace

LOCAL = {"backend": "local", "boxes": 2, "cpu_s": 2.0}


def tasks(**config) -> list[CodeTask]:
    return list(CodeTaskset(CodeConfig(**{"task": LOCAL, **config})))


def scored(task: CodeTask, reply: str) -> vf.Trace:
    trace = reply_trace(task, reply)
    asyncio.run(task.score(trace))
    return trace
