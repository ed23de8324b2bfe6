"""Untrusted programs, run and graded in milliseconds inside hardened containers; verdicts that they cannot forge."""

from snoozing_sandboxes.box import Box
from snoozing_sandboxes.errors import (
    BoxLost,
    EngineUnavailable,
    FileTooLarge,
    ImageMissing,
    LeakyEngine,
    PoolClosed,
    SandboxError,
)
from snoozing_sandboxes.opening import open_pool
from snoozing_sandboxes.pool import Pool, PoolStatistics
from snoozing_sandboxes.types import CallCase, CallSuite, GradeResult, Limits, Result, StdioCase

__all__ = [
    "Box",
    "BoxLost",
    "CallCase",
    "CallSuite",
    "EngineUnavailable",
    "FileTooLarge",
    "GradeResult",
    "ImageMissing",
    "LeakyEngine",
    "Limits",
    "Pool",
    "PoolClosed",
    "PoolStatistics",
    "Result",
    "SandboxError",
    "StdioCase",
    "open_pool",
]
