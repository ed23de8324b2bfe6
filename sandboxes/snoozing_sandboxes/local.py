"""Boxes without a container: a subprocess with resource limits. UNSAFE.

A program in such a box runs as you: it reads your files, writes what you can write and kills what you can kill. Use it
for programs you would run yourself, on a machine without Docker, or to try an environment out. Limits, protocols and
verdicts are those of the containers, since the same runner does the work; the walls are missing.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from snoozing_sandboxes.box import Box
from snoozing_sandboxes.channel import BOOT, Channel
from snoozing_sandboxes.errors import BoxLost, EngineUnavailable

__all__ = ["LocalBackend"]

_START_S = 60.0
_LIMIT = 1 << 20


class LocalBackend:
    """Linux only. `preload`: modules that every program finds imported."""

    def __init__(self, *, preload: Sequence[str] = ()) -> None:
        self._preload = tuple(preload)

    async def open(self) -> None:
        if not sys.platform.startswith("linux"):
            raise EngineUnavailable(
                f"the local backend needs Linux, this is {sys.platform}; use backend='docker'"
            )

    async def start_box(self) -> Box:
        folder = Path(tempfile.mkdtemp(prefix="snoozing-box-"))
        workdir = folder / "box"
        workdir.mkdir()
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", "-B", "-c", BOOT),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            cwd=folder,
            env={"PATH": os.environ.get("PATH", os.defpath), "PYTHONHASHSEED": "0"},
            start_new_session=True,
            limit=_LIMIT,
        )
        if process.stdin is None or process.stdout is None:
            raise BoxLost("the box's process has no pipes")

        async def kill() -> None:
            await _end(process)
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

        channel = Channel(process.stdout, process.stdin, muxed=False, kill=kill)
        site = [p for p in sys.path if p.endswith(("site-packages", "dist-packages"))]
        settings = {
            "uids": [],
            "folders": [str(workdir)],
            "preload": self._preload,
            "site": site,
            "inet": False,
        }
        try:
            hello = await channel.greet(settings, _START_S)
        except BaseException:
            await channel.kill()
            raise
        return Box(channel, name=f"process {process.pid}", workdir=str(workdir), hello=hello)

    async def close(self) -> None:
        """Nothing is held."""


async def _end(process: asyncio.subprocess.Process) -> None:
    """Closing its stdin makes the supervisor sweep and leave; SIGKILL if it does not."""
    try:
        async with asyncio.timeout(2.0):
            await process.wait()
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
