"""What goes into a pool and what comes out, as frozen data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = ["CallCase", "CallSuite", "GradeResult", "Limits", "Protocol", "Result", "Status", "StdioCase"]

Status = Literal["ok", "error", "crash", "timeout", "memory", "output"]
"""`ok`: ended with exit code 0; `error`: another exit code (an uncaught exception is 1); `crash`: killed by a signal;
`timeout`: out of CPU seconds, or at the wall backstop; `memory`: ran out of memory; `output`: printed without end."""

Protocol = Literal["stdio", "calls", "tests"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds of one job; a limit reached is a result, never an error."""

    cpu_s: float = 2.0
    """CPU seconds of the job's whole process tree. The verdict hangs on this one: it is the same on a busy machine."""
    wall_s: float | None = None
    """Wall seconds, a backstop for programs that sleep. None: ten times `cpu_s`, at least 5."""
    memory_mb: int = 256
    """Address space of each process beyond the bare interpreter's. The whole box has the pool's `box_memory_mb`."""
    output_bytes: int = 65536
    """Bytes kept of stdout and of stderr."""
    flood_bytes: int | None = None
    """Bytes after which a program that keeps printing is stopped (status "output"). None: `output_bytes`."""
    value_bytes: int = 4 << 20
    """Bytes of values that all calls of one grading may return, as JSON."""
    file_mb: int = 16
    """Largest file a program may write; the folders together are limited by the box."""
    processes: int = 64
    open_files: int = 256

    def __post_init__(self) -> None:
        for name in (
            "cpu_s",
            "memory_mb",
            "output_bytes",
            "value_bytes",
            "file_mb",
            "processes",
            "open_files",
        ):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be positive, got {getattr(self, name)}")
        if self.wall_s is not None and not self.wall_s > 0:
            raise ValueError(f"wall_s must be positive seconds or None, got {self.wall_s}")

    @property
    def backstop_s(self) -> float:
        """Wall seconds after which the job ends whatever it does."""
        return self.wall_s if self.wall_s is not None else max(5.0, 10.0 * self.cpu_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What became of one program."""

    status: Status
    stdout: str
    """Undecodable bytes are replaced."""
    stderr: str
    cpu_s: float
    """CPU seconds of the process tree, as far as it was reaped."""
    wall_s: float
    """Wall seconds inside the box."""
    exit_code: int | None = None
    """None if a signal ended the program."""
    signal: int | None = None
    truncated: bool = False
    """Whether output was dropped."""

    @property
    def ok(self) -> bool:
        return self.status == "ok"


@dataclass(frozen=True, slots=True, kw_only=True)
class GradeResult(Result):
    """What became of a solution under its tests. stdout and stderr are the solution's."""

    passed: int
    failed: int
    """At least 1 where nothing could be decided in the solution's favour (it died, hung, broke the protocol)."""
    details: tuple[tuple[str, str], ...] = ()
    """(test, why) of failures, at most 50. May quote hidden tests: not for the policy's eyes."""

    @property
    def ok(self) -> bool:
        """All tests passed, and there was at least one."""
        return self.passed > 0 and self.failed == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StdioCase:
    """One run of a program: what it is fed and what it has to print."""

    stdin: str
    stdout: str
    """Compared line by line; trailing blanks and blank lines at the end do not count."""
    abs_tol: float = 0.0
    """If positive, words that are numbers on both sides may differ by this much."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallCase:
    """One call and what it has to return: plain data (numbers, text, bytes, list, tuple, set, dict, None)."""

    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    expected: Any = None
    raises: str | None = None
    """Name of the exception the call has to raise instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSuite:
    """Calls of one function, compared on the host."""

    entry: str
    """Dotted name in the solution, such as "solve" or "Solution.solve"."""
    cases: Sequence[CallCase]
    abs_tol: float = 0.0
    rel_tol: float = 0.0
    tuples_as_lists: bool = False
    """Whether (1, 2) equals [1, 2], as in suites that were stored as JSON."""
