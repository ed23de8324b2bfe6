"""Start and stop a `vllm serve` process on this machine.

    VllmServer(config).start()   spawn → poll /health → ready        (the log's tail when it dies first)
    .stop()                      SIGTERM → 20 s → SIGKILL, to its own process group

The server is reachable on the loopback address only: its weight-update routes take no password.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from pydantic import ConfigDict, Field
from pydantic_config import BaseConfig

from snoozing_env.errors import EngineError

HOST = "127.0.0.1"
STOP_GRACE_S = 20.0
RESTART_WINDOW_S = 3600.0
"""Restarts longer ago than this are forgotten: a run of weeks may lose a server now and then."""
PR_SET_PDEATHSIG = 1

Device = Literal["auto", "cpu", "cuda"]


class VllmServerConfig(BaseConfig):
    """How to serve a policy with vLLM."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    model: str = ""
    """Checkpoint directory or hub name; a recipe leaves it empty, since its policy is what is served."""
    name: str = "policy"
    """Model name that requests ask for."""
    port: int = Field(0, ge=0, le=65535)
    """TCP port on 127.0.0.1; 0 = any free one."""
    replicas: int = Field(1, ge=1)
    """Servers to start; a recipe spreads its requests over them and restarts one that dies."""
    device: Device = "auto"
    """"auto" = cuda when an NVIDIA driver is visible, else cpu."""
    dtype: str = "auto"
    """"auto" = float32 on cpu (bfloat16 differs from the trainer by .2 nats there), bfloat16 on cuda."""
    max_model_len: int = Field(1024, ge=16)
    """Prompt plus completion, in tokens."""
    max_num_seqs: int = Field(64, ge=1)
    """Sequences decoded at once."""
    kv_cache_gb: int = Field(1, ge=1)
    """KV cache in GiB (cpu only)."""
    threads: int = Field(1, ge=1)
    """OpenMP threads (cpu only)."""
    gpu_memory_utilization: float = Field(0.5, gt=0, le=1)
    """Share of GPU memory for the server (cuda only); the trainer needs the rest."""
    weight_backend: str = "snooze"
    """Receiving backend: "snooze" (routes gloo and dir) or "nccl" (vLLM's own, cuda only)."""
    worker_extension: str = "snoozing_env.train.vllm_worker.SnoozeWorkerExtension"
    """Class mixed into vLLM's worker; must offer what SnoozeWorkerExtension does."""
    executable: str | None = None
    """Path of the `vllm` program; None = beside this Python, else .venv-vllm/bin/vllm, else on PATH."""
    log: str | None = None
    """File for the server's output; None = a temporary file."""
    wait_s: float = Field(300.0, gt=0)
    """Seconds to wait for the server to come up (20 s idle, 130 s on a loaded machine)."""
    restarts: int = Field(5, ge=0)
    """Times within an hour that a run starts a server again which ended; then it does without."""
    extra_args: tuple[str, ...] = ()
    """More arguments for `vllm serve`."""
    env: dict[str, str] = Field(default_factory=dict)
    """More environment variables for the server."""


class VllmServer:
    """One `vllm serve` process; use it as a context manager. Start it from a thread that lives as long as it does.

    Linux delivers the parent-death signal when the *thread* that spawned the child ends, so spawning from a
    short-lived worker thread would stop the server at once.
    """

    def __init__(self, config: VllmServerConfig, *, progress: Callable[[str], None] | None = None) -> None:
        self.config = config
        self.port = config.port
        self.log = Path(config.log) if config.log else None
        self._say = progress or (lambda text: None)
        self._process: subprocess.Popen[bytes] | None = None
        self.restarts = 0
        """Times that it was launched again."""
        self._restarted_at: list[float] = []

    @property
    def base_url(self) -> str:
        """OpenAI-compatible root, for `VllmEngineConfig.base_url`."""
        return f"http://{HOST}:{self.port}/v1"

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def launch(self) -> None:
        """Spawn the process without waiting for it; `wait_ready` does that."""
        if self.running:
            raise EngineError(f"this server already runs as process {self.pid}; stop it first")
        if not self.config.model:
            raise EngineError(
                "there is no model to serve; set server.model to a checkpoint directory or hub name"
            )
        self.port = self.config.port or free_port()
        # Another server on the port would answer our health checks in place of ours.
        if not _is_free(self.port):
            raise EngineError(
                f"port {self.port} is taken by another process; set server.port to 0 for any free one"
            )
        if self.log is None:
            handle, name = tempfile.mkstemp(prefix="vllm-", suffix=".log")
            os.close(handle)
            self.log = Path(name)
        command = serve_command(self.config, port=self.port)
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **serve_environment(self.config)},
                start_new_session=True,
                preexec_fn=_die_with(os.getpid()),
            )
        self._say(f"starting vllm serve {self.config.model} on port {self.port} (log {self.log})")

    def wait_ready(self) -> None:
        """Poll /health; raises `EngineError` with the log's tail when the process dies or time is up."""
        if self._process is None:
            raise EngineError("the server was not launched; call start(), or launch() first")
        started = time.monotonic()
        spoken = 0.0
        while not _healthy(self.port):
            waited = time.monotonic() - started
            if self._process.poll() is not None:
                raise EngineError(
                    f"vllm serve ended with code {self._process.returncode} before it was ready\n{self.tail()}"
                )
            if waited > self.config.wait_s:
                self.stop()
                raise EngineError(
                    f"vllm serve was not ready after {waited:.0f} s; raise wait_s\n{self.tail()}"
                )
            if waited - spoken >= 10:
                spoken = waited
                self._say(f"waiting for vllm serve, {waited:.0f} s of at most {self.config.wait_s:.0f}")
            time.sleep(0.2)
        self._say(f"vllm serve is ready after {time.monotonic() - started:.0f} s")

    def relaunch(self) -> None:
        """Launch again, on the same port, a server that ended; its log is kept beside the new one.

        Raises:
            EngineError: it has ended too often; the message has the log's tail.
        """
        if self._process is None or self.running:
            raise EngineError("only a server that was launched and has ended can be launched again")
        now = time.monotonic()
        self._restarted_at = [at for at in self._restarted_at if now - at < RESTART_WINDOW_S]
        if len(self._restarted_at) >= self.config.restarts:
            raise EngineError(
                f"vllm serve ended {len(self._restarted_at) + 1} times within an hour; it is not started again (server.restarts "
                f"{self.config.restarts})\n{self.tail()}"
            )
        self._restarted_at.append(now)
        self.restarts += 1
        _kill_group(self._process.pid)
        if self.log is not None and self.log.exists():
            self.log.replace(self.log.with_name(f"{self.log.name}.ended-{self.restarts}"))
        self.config = self.config.model_copy(update={"port": self.port})
        self.launch()

    def start(self) -> Self:
        self.launch()
        try:
            self.wait_ready()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """End the process and everything it started. Safe to call twice."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(STOP_GRACE_S)
            except subprocess.TimeoutExpired:
                process.kill()
        _kill_group(process.pid)
        process.wait()

    def tail(self, lines: int = 30) -> str:
        """Last lines of the server's log."""
        if self.log is None or not self.log.exists():
            return "(no log)"
        text = self.log.read_text(errors="replace").splitlines()[-lines:]
        return f"last lines of {self.log}:\n" + "\n".join(text)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


class ServerKeeper:
    """Starts a run's own servers again, on their old ports, when they ended; the fleet notices when they answer."""

    def __init__(self, servers: Sequence[VllmServer], say: Callable[[str], None]) -> None:
        self._servers, self._say = list(servers), say

    def restart_dead(self) -> None:
        """Launch what ended. One that ends again and again is given up.

        Raises:
            EngineError: the last one is; its log's tail is in the message.
        """
        for server in [s for s in self._servers if not s.running]:
            self._say(f"{server.base_url} ended; starting it again")
            try:
                server.relaunch()
            except EngineError as error:
                self._servers.remove(server)
                if not self._servers:
                    raise
                self._say(f"{server.base_url} is given up, {len(self._servers)} go on: {error}")


def free_port() -> int:
    """A TCP port that was free on the loopback address a moment ago."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # As the server binds: connections of a predecessor that linger in TIME_WAIT do not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True


def resolve_device(device: Device) -> Literal["cpu", "cuda"]:
    """ "auto" decided by the NVIDIA driver, without importing torch."""
    if device != "auto":
        return device
    return "cuda" if Path("/proc/driver/nvidia/version").exists() else "cpu"


def find_vllm(config: VllmServerConfig) -> str:
    """Path of the vllm program, or an `EngineError` that says how to get one."""
    beside = Path(sys.executable).with_name("vllm")
    candidates = (
        [config.executable]
        if config.executable
        else [str(beside), ".venv-vllm/bin/vllm", shutil.which("vllm")]
    )
    for candidate in candidates:
        if candidate and os.access(candidate, os.X_OK):
            return str(Path(candidate).absolute())
    tried = ", ".join(str(c) for c in candidates if c)
    raise EngineError(f"no vllm program at {tried}; run scripts/setup_vllm.sh or set server.executable")


def serve_command(config: VllmServerConfig, *, port: int) -> list[str]:
    """The argument vector of `vllm serve`."""
    device = resolve_device(config.device)
    dtype = config.dtype if config.dtype != "auto" else {"cpu": "float32", "cuda": "bfloat16"}[device]
    command = [find_vllm(config), "serve", config.model, "--host", HOST, "--port", str(port)]
    command += ["--served-model-name", config.name, "--dtype", dtype]
    command += ["--max-model-len", str(config.max_model_len), "--max-num-seqs", str(config.max_num_seqs)]
    # The trainer's loss needs the log-prob at the sampling temperature, and sampling must not be bent by a
    # generation_config.json (top_k, repetition_penalty) that came with the checkpoint.
    command += ["--logprobs-mode", "processed_logprobs", "--generation-config", "vllm"]
    command += ["--worker-extension-cls", config.worker_extension]
    command += ["--weight-transfer-config", f'{{"backend": "{config.weight_backend}"}}']
    command += ["--enable-auto-tool-choice", "--tool-call-parser", "hermes", "--enable-scale-out"]
    if device == "cpu":
        # A prompt whose prefill is split makes vLLM 0.31 rewind the request's generator, which torch cannot do on a
        # CPU ("CPU Generator does not use offset"): the server dies at the first busy moment with seeded requests.
        budget = max(4096, config.max_model_len)
        command += ["--enforce-eager", "--no-enable-chunked-prefill", "--max-num-batched-tokens", str(budget)]
    else:
        command += ["--gpu-memory-utilization", str(config.gpu_memory_utilization)]
    return [*command, *config.extra_args]


def serve_environment(config: VllmServerConfig) -> Mapping[str, str]:
    """What the server needs in its environment beyond ours."""
    env = {"VLLM_SERVER_DEV_MODE": "1", "VLLM_NO_USAGE_STATS": "1"}
    if os.path.isdir(config.model):
        env["HF_HUB_OFFLINE"] = "1"
    if resolve_device(config.device) == "cpu":
        env |= {
            "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
            # One thread by default: the CPU executor spins, 64 requests drop from 2,000 to 365 tokens/s on two.
            "OMP_NUM_THREADS": str(config.threads),
            "VLLM_CPU_KVCACHE_SPACE": str(config.kv_cache_gb),
        }
    return env | config.env


def _die_with(parent: int) -> Callable[[], None]:
    libc = ctypes.CDLL(None, use_errno=True)

    def in_child() -> None:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:  # it died between fork and prctl
            os._exit(1)

    return in_child


def _kill_group(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return


def _healthy(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://{HOST}:{port}/health", timeout=2) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False
