"""A Docker daemon of the tests' own, which they may kill and restart; the machine's stays as it is."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import docker
import docker.errors
import requests

_READY_S = 30.0


def cannot_start() -> str:
    """Why no second daemon can be had here; "" if one can."""
    if os.geteuid() != 0 or not shutil.which("dockerd"):
        return "needs root and a dockerd binary to start a second daemon"
    return ""


class Daemon:
    """`dockerd` with its own data, sockets and containerd, beside the machine's."""

    def __init__(self, folder: Path, port: int) -> None:
        self._folder = folder
        self.unix = f"unix://{folder}/docker.sock"
        self.tcp = f"tcp://127.0.0.1:{port}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and wait until it answers."""
        options = {"data-root": "data", "exec-root": "exec", "pidfile": "pid"}
        command = ["dockerd", "--iptables=false", "--log-level=error", "-H", self.unix, "-H", self.tcp]
        command += [f"--{name}={self._folder / place}" for name, place in options.items()]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        limit = time.monotonic() + _READY_S
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > limit:
                raise RuntimeError((self._folder / "log").read_text()[-2000:])
            time.sleep(0.1)

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """SIGTERM ends its containers with it; SIGKILL leaves them to themselves."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(timeout=30)
            self._process = None
        if how == signal.SIGKILL:
            self._end_containerd()

    def close(self) -> None:
        """Stop it and unmount what a killed one left mounted."""
        self.stop()
        mounted = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
        for path in reversed(mounted):
            if Path(path).is_relative_to(self._folder):
                subprocess.run(["umount", "--lazy", path], check=False)

    def _end_containerd(self) -> None:
        """A killed daemon leaves its containerd, which would be in the next one's way."""
        for pid_file in self._folder.glob("exec/containerd/containerd.pid"):
            pid, limit = int(pid_file.read_text()), time.monotonic() + _READY_S
            while time.monotonic() < limit and Path(f"/proc/{pid}").exists():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGTERM)
                time.sleep(0.05)

    def _answers(self) -> bool:
        try:
            with socket.socket(socket.AF_UNIX) as line:
                line.connect(
                    self.unix.removeprefix("unix://")
                )  # the SDK leaks its socket when nobody listens
            client = docker.DockerClient(base_url=self.unix, timeout=5)
            try:
                return bool(client.ping())
            finally:
                client.close()
        except (docker.errors.DockerException, requests.RequestException, OSError):
            return False
