"""One worker process as its slot sees it: spawn, exchange a job for a reply within bounds, kill."""

from __future__ import annotations

import json
import os
import select
import signal
import struct
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

_HEADER = struct.Struct("<I")
_WORKER = Path(__file__).with_name("worker.py")
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True, kw_only=True)
class Grading:
    """What became of one job."""

    status: Literal["value", "hang", "starved", "crash"]
    """`value`: the grader returned; `hang`: killed at the deadline; `starved`: killed after two deadlines in which
    it had less than a quarter of one of CPU, so the machine or a wait is to blame; `crash`: it raised or died."""
    value: Any = None
    """What the grader returned (JSON data), None unless `status` is "value"."""
    stage: str = ""
    """Where it was: "" before the grader was imported, "started", then whatever a generator grader yielded last."""
    detail: str = ""
    """For people: the exception or the signal."""
    seconds: float = 0.0
    """Wall seconds from the moment the worker picked the job up."""
    cpu_s: float = 0.0
    """CPU seconds of the grader where it ended by itself, else the wall seconds it was given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds of one job; see GradingPool for the meaning of each."""

    deadline_s: float
    load_s: float
    memory_bytes: int

    @property
    def wall_s(self) -> float:
        """Wall seconds after which a job is given up even if it was given no CPU."""
        return 2.0 * self.deadline_s


class WorkerProcess:
    """A live worker. Not thread-safe: its slot's thread owns it."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        replies, child_end = os.pipe()
        try:
            # Not multiprocessing: spawn would run the user's __main__ again, and daemonic parents may have no children.
            # -P keeps this file's folder off the import path.
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-W", "ignore", str(_WORKER), str(child_end), str(os.getpid())],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(child_end,),
                env={**os.environ, "OMP_NUM_THREADS": "1"},
                bufsize=0,
            )
        except OSError:
            os.close(replies)
            raise
        finally:
            os.close(child_end)
        self._replies = replies
        os.set_blocking(replies, False)
        os.set_blocking(self._stdin, False)
        self._buffer = bytearray()
        self._cpu_at_start = 0.0
        # The worker's own backstop is looser than ours: it must never fire first.
        setup = {"path": sys.path, "memory_bytes": limits.memory_bytes, "cpu_limit_s": 2.0 * limits.wall_s}
        self._send(setup, limits.load_s)

    def exchange(self, grader: str, args: tuple[Any, ...], deadline_s: float) -> Grading:
        """The grading of one job. After "hang", or a crash that ended the process, `alive` is False."""
        stage, picked_up = "", time.monotonic()
        limit = picked_up + self._limits.load_s
        try:
            self._send({"grader": grader, "args": args}, self._limits.load_s)
            while True:
                message = self._receive(limit)
                if message is None:
                    starved = bool(stage) and self._starved(deadline_s)
                    if starved and time.monotonic() < picked_up + 2.0 * deadline_s:
                        limit = time.monotonic() + deadline_s / 8
                        continue
                    return self._overdue(stage, picked_up, starved=starved)
                if "stage" not in message:
                    return self._finished(message, stage, picked_up)
                if not stage:
                    picked_up = time.monotonic()
                    limit, self._cpu_at_start = picked_up + deadline_s, self._cpu_s()
                stage = message["stage"]
        except (OSError, EOFError):
            self.kill()
            code = self._process.returncode
            detail = f"the worker died with exit code {code} (negative: that signal)"
            return Grading(status="crash", stage=stage, detail=detail, seconds=time.monotonic() - picked_up)

    @property
    def alive(self) -> bool:
        return self._process.returncode is None

    def interrupt(self) -> None:
        """SIGKILL from another thread: the owner's exchange ends, and the owner reaps."""
        if self._process.returncode is None:
            self._process.send_signal(signal.SIGKILL)

    def kill(self) -> None:
        """End it now and wait for it; safe to call twice."""
        if self._process.returncode is not None:
            return
        self._process.kill()
        self._process.wait()
        self._close_pipes()

    def abandon(self) -> None:
        """After a fork: the process belongs to our parent, only close our copies of its pipes."""
        if self._process.returncode is not None:
            return
        self._process.returncode = 0
        self._close_pipes()

    def _close_pipes(self) -> None:
        os.close(self._replies)
        if self._process.stdin is not None:
            self._process.stdin.close()

    @property
    def _stdin(self) -> int:
        if self._process.stdin is None:
            raise RuntimeError("the worker has no standard input")
        return self._process.stdin.fileno()

    def _finished(self, message: dict[str, Any], stage: str, since: float) -> Grading:
        seconds = time.monotonic() - since
        cpu_s = message.get("cpu_s", seconds)
        if "error" in message:
            return Grading(status="crash", stage=stage, detail=message["error"], seconds=seconds, cpu_s=cpu_s)
        return Grading(status="value", value=message["value"], stage=stage, seconds=seconds, cpu_s=cpu_s)

    def _overdue(self, stage: str, since: float, *, starved: bool) -> Grading:
        seconds = time.monotonic() - since
        self.kill()
        if not stage:
            detail = f"the grader was not imported within {self._limits.load_s:g} s"
            return Grading(status="crash", detail=detail, seconds=seconds)
        status = "starved" if starved else "hang"
        detail = f"killed after {seconds:.1f} s"
        return Grading(status=status, stage=stage, detail=detail, seconds=seconds, cpu_s=seconds)

    def _starved(self, deadline_s: float) -> bool:
        # On a machine whose trainer takes every core, wall time alone would turn right answers into hangs.
        used = self._cpu_s() - self._cpu_at_start
        return used < 0.25 * deadline_s

    def _cpu_s(self) -> float:
        try:
            fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:  # no /proc: every wall second counts as used
            return time.monotonic()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def _send(self, message: dict[str, Any], within_s: float) -> None:
        body = json.dumps(message).encode()
        view, limit = memoryview(_HEADER.pack(len(body)) + body), time.monotonic() + within_s
        while view:
            if not _wait(self._stdin, select.POLLOUT, limit):
                raise EOFError("the worker does not read")
            view = view[os.write(self._stdin, view) :]

    def _receive(self, limit: float) -> dict[str, Any] | None:
        while True:
            if len(self._buffer) >= _HEADER.size:
                end = _HEADER.size + _HEADER.unpack_from(self._buffer)[0]
                if len(self._buffer) >= end:
                    message = json.loads(self._buffer[_HEADER.size : end])
                    del self._buffer[:end]
                    return message
            if not _wait(self._replies, select.POLLIN, limit):
                return None
            chunk = os.read(self._replies, 1 << 16)
            if not chunk:
                raise EOFError("the worker closed its replies")
            self._buffer += chunk


def _wait(fd: int, event: int, limit: float) -> bool:
    poll = select.poll()
    poll.register(fd, event)
    return bool(poll.poll(max(0.0, limit - time.monotonic()) * 1000))
