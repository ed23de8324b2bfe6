"""Every way in which a sandbox itself fails. None of these is ever a verdict on a program.

SandboxError
├── EngineUnavailable   no container engine to be had, or it refuses us
│   ├── ImageMissing    the engine has no such image and cannot get it
│   └── LeakyEngine     the engine does not keep what the boxes promise; nothing was run on it
├── BoxLost             a box ended, hung or broke the protocol under a job; nothing is known about the job
├── FileTooLarge        more bytes than the caller wanted to read
└── PoolClosed
"""

from __future__ import annotations

__all__ = [
    "BoxLost",
    "EngineUnavailable",
    "FileTooLarge",
    "ImageMissing",
    "LeakyEngine",
    "PoolClosed",
    "SandboxError",
]


class SandboxError(Exception):
    """The sandbox failed, not the program in it."""


class EngineUnavailable(SandboxError):
    """No container engine answers, or it does not let us in."""


class ImageMissing(EngineUnavailable):
    """The engine has no such image and cannot get it."""


class LeakyEngine(EngineUnavailable):
    """The engine does not hold what the boxes promise."""


class BoxLost(SandboxError):
    """A box was lost under a job (container removed, daemon restarted, protocol broken, job cancelled). The job is
    undecided: score it as invalid, never as wrong."""


class FileTooLarge(SandboxError):
    """A program left more bytes than the caller is willing to read."""


class PoolClosed(SandboxError):
    """The pool was closed while a job waited for a box."""
