"""One box as its user sees it: run programs, write and read files, reset. Strictly one job at a time."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from snoozing_sandboxes.channel import Channel, Reply
from snoozing_sandboxes.errors import BoxLost, FileTooLarge
from snoozing_sandboxes.runner import wire
from snoozing_sandboxes.types import Limits, Result, Status

__all__ = ["Box", "Job", "as_result"]

_GRACE_S = 10.0
"""Beyond a job's backstop: sweep, wipe and the transfer on a machine that is busy with other things."""
_RESET_S = 30.0
_OVER_CAP = 3
_SIGKILL, _SIGXCPU = 9, 24


class Job:
    """A request as it goes over the channel; `kind` is one of the runner's."""

    def __init__(self, kind: str, limits: Limits, *, code: str | bytes = b"", **fields: Any) -> None:
        self.kind = kind
        self.limits = limits
        self.code = as_bytes(code)
        self.stdin: bytes = b""
        self.tests: bytes = b""
        self.files: dict[str, bytes] = {}
        self.fields = fields

    def frame(self) -> tuple[dict[str, Any], list[bytes]]:
        limits = self.limits
        bounds = {
            "cpu_s": limits.cpu_s,
            "wall_s": limits.backstop_s,
            "memory_mb": limits.memory_mb,
            "output": limits.output_bytes,
            "flood": limits.flood_bytes or limits.output_bytes,
            "value": limits.value_bytes,
            "file_mb": limits.file_mb,
            "processes": limits.processes,
            "open_files": limits.open_files,
        }
        header = {"op": "job", "kind": self.kind, "limits": bounds, "files": list(self.files), **self.fields}
        return header, [self.code, self.stdin, self.tests, *self.files.values()]


class Box:
    """A sandbox of one's own for many turns. Files and background processes stay until `reset`.

    Every method raises BoxLost when the box is gone; the episode in it is then invalid. The working folder is
    `workdir`; paths are relative to it, or absolute within the folders a program may write.
    """

    def __init__(self, channel: Channel, *, name: str, workdir: str, hello: Mapping[str, Any]) -> None:
        self._channel = channel
        self._serial = itertools.count(1)
        self.name = name
        """The engine's name for it: a container id, or a process id in the local backend."""
        self.workdir = workdir
        self.hello = hello
        """What the supervisor said of itself: python, uid, failed (modules that could not be preloaded)."""
        self.jobs = 0

    @property
    def lost(self) -> bool:
        """Whether it can run nothing more."""
        return self._channel.dead

    async def run_shell(self, command: str, *, stdin: str | bytes = b"", **options: Any) -> Result:
        """Run `command` in a shell. `options`: see `job_limits`, and `env`, a mapping of extra variables."""
        return await self._episode_job("shell", command, stdin, options)

    async def python(self, code: str, *, stdin: str | bytes = b"", **options: Any) -> Result:
        """Run a Python program in the working folder (forked: milliseconds). Same options."""
        return await self._episode_job("python", code, stdin, options)

    async def execute(self, argv: Sequence[str], *, stdin: str | bytes = b"", **options: Any) -> Result:
        """Run a program with arguments, without a shell. Same options."""
        return await self._episode_job("exec", b"", stdin, {**options, "argv": list(argv)})

    async def write(self, files: Mapping[str, str | bytes]) -> None:
        """Create or replace files, folders included."""
        job = Job("write", Limits(cpu_s=5.0, file_mb=64), keep=True)
        job.files = {_checked(path): as_bytes(content) for path, content in files.items()}
        header, reply = await self.exchange(job)
        if header["children"]["S"]["exit"] != 0:
            raise OSError(f"could not write {sorted(files)}: {_text(reply.blobs[2])[-300:]}")

    async def read(
        self, paths: Sequence[str], *, max_bytes: int = 8 << 20, truncate: bool = False
    ) -> dict[str, bytes]:
        """Contents of regular files; a folder gives all regular files below it; links are not followed.

        What does not exist is absent from the answer. FileTooLarge beyond `max_bytes` in total, unless `truncate`.
        """
        limits = Limits(cpu_s=5.0, output_bytes=2 * max_bytes + (1 << 20))
        job = Job("read", limits, keep=True, paths=[_checked(p) for p in paths], max_bytes=max_bytes)
        job.fields["truncate"] = truncate
        header, reply = await self.exchange(job)
        child = header["children"]["S"]
        if child["exit"] == _OVER_CAP:
            raise FileTooLarge(f"{list(paths)} hold more than {max_bytes} bytes; pass max_bytes or read less")
        if child["exit"] != 0:
            raise OSError(f"could not read {list(paths)}: {_text(reply.blobs[2])[-300:]}")
        try:
            total, size = wire.lengths(reply.blobs[1][:8])
            fields, blobs = wire.unpack(reply.blobs[1][8 : 8 + total], size)
            return dict(zip(map(str, fields["paths"]), blobs, strict=True))
        except (wire.Malformed, KeyError, ValueError, TypeError) as error:
            raise OSError(f"the box's answer for {list(paths)} was tampered with: {error}") from None

    async def sweep(self) -> bool:
        """Kill every process of earlier commands; files stay. True if there was one."""
        reply = await self._send({"op": "sweep"}, [], _RESET_S)
        return bool(reply.header["leftover"])

    async def reset(self) -> None:
        """Kill every process and remove every file. A box that does not come clean is lost."""
        reply = await self._send({"op": "reset"}, [], _RESET_S)
        if not reply.header["clean"]:
            await self.kill()
            raise BoxLost("the box could not be wiped")

    async def kill(self) -> None:
        """End the box now. Safe to call twice."""
        await self._channel.kill()

    async def exchange(self, job: Job) -> tuple[dict[str, Any], Reply]:
        """Run one job to its end. BoxLost also when the box came out of it unclean."""
        header, blobs = job.frame()
        reply = await self._send(header, blobs, job.limits.backstop_s + _GRACE_S)
        self.jobs += 1
        if reply.header.get("status") not in ("ended", "timeout", "output"):
            await self.kill()
            raise BoxLost(
                f"the box could not run the job: {reply.header.get('error') or reply.header.get('status')}"
            )
        return reply.header, reply

    async def _episode_job(
        self, kind: str, code: str | bytes, stdin: str | bytes, options: dict[str, Any]
    ) -> Result:
        fields = {name: options.pop(name) for name in ("env", "argv") if name in options}
        job = Job(kind, job_limits(**options), code=code, keep=True, **fields)
        job.stdin = as_bytes(stdin)
        _, reply = await self.exchange(job)
        return as_result(reply)

    async def _send(self, header: dict[str, Any], blobs: list[bytes], within_s: float) -> Reply:
        serial = next(self._serial)
        reply = await self._channel.exchange({**header, "id": serial}, blobs, within_s)
        if reply.header.get("id") != serial:
            await self.kill()
            raise BoxLost(f"the box answered request {reply.header.get('id')}, not {serial}")
        return reply


def job_limits(
    *,
    cpu_s: float = 10.0,
    wall_s: float | None = 60.0,
    memory_mb: int = 384,
    output_bytes: int = 65536,
    processes: int = 100,
    file_mb: int = 64,
) -> Limits:
    """Limits of one command of an episode: generous, and output beyond `output_bytes` is dropped, not fatal."""
    flood = max(output_bytes, 64 << 20)
    return Limits(
        cpu_s=cpu_s,
        wall_s=wall_s,
        memory_mb=memory_mb,
        output_bytes=output_bytes,
        flood_bytes=flood,
        processes=processes,
        file_mb=file_mb,
    )


def as_result(reply: Reply) -> Result:
    """The solution's side of a finished job. What it printed is quoted, never believed."""
    child = reply.header["children"]["S"]
    stdout, stderr = (_text(blob) for blob in reply.blobs[1:3])
    return Result(
        status=_status(reply.header, child, stderr),
        stdout=stdout,
        stderr=stderr,
        cpu_s=float(reply.header["cpu_s"]),
        wall_s=float(reply.header["wall_s"]),
        exit_code=child["exit"],
        signal=child["signal"],
        truncated=child["lost"] > 0,
    )


def _status(header: Mapping[str, Any], child: Mapping[str, Any], stderr: str) -> Status:
    if header["status"] in ("timeout", "output"):
        return header["status"]
    if child["swept"]:
        return "ok"
    if child["signal"] == _SIGXCPU:
        return "timeout"
    if child["signal"] is not None:
        return "memory" if child["signal"] == _SIGKILL and header["oom"] > 0 else "crash"
    if child["exit"] == 0:
        return "ok"
    last = stderr.rstrip().rpartition("\n")[2]
    return "memory" if last.startswith("MemoryError") else "error"


def as_bytes(text: str | bytes) -> bytes:
    return text.encode("utf-8", "surrogatepass") if isinstance(text, str) else bytes(text)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _checked(path: str) -> str:
    if not path or "\0" in path or ".." in path.split("/"):
        raise ValueError(
            f"{path!r} is no path within a box: give a relative one without '..', or an absolute one"
        )
    return path
