"""The line to one supervisor: frames out, frames in, whatever carries them."""

from __future__ import annotations

import asyncio
import json
import struct
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from snoozing_sandboxes.errors import BoxLost
from snoozing_sandboxes.runner import MODULES, wire

__all__ = ["BOOT", "Channel", "Reply", "program"]

_MAX_MUX = 1 << 24
_STDOUT = 1
BOOT = """
import os, struct, sys, types
def read(n):
    out = b""
    while len(out) < n:
        chunk = os.read(0, n - len(out))
        if not chunk: os._exit(1)
        out += chunk
    return out
import json
parts = json.loads(read(struct.unpack(">I", read(4))[0]))
for name in ("snoozing_sandboxes", "snoozing_sandboxes.runner"):
    package = sys.modules[name] = types.ModuleType(name)
    package.__path__ = []
for name, source in parts["modules"]:
    module = sys.modules["snoozing_sandboxes.runner." + name] = types.ModuleType("snoozing_sandboxes.runner." + name)
    exec(compile(source, "runner/" + name + ".py", "exec", dont_inherit=True), module.__dict__)
sys.modules["snoozing_sandboxes.runner.supervisor"].main(parts["settings"])
"""
"""`python -I -S -B -c BOOT`: takes the runner from stdin, so the image holds nothing of ours."""


def program(settings: Mapping[str, Any]) -> bytes:
    """What BOOT reads: the runner's sources and its settings."""
    folder = resources.files("snoozing_sandboxes.runner")
    modules = [(name, folder.joinpath(f"{name}.py").read_text(encoding="utf-8")) for name in MODULES]
    text = json.dumps({"modules": modules, "settings": settings}).encode()
    return struct.pack(">I", len(text)) + text


@dataclass(frozen=True, slots=True)
class Reply:
    header: dict[str, Any]
    blobs: list[bytes]


class Channel:
    """One exchange at a time. After any failure or cancellation the channel is dead: half a frame may be in it.

    `muxed`: the stream is Docker's attach format (stream number, three zero bytes, u32 length, data).
    """

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        muxed: bool,
        kill: Callable[[], Awaitable[None]],
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._muxed = muxed
        self._kill = kill
        self._buffer = bytearray()
        self._complaints = bytearray()
        self._dead = False

    @property
    def dead(self) -> bool:
        """Whether it can carry nothing more; known at once when the other side has closed it."""
        return self._dead or self._reader.at_eof() or self._writer.is_closing()

    async def greet(self, settings: Mapping[str, Any], within_s: float) -> dict[str, Any]:
        """Send the runner and wait for its hello."""
        return (await self._guarded(program(settings), within_s)).header

    async def exchange(self, header: dict[str, Any], blobs: Sequence[bytes], within_s: float) -> Reply:
        """One request and its reply, BoxLost if it does not come or is not one."""
        return await self._guarded(wire.pack(header, blobs), within_s)

    async def kill(self) -> None:
        """End the box, whatever state it is in. Safe to call twice."""
        self._dead = True
        self._writer.close()
        await self._kill()

    async def _guarded(self, data: bytes, within_s: float) -> Reply:
        if self.dead:
            raise BoxLost("this box is gone already")
        self._dead = True  # until the reply is whole: a cancelled exchange leaves half a frame behind
        try:
            async with asyncio.timeout(within_s):
                self._writer.write(data)
                await self._writer.drain()
                total, header = wire.lengths(await self._take(wire.HEAD.size))
                reply = Reply(*wire.unpack(await self._take(total), header))
        except TimeoutError:
            raise BoxLost(f"the box did not answer within {within_s:.1f} s") from None
        except (OSError, asyncio.IncompleteReadError, wire.Malformed) as error:
            said = bytes(self._complaints[-400:]).decode("utf-8", "replace").strip()
            raise BoxLost(
                f"the box's channel broke: {error}" + (f"; it said: {said}" if said else "")
            ) from error
        self._dead = False
        return reply

    async def _take(self, count: int) -> bytes:
        if not self._muxed:
            return await self._reader.readexactly(count)
        while len(self._buffer) < count:
            head = await self._reader.readexactly(8)
            size = int.from_bytes(head[4:], "big")
            if size > _MAX_MUX:
                raise wire.Malformed(f"a stream chunk of {size} bytes")
            chunk = await self._reader.readexactly(size)
            if head[0] == _STDOUT:
                self._buffer += chunk
            else:
                self._complaints += chunk
                del self._complaints[:-4096]
        data = bytes(self._buffer[:count])
        del self._buffer[:count]
        return data
