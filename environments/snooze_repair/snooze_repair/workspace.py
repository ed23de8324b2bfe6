"""The box of an episode as the tools need it, over any verifiers runtime.

A verifiers runtime raises the same SandboxError for a box that is gone and for a file that is not there. The first
is ours and makes the episode invalid; the second is the policy's business. `own_fault` tells them apart.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath

import verifiers.v1 as vf
from snoozing_sandboxes.errors import SandboxError
from snoozing_sandboxes.runtime import PoolRuntime

_TIMED_OUT = 124


class ToolError(Exception):
    """Something the policy did wrong; its text is what the policy reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """One command."""

    output: str
    """stdout, then stderr."""
    exit_code: int

    @property
    def timed_out(self) -> bool:
        return self.exit_code == _TIMED_OUT


class Workspace:
    """Commands and files of one episode. Every method raises vf.SandboxError when the box is lost."""

    def __init__(self, runtime: vf.Runtime, *, file_bytes: int) -> None:
        self._runtime = runtime
        self._file_bytes = file_bytes

    async def shell(self, command: str) -> Ran:
        result = await self._runtime.run(["sh", "-c", command], {})
        return Ran(output=result.stdout + result.stderr, exit_code=result.exit_code)

    async def read(self, path: str) -> str:
        """Text of a regular file. ToolError where there is none, it is too large, or it is no text."""
        async with self._own_fault(
            f"{path} cannot be read (no such file, no regular file, or over the limit)"
        ):
            data = await self._runtime.read(_inside(path), max_bytes=self._file_bytes)
        try:
            return data.decode()
        except UnicodeDecodeError:
            raise ToolError(f"{path} is not UTF-8 text") from None

    async def write(self, path: str, text: str) -> None:
        data = text.encode("utf-8", "replace")
        if len(data) > self._file_bytes:
            raise ToolError(f"{path} would have {len(data)} bytes, the limit is {self._file_bytes}")
        async with self._own_fault(f"{path} cannot be written (is it a folder, or is the disk full?)"):
            await self._runtime.write(_inside(path), data)

    async def quiet(self) -> None:
        """End what the policy left running, so that nothing changes files any more. No-op on foreign runtimes."""
        if isinstance(self._runtime, PoolRuntime):
            try:
                await self._runtime.box.sweep()
            except SandboxError as error:
                raise vf.SandboxError(str(error)) from error

    @asynccontextmanager
    async def _own_fault(self, message: str) -> AsyncIterator[None]:
        try:
            yield
        except vf.SandboxError as error:
            if await self._gone():
                raise
            raise ToolError(message) from error

    async def _gone(self) -> bool:
        runtime = self._runtime
        # Asking a box whether it runs `true` would blame it for processes that the policy filled it with.
        return runtime.box.lost if isinstance(runtime, PoolRuntime) else not await runtime.alive()


def _inside(path: str) -> str:
    """The path relative to the project's folder."""
    pure = PurePosixPath(path.strip())
    if pure.is_absolute() and pure.parts[1:2] == ("box",):
        pure = PurePosixPath(*pure.parts[2:])
    if pure.is_absolute() or ".." in pure.parts or not pure.parts or "\0" in path:
        raise ToolError(f"{path!r} is not a path inside the project's folder")
    return str(pure)
