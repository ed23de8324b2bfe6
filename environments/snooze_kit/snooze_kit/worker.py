"""The grading worker: standard library only, run as a file, never imported by the pool.

Parent (pool.py) and worker speak JSON lines with a length in front:

    stdin  ─→  {"grader": "module:function", "args": [...]}
    reply  ←─  {"stage": "started"}            the import is done, the deadline starts now
    reply  ←─  {"stage": "..."}                 whatever a generator grader yields
    reply  ←─  {"value": ... | "error": "Type: message", "cpu_s": seconds of CPU}

A grader may hold the GIL for ever (9**9**9 is one C call), so nothing here relies on Python running:
the parent's SIGKILL ends it, the kernel's parent-death signal ends it when the parent is gone, and
SIGPROF's default action ends it after `cpu_limit_s` of one job where the kernel has neither.
"""

from __future__ import annotations

import ctypes
import importlib
import inspect
import json
import operator
import os
import resource
import signal
import struct
import sys
import time
from collections.abc import Callable
from typing import Any, BinaryIO

HEADER = struct.Struct("<I")
PR_SET_PDEATHSIG = 1


def main(reply_fd: int, parent: int) -> None:
    _die_with(parent)
    jobs, replies = sys.stdin.buffer, os.fdopen(reply_fd, "wb", buffering=0)
    setup = _read(jobs)
    if setup is None:
        return
    sys.path[:] = setup["path"]
    _limit_memory(setup["memory_bytes"])
    graders: dict[str, Callable[..., Any]] = {}
    while (job := _read(jobs)) is not None:
        _serve(job, graders, replies, setup["cpu_limit_s"])


def _serve(
    job: dict[str, Any], graders: dict[str, Callable[..., Any]], replies: BinaryIO, cpu_limit_s: float
) -> None:
    began = time.process_time()
    try:
        name = job["grader"]
        if name not in graders:
            graders[name] = _load(name)
        signal.setitimer(signal.ITIMER_PROF, cpu_limit_s)
        _write(replies, {"stage": "started"})
        began = time.process_time()
        reply = {"value": _run(graders[name], job["args"], replies)}
    # The one boundary of this process: whatever a grader raises is a reply, a dead worker costs a second.
    except Exception as error:  # noqa: BLE001
        reply = {"error": f"{type(error).__name__}: {error}"[:500]}
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    reply["cpu_s"] = time.process_time() - began
    try:
        _write(replies, reply)
    except (TypeError, ValueError) as error:
        _write(replies, {"error": f"the grader's value is not JSON: {error}"[:500]})


def _load(name: str) -> Callable[..., Any]:
    module, _, function = name.partition(":")
    return operator.attrgetter(function)(importlib.import_module(module))


def _run(grader: Callable[..., Any], args: list[Any], replies: BinaryIO) -> Any:
    value = grader(*args)
    if not inspect.isgenerator(value):
        return value
    try:
        while True:
            _write(replies, {"stage": str(next(value))})
    except StopIteration as end:
        return end.value


def _read(stream: BinaryIO) -> dict[str, Any] | None:
    header = stream.read(HEADER.size)
    if len(header) < HEADER.size:
        return None
    return json.loads(stream.read(HEADER.unpack(header)[0]))


def _write(stream: BinaryIO, message: dict[str, Any]) -> None:
    body = json.dumps(message).encode()
    view = memoryview(HEADER.pack(len(body)) + body)
    while view:
        view = view[stream.write(view) :]


def _die_with(parent: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before the line above
        os._exit(0)
    # A terminal's Ctrl-C is for the parent, which closes the pool.
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _limit_memory(limit: int) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(
        resource.RLIMIT_AS, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard)
    )


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
