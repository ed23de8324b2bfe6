"""The fork server: one fork per job, started before any job data exists.

It reads job specs and file descriptors from a SEQPACKET socket, forks, and reports what became of each child. Payloads
go from the supervisor to the child by pipe, past this process.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import resource
import select
import signal
import socket
import sys
import traceback
from typing import Any, NoReturn

from snoozing_sandboxes.runner.child import prepare_environment, prepare_streams, run_child
from snoozing_sandboxes.runner.confine import (
    COMMON_LIMITS,
    Filter,
    bare_fork,
    build_filter,
    limit,
    undumpable,
)

PRELOAD = [
    "json",
    "re",
    "math",
    "random",
    "itertools",
    "functools",
    "collections",
    "heapq",
    "bisect",
    "string",
    "operator",
    "typing",
    "dataclasses",
    "copy",
    "io",
    "datetime",
    "decimal",
    "fractions",
    "statistics",
    "unittest",
    "time",
    "sys",
    "os",
]
_MAX_SPEC = 65536


def serve_forks(control: socket.socket, settings: dict[str, Any]) -> NoReturn:
    """Import what programs import, then fork on request until the supervisor is gone."""
    sys.path.extend(settings["site"])
    failed = []
    for name in [*PRELOAD, *settings["preload"]]:
        try:
            importlib.import_module(name)
        except ImportError:
            failed.append(name)
    program = build_filter(inet=settings["inet"])
    undumpable()
    for name, value in COMMON_LIMITS.items():
        limit(name, value)
    prepare_environment()
    prepare_streams()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.collect()
    gc.freeze()  # a collection in a child would touch, and so copy, every page
    control.send(json.dumps({"ready": True, "failed": failed, "base_kb": _size_kb()}).encode())
    Forks(control, program).run()


def _size_kb() -> int:
    """Address space before any program runs: limits on a program's own come on top."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize() // 1024


class Forks:
    """Children by pidfd; SIGCHLD is not used, a signal would interrupt half-read messages.

    One child is forked ahead, between jobs, and waits for its spec: a fork costs more than most programs.
    """

    def __init__(self, control: socket.socket, program: Filter | None) -> None:
        self._control = control
        self._program = program
        self._live: dict[int, tuple[int, str]] = {}
        self._spare: tuple[int, socket.socket] | None = None
        self._poll = select.poll()
        self._poll.register(control.fileno(), select.POLLIN)

    def run(self) -> NoReturn:
        while True:
            for fd, _ in self._poll.poll():
                if fd == self._control.fileno():
                    self._hear()
                else:
                    self._ended(fd)

    def _hear(self) -> None:
        try:
            message, fds, _, _ = socket.recv_fds(self._control, _MAX_SPEC, 8)
        except OSError:
            os._exit(0)
        if not message:
            os._exit(0)
        spec = json.loads(message)
        if "breed" in spec:
            self._breed()
            return
        pid = self._handed_over(message, fds) or self._forked(spec, fds)
        for fd in fds:
            os.close(fd)
        if pid:
            pidfd = os.pidfd_open(pid)
            self._live[pidfd] = (pid, spec["job"])
            self._poll.register(pidfd, select.POLLIN)

    def _breed(self) -> None:
        """Have a child in waiting, and say which process it is: it is none of a job's."""
        if self._spare is None:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            try:
                pid = bare_fork()
            except OSError:
                pid = -1
            if pid == 0:
                ours.close()
                self._wait_for_spec(theirs)
            theirs.close()
            self._spare = (pid, ours) if pid > 0 else None
        self._say({"spare": self._spare[0] if self._spare else -1})

    def _wait_for_spec(self, line: socket.socket) -> NoReturn:
        message, fds, _, _ = socket.recv_fds(line, _MAX_SPEC, 8)
        if not message:
            os._exit(0)
        self._child(json.loads(message), fds)

    def _handed_over(self, message: bytes, fds: list[int]) -> int:
        """The waiting child's process id once it has the job, 0 if there is none to take it."""
        if self._spare is None:
            return 0
        (pid, line), self._spare = self._spare, None
        with line:
            try:
                socket.send_fds(line, [message], fds)
            except OSError:
                os.waitpid(pid, 0)  # it was killed, for want of memory perhaps
                return 0
        return pid

    def _forked(self, spec: dict[str, Any], fds: list[int]) -> int:
        try:
            pid = bare_fork()
        except OSError as error:
            self._say({"job": spec["job"], "fork_failed": error.errno})
            return 0
        if pid == 0:
            self._child(spec, fds)
        return pid

    def _child(self, spec: dict[str, Any], fds: list[int]) -> NoReturn:
        try:
            run_child(spec, fds, self._program)
        except BaseException:
            with contextlib.suppress(BaseException):
                traceback.print_exc()
        finally:
            os._exit(99)

    def _ended(self, pidfd: int) -> None:
        pid, job = self._live.pop(pidfd)
        self._poll.unregister(pidfd)
        os.close(pidfd)
        _, status, used = os.wait4(pid, 0)
        cpu_s = used.ru_utime + used.ru_stime
        self._say({"job": job, "status": status, "cpu_s": cpu_s, "rss_kb": used.ru_maxrss})

    def _say(self, message: dict[str, Any]) -> None:
        self._control.send(json.dumps(message).encode())


def quiet_signals(action: Any) -> None:
    for number in (
        signal.SIGINT,
        signal.SIGTERM,
        signal.SIGHUP,
        signal.SIGQUIT,
        signal.SIGUSR1,
        signal.SIGUSR2,
    ):
        signal.signal(number, action)
