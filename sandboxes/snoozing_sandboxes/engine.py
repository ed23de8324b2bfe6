"""Boxes in hardened containers on one or several Docker engines, through docker's SDK."""

from __future__ import annotations

import asyncio
import os
import random
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import docker
import docker.errors
import requests

from snoozing_sandboxes.box import Box
from snoozing_sandboxes.channel import BOOT, Channel
from snoozing_sandboxes.check import failed, self_check
from snoozing_sandboxes.errors import BoxLost, EngineUnavailable, LeakyEngine, SandboxError
from snoozing_sandboxes.hardening import FOLDERS, Hardening
from snoozing_sandboxes.image import ensure_image
from snoozing_sandboxes.reaper import boxes_of_everyone, reap

__all__ = ["DockerBackend", "Engine", "connect"]

_ENGINE_ERRORS = (docker.errors.DockerException, requests.RequestException, OSError)
_START_S = 60.0
_READ_LIMIT = 1 << 20
_FIRST_UID, _LAST_UID = 20000, 60000
"""Below 65536: engines with remapped users have no more."""


class Engine:
    """One Docker host. Blocking calls run in threads; each is bounded by `timeout_s`."""

    def __init__(
        self, url: str, *, hardening: Hardening, weaken: Mapping[str, Any], check: bool, timeout_s: float
    ) -> None:
        self.url = url
        self.boxes = 0
        """Boxes that live on it."""
        self._hardening = hardening
        self._weaken = dict(weaken)
        self._timeout_s = timeout_s
        self._client: docker.DockerClient | None = None
        self._image = ""
        self._uids: set[int] = set()
        self._checked = not check

    async def open(self, image: str, packages: Sequence[str]) -> None:
        """Reach the engine, reap the dead, get the image."""
        try:
            await asyncio.to_thread(self._open, image, packages)
        except _ENGINE_ERRORS as error:
            raise EngineUnavailable(
                f"no usable Docker engine at {self.url}: {_reason(error, self.url)}"
            ) from None

    async def start_box(self, settings: Mapping[str, Any]) -> Box:
        """A container with a supervisor that has said hello; the engine's first is checked for leaks."""
        uid = self._free_uid()
        self.boxes += 1
        box = None
        try:
            box = await self._start(uid, {**settings, "uids": [uid, uid + 1], "folders": FOLDERS})
            if not self._checked:
                await self._check(box)
                self._checked = True
            return box
        except BaseException as error:
            if box is not None:
                await box.kill()
            else:
                self._release(uid)
            if isinstance(error, _ENGINE_ERRORS):
                raise BoxLost(f"no box could be started at {self.url}: {_reason(error, self.url)}") from None
            raise

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await asyncio.to_thread(client.close)

    def _open(self, image: str, packages: Sequence[str]) -> None:
        _reach(self.url, self._timeout_s)
        self._client = docker.DockerClient(
            base_url=self.url, version="auto", timeout=self._timeout_s, max_pool_size=64
        )
        reap(self._client)
        self._image = ensure_image(self._client, image, packages)
        self._uids = {int(c.labels.get("snoozing.uid", 0)) for c in boxes_of_everyone(self._client)}

    def _free_uid(self) -> int:
        """The limit of processes counts per uid across containers: no two boxes may share one."""
        free = [uid for uid in range(_FIRST_UID, _LAST_UID, 2) if uid not in self._uids]
        if not free:
            raise EngineUnavailable(
                f"all {(_LAST_UID - _FIRST_UID) // 2} box identities at {self.url} are in use"
            )
        uid = random.SystemRandom().choice(free)
        self._uids.add(uid)
        return uid

    def _release(self, uid: int) -> None:
        self._uids.discard(uid)
        self.boxes -= 1

    async def _start(self, uid: int, settings: Mapping[str, Any]) -> Box:
        container, attached = await self._created(uid)
        ended = False

        async def kill() -> None:
            nonlocal ended
            if not ended:
                ended = True
                self._release(uid)
                await asyncio.to_thread(self._remove, container)

        try:
            reader, writer = await _streams(attached)
        except BaseException:
            attached.close()
            await kill()
            raise
        channel = Channel(reader, writer, muxed=True, kill=kill)
        try:
            hello = await channel.greet(settings, _START_S)
        except BaseException:
            await channel.kill()
            raise
        return Box(channel, name=container[:12], workdir=FOLDERS[0], hello=hello)

    async def _created(self, uid: int) -> tuple[str, socket.socket]:
        """A thread cannot be cancelled: who gives up waits for it, and removes what it made."""
        creating = asyncio.ensure_future(asyncio.to_thread(self._create, uid))
        try:
            return await asyncio.shield(creating)
        except asyncio.CancelledError:
            container, attached = await creating
            attached.close()
            await asyncio.to_thread(self._remove, container)
            raise

    def _create(self, uid: int) -> tuple[str, socket.socket]:
        client = self._client
        if client is None:
            raise BoxLost(f"the engine at {self.url} was closed")
        _reach(self.url, self._timeout_s)
        options = {**self._hardening.options(uid), **self._weaken}
        command = ["python3", "-I", "-S", "-B", "-c", BOOT]
        container = client.containers.create(self._image, command, stdin_open=True, **options)
        name = str(container.id)
        try:
            streams = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
            held = client.api.attach_socket(name, params=streams)
            # The SDK's objects close the connection when they are collected, so the descriptor is taken from them.
            attached = socket.socket(fileno=os.dup(held.fileno()))
            underneath = held._sock
            held.close()
            underneath.close()
            container.start()
        except BaseException:
            self._remove(name)
            raise
        return name, attached

    def _remove(self, container: str) -> None:
        """Best effort: its stdin is closed, so it ends by itself, and the reaper takes what an engine forgot."""
        client = self._client
        if client is not None:
            try:
                client.api.remove_container(container, force=True)
            except _ENGINE_ERRORS:
                return

    async def _check(self, box: Box) -> None:
        async def run(program: str) -> str:
            return (await box.python(program)).stdout

        try:
            leaks = failed(await self_check(run))
        except SandboxError as error:
            raise LeakyEngine(f"the engine at {self.url} could not be checked: {error}") from None
        await box.reset()
        if leaks:
            named = "; ".join(f"{leak.name} ({leak.evidence})" for leak in leaks)
            raise LeakyEngine(
                f"the engine at {self.url} does not hold what boxes promise: {named}. Nothing was run on it; "
                "`snoozing-sandboxes check` shows every check"
            )


class DockerBackend:
    """Spreads boxes over engines: each new one goes where the fewest are, and elsewhere if that engine fails."""

    def __init__(
        self,
        *,
        hosts: Sequence[str] = (),
        image: str = "auto",
        packages: Sequence[str] = (),
        preload: Sequence[str] = (),
        hardening: Hardening | None = None,
        weaken: Mapping[str, Any] | None = None,
        check: bool = True,
        timeout_s: float = 30.0,
    ) -> None:
        """`weaken` overrides container options; it exists to show that the check finds what it looks for. `check`
        False is for those who run the check themselves."""
        urls = tuple(hosts) or (_default_url(),)
        for url in urls:
            if not url.startswith(("unix://", "tcp://")):
                raise ValueError(f"Docker host {url!r}: boxes speak over unix:// or tcp:// endpoints only")
        shared = hardening or Hardening()
        self.engines = [
            Engine(url, hardening=shared, weaken=weaken or {}, check=check, timeout_s=timeout_s)
            for url in urls
        ]
        self._image = image
        self._packages = tuple(packages)
        self._settings = {"preload": tuple(preload), "site": _site_folders(), "inet": True}

    async def open(self) -> None:
        for engine in self.engines:
            await engine.open(self._image, self._packages)

    async def start_box(self) -> Box:
        failures = []
        for engine in sorted(self.engines, key=lambda e: e.boxes):
            try:
                return await engine.start_box(self._settings)
            except LeakyEngine:
                raise
            except (BoxLost, EngineUnavailable) as error:
                failures.append(str(error))
        raise BoxLost(" · ".join(failures))

    async def close(self) -> None:
        for engine in self.engines:
            await engine.close()


@contextmanager
def connect(url: str | None) -> Iterator[docker.DockerClient]:
    """The engine for a command; EngineUnavailable says what to do."""
    url = url or _default_url()
    try:
        _reach(url, 10.0)
        client = docker.DockerClient(base_url=url, version="auto", timeout=60)
        try:
            yield client
        finally:
            client.close()
    except _ENGINE_ERRORS as error:
        raise EngineUnavailable(f"no usable Docker engine at {url}: {_reason(error, url)}") from None


def _default_url() -> str:
    return os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")


def _site_folders() -> list[str]:
    """Where images keep packages; the supervisor starts without `site`, so it is told."""
    return [f"/usr/local/lib/python3.{minor}/site-packages" for minor in range(11, 16)]


async def _streams(attached: socket.socket) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    attached.setblocking(False)
    if attached.family == socket.AF_UNIX:
        return await asyncio.open_unix_connection(sock=attached, limit=_READ_LIMIT)
    attached.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return await asyncio.open_connection(sock=attached, limit=_READ_LIMIT)


def _reach(url: str, timeout_s: float) -> None:
    """OSError if nobody listens. The SDK would find out too, but leaks a socket and wraps the error thrice."""
    if url.startswith("unix://"):
        with socket.socket(socket.AF_UNIX) as line:
            line.settimeout(timeout_s)
            line.connect(url.removeprefix("unix://"))
        return
    parts = urlsplit(url)
    socket.create_connection((parts.hostname or "localhost", parts.port or 2375), timeout_s).close()


def _reason(error: BaseException, url: str) -> str:
    """What is wrong and what to do, for the cases people meet."""
    text = str(error)
    if "Permission denied" in text or isinstance(error, PermissionError):
        return "permission denied. Run as root, or join the docker group (`sudo usermod -aG docker $USER`, log in again)"
    if isinstance(error, FileNotFoundError | ConnectionRefusedError):
        return f"nothing listens at {url}. Install Docker and start it, or use backend='local' (unsafe)"
    if "timed out" in text.lower() or isinstance(error, requests.Timeout):
        return "it does not answer in time. Restart the daemon, or give it less to do"
    return text[:500]
