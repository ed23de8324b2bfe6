"""One job as the supervisor drives it: start its children, move bytes, stop it at a limit, sweep, report.

poll ─→ a feed can be written   program, stdin
     ─→ a sink can be read      stdout, stderr, values, the judge's tally; each has a cap
     ─→ the zygote says         a child ended
     ─→ the host's channel      it must stay silent during a job: closed means the host is gone, and so are we
     ─→ nothing until a limit   CPU of the whole tree, or the wall backstop
"""

from __future__ import annotations

import json
import math
import os
import select
import signal
import socket
import time
from dataclasses import dataclass, field
from typing import Any

from snoozing_sandboxes.runner.meters import cpu_s, oom_kills
from snoozing_sandboxes.runner.sweep import Slot
from snoozing_sandboxes.runner.wire import pack

_CHUNK = 65536
_MIN_CHECK_S, _MAX_CHECK_S = 0.02, 0.25


@dataclass(slots=True)
class Sink:
    """Output of a child: at most `cap` bytes are kept, and the job ends when `flood` have come."""

    cap: int
    flood: int
    data: bytearray = field(default_factory=bytearray)
    lost: int = 0

    def take(self, chunk: bytes) -> bool:
        """False at the flood limit."""
        room = max(0, self.cap - len(self.data))
        self.data += chunk[:room]
        self.lost += max(0, len(chunk) - room)
        return len(self.data) + self.lost <= self.flood


@dataclass(slots=True)
class Child:
    role: str
    out: Sink
    err: Sink
    ended: dict[str, Any] | None = None
    swept: bool = False
    """Whether it still ran when the job was over, as a solution does when its judge is done."""


class Job:
    """Runs once: `Job(...).run()` gives the reply frame."""

    def __init__(
        self, header: dict[str, Any], blobs: list[bytes], slot: Slot, control: socket.socket
    ) -> None:
        self._header = header
        self._blobs = blobs
        self._slot = slot
        self._control = control
        self._limits = header["limits"]
        self._children: dict[str, Child] = {}
        self._sinks: dict[int, Sink] = {}
        self._feeds: dict[int, memoryview] = {}
        self._special = Sink(self._limits["value"], self._limits["value"])
        self._status = ""
        self._poll = select.poll()
        self._cores = len(os.sched_getaffinity(0))

    def run(self) -> bytes:
        self._oom, self._cpu, self._began = oom_kills(), cpu_s(self._slot), time.monotonic()
        self._slot.orphans_cpu_s = 0.0
        self._poll.register(0, select.POLLIN)
        self._poll.register(self._control.fileno(), select.POLLIN)
        self._start()
        self._wait()
        wall_s = time.monotonic() - self._began
        keep = bool(self._header.get("keep"))
        for child in self._children.values():
            child.swept = child.ended is None
        leftover = bool(self._slot.others()) if keep and not self._status else self._slot.sweep()
        self._collect_exits()
        self._drain()
        clean = True if keep else self._slot.wipe()
        return self._report(wall_s, leftover=leftover, clean=clean)

    def _start(self) -> None:
        code, stdin, tests, *files = self._blobs
        kind, header = self._header["kind"], self._header
        shared = {
            k: header[k]
            for k in ("argv", "env", "entry", "module", "calls", "paths", "max_bytes", "truncate")
            if k in header
        }
        payload = pack({**shared, "files": header.get("files", [])}, [code, *files])
        if kind == "tests":
            return self._start_pair(payload, tests)
        if kind != "calls":
            return self._spawn("S", kind, payload, stdin, [])
        read, write = os.pipe()
        self._spawn("S", "calls", payload, stdin, [write])
        os.close(write)
        self._listen(read, self._special)

    def _start_pair(self, payload: bytes, tests: bytes) -> None:
        """The solution and its judge, with a line between them; the tally comes from the judge alone."""
        names = {k: self._header[k] for k in ("modules", "single", "entry") if k in self._header}
        ours, theirs = socket.socketpair()
        read, write = os.pipe()
        with ours, theirs:
            self._spawn("S", "serve", payload, b"", [ours.fileno()])
            self._spawn("T", "judge", pack({**names, "files": []}, [tests]), b"", [theirs.fileno(), write])
        os.close(write)
        self._listen(read, self._special)

    def _spawn(self, role: str, kind: str, payload: bytes, stdin: bytes, extra: list[int]) -> None:
        child = Child(role, self._sink(), self._sink())
        self._children[role] = child
        (in_r, in_w), (out_r, out_w), (err_r, err_w), (pay_r, pay_w) = (os.pipe() for _ in range(4))
        spec = {
            "job": role,
            "role": role,
            "kind": kind,
            "uid": self._slot.uid(role),
            "limits": self._rlimits(),
        }
        spec["cwd"] = self._slot.folders[0] if role == "S" else "/"
        self._slot.spare = -1  # from here on it is this child, or there was none
        socket.send_fds(self._control, [json.dumps(spec).encode()], [in_r, out_w, err_w, pay_r, *extra])
        for fd in (in_r, out_w, err_w, pay_r):
            os.close(fd)
        self._listen(out_r, child.out)
        self._listen(err_r, child.err)
        self._feed(pay_w, payload)
        self._feed(in_w, stdin)

    def _sink(self) -> Sink:
        return Sink(self._limits["output"], self._limits["flood"])

    def _rlimits(self) -> dict[str, int]:
        limits = self._limits
        chosen = {
            "core": 0,
            "memlock": 0,
            "msgqueue": 0,
            "sigpending": 256,
            "cpu": math.ceil(limits["cpu_s"]) + 1,  # per process; the tree's CPU is watched here
            "as": (limits["base_kb"] << 10) + (limits["memory_mb"] << 20),
            "fsize": limits["file_mb"] << 20,
            "nofile": limits["open_files"],
            "stack": 64 << 20,
        }
        # In the local backend the uid is the caller's own, whose other processes would count.
        return {**chosen, "nproc": limits["processes"]} if self._slot.uids else chosen

    def _listen(self, fd: int, sink: Sink) -> None:
        os.set_blocking(fd, False)
        self._sinks[fd] = sink
        self._poll.register(fd, select.POLLIN)

    def _feed(self, fd: int, data: bytes) -> None:
        """Write what the pipe takes now; the rest waits for POLLOUT."""
        os.set_blocking(fd, False)
        self._feeds[fd] = memoryview(data)
        self._poll.register(fd, select.POLLOUT)
        self._write(fd)

    def _write(self, fd: int) -> None:
        rest = self._feeds[fd]
        try:
            rest = rest[os.write(fd, rest) :] if rest else rest
        except BlockingIOError:
            pass
        except OSError:
            rest = memoryview(b"")  # the child closed it: its business
        self._feeds[fd] = rest
        if not rest:
            self._close(fd)
            del self._feeds[fd]

    def _close(self, fd: int) -> None:
        self._poll.unregister(fd)
        os.close(fd)

    def _wait(self) -> None:
        lead = "T" if "T" in self._children else "S"
        deadline = self._began + self._limits["wall_s"]
        check = self._began + self._limits["cpu_s"] / self._cores
        while not self._status and self._children[lead].ended is None:
            now = time.monotonic()
            if now >= deadline:
                self._status = "timeout"
            elif now >= check:
                left = self._limits["cpu_s"] - (cpu_s(self._slot) - self._cpu)
                if left <= 0:
                    self._status = "timeout"
                check = now + min(_MAX_CHECK_S, max(_MIN_CHECK_S, left / self._cores))
            else:
                self._turn(max(1, math.ceil(1000 * (min(deadline, check) - now))))

    def _turn(self, timeout_ms: int) -> None:
        for fd, _ in self._poll.poll(timeout_ms):
            if fd == self._control.fileno():
                self._hear()
            elif fd == 0:
                self._slot.leave()
            elif fd in self._feeds:
                self._write(fd)
            elif fd in self._sinks and not self._read(fd):
                self._status = "output"

    def _read(self, fd: int) -> bool:
        try:
            chunk = os.read(fd, _CHUNK)
        except BlockingIOError:
            return True
        if not chunk:
            self._close(fd)
            del self._sinks[fd]
            return True
        return self._sinks[fd].take(chunk)

    def _hear(self) -> None:
        message = json.loads(self._control.recv(_CHUNK))
        if "fork_failed" in message:
            self._status = "fork_failed"
            message["status"] = 0
        self._children[message["job"]].ended = message

    def _collect_exits(self) -> None:
        """Every child's status. Whoever still lives (the solution, once the judge is done) was swept, or is now."""
        limit = time.monotonic() + 5.0
        while any(child.ended is None for child in self._children.values()) and time.monotonic() < limit:
            if select.select([self._control], [], [], 0.05)[0]:
                self._hear()
            else:
                self._slot.sweep()

    def _drain(self) -> None:
        """What is still in the pipes. In a kept box a background process may hold them open: no waiting for EOF."""
        for fd in list(self._sinks):
            while fd in self._sinks and select.select([fd], [], [], 0)[0]:
                if not self._read(fd):
                    break
            if fd in self._sinks:
                self._close(fd)
                del self._sinks[fd]
        for fd in list(self._feeds):
            self._close(fd)
            del self._feeds[fd]

    def _report(self, wall_s: float, *, leftover: bool, clean: bool) -> bytes:
        oom = oom_kills() - self._oom
        reply: dict[str, Any] = {"id": self._header["id"], "status": self._status or "ended", "oom": oom}
        reply.update(wall_s=wall_s, leftover=leftover, clean=clean, children={})
        reply["cpu_s"] = self._slot.orphans_cpu_s
        blobs = [bytes(self._special.data)]
        for child in self._children.values():
            ended = child.ended or {"status": signal.SIGKILL, "cpu_s": 0.0, "rss_kb": 0}
            status = ended["status"]
            reply["cpu_s"] += ended.get("cpu_s", 0.0)
            reply["children"][child.role] = {
                "signal": os.WTERMSIG(status) if os.WIFSIGNALED(status) else None,
                "exit": os.WEXITSTATUS(status) if os.WIFEXITED(status) else None,
                "swept": child.swept,
                "rss_kb": ended.get("rss_kb", 0),
                "lost": child.out.lost + child.err.lost,
            }
            blobs += [bytes(child.out.data), bytes(child.err.data)]
        return pack(reply, blobs)
