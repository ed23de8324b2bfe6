"""Starting and stopping a server process; shell scripts stand in for the `vllm` program, so no vLLM is needed."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from snoozing_env.errors import EngineError
from snoozing_env.rollout.server import (
    ServerKeeper,
    VllmServer,
    VllmServerConfig,
    serve_command,
    serve_environment,
)

HEALTHY = """
import http.server, pathlib, subprocess, sys
child = subprocess.Popen(["sleep", "1000"])
pathlib.Path({pids!r}).write_text(str(child.pid))
class Health(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers()
port = int(sys.argv[sys.argv.index("--port") + 1])
http.server.HTTPServer(("127.0.0.1", port), Health).serve_forever()
"""


def program(path: Path, body: str) -> str:
    path.write_text(f"#!{sys.executable}\n{textwrap.dedent(body)}")
    path.chmod(0o755)
    return str(path)


def gone(pid: int) -> bool:
    """True once the process ended (or is a zombie nobody waited for)."""
    for _ in range(100):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return True
        if state == "Z":
            return True
        time.sleep(0.05)
    return False


def config(tmp_path: Path, executable: str, **fields: object) -> VllmServerConfig:
    log = str(tmp_path / "server.log")
    return VllmServerConfig(model="m", executable=executable, log=log, device="cpu", **fields)


def test_a_server_that_dies_at_once_shows_the_tail_of_its_log(tmp_path):
    executable = program(tmp_path / "vllm", "import sys; print('no such checkpoint'); sys.exit(3)")
    with pytest.raises(
        EngineError, match=r"ended with code 3 before it was ready\nlast lines of .*\nno such checkpoint"
    ):
        VllmServer(config(tmp_path, executable)).start()


def test_a_server_that_never_gets_ready_is_stopped(tmp_path):
    executable = program(tmp_path / "vllm", "import time; print('loading', flush=True); time.sleep(1000)")
    server = VllmServer(config(tmp_path, executable, wait_s=0.5))
    with pytest.raises(EngineError, match=r"not ready after [0-9] s; raise wait_s\nlast lines of"):
        server.start()
    assert not server.running


def test_stopping_ends_the_server_and_what_it_started(tmp_path):
    pids = tmp_path / "child.pid"
    said: list[str] = []
    with VllmServer(
        config(tmp_path, program(tmp_path / "vllm", HEALTHY.format(pids=str(pids)))), progress=said.append
    ) as server:
        assert server.running
        child = int(pids.read_text())
    assert gone(child)
    assert not server.running
    assert said[0].startswith("starting vllm serve m on port")


def test_a_server_does_not_outlive_a_killed_trainer(tmp_path):
    pids = tmp_path / "child.pid"
    executable = program(tmp_path / "vllm", HEALTHY.format(pids=str(pids)))
    fields = config(tmp_path, executable).model_dump()
    trainer = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys, time; from snoozing_env.rollout.server import VllmServer, VllmServerConfig\n"
            f"server = VllmServer(VllmServerConfig(**{fields!r})).start()\n"
            "print(server.pid, flush=True); time.sleep(1000)",
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    with trainer:
        assert trainer.stdout is not None
        server = int(trainer.stdout.readline())
        os.kill(trainer.pid, signal.SIGKILL)
    assert gone(server)
    os.kill(int(pids.read_text()), signal.SIGKILL)


def test_a_missing_program_is_named_with_the_fix(tmp_path):
    with pytest.raises(
        EngineError,
        match=r"no vllm program at /nowhere/vllm; run scripts/setup_vllm\.sh or set server\.executable",
    ):
        VllmServer(config(tmp_path, "/nowhere/vllm")).start()


def test_a_server_without_a_model_is_refused():
    with pytest.raises(
        EngineError, match=r"no model to serve; set server\.model to a checkpoint directory or hub name"
    ):
        VllmServer(VllmServerConfig()).start()


def test_a_port_that_is_taken_is_refused_instead_of_taking_the_other_server_for_ours(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        server = VllmServer(config(tmp_path, program(tmp_path / "vllm", ""), port=port))
        with pytest.raises(
            EngineError, match=rf"port {port} is taken by another process; set server\.port to 0"
        ):
            server.start()


def test_cpu_serves_in_float32_on_the_loopback_with_processed_logprobs(tmp_path):
    executable = program(tmp_path / "vllm", "")
    cpu = config(tmp_path, executable, extra_args=("--seed", "1"))
    command = " ".join(serve_command(cpu, port=5))
    for wanted in (
        "--host 127.0.0.1 --port 5",
        "--dtype float32",
        "--logprobs-mode processed_logprobs",
        "--generation-config vllm",
        "--enforce-eager",
        '--weight-transfer-config {"backend": "snooze"}',
        "--seed 1",
    ):
        assert wanted in command
    assert serve_environment(cpu)["OMP_NUM_THREADS"] == "1"


def test_a_gpu_server_gets_no_cpu_settings(tmp_path):
    gpu = VllmServerConfig(
        model="m", executable=program(tmp_path / "vllm", ""), device="cuda", weight_backend="nccl"
    )
    command = " ".join(serve_command(gpu, port=5))
    assert "--enforce-eager" not in command
    assert "--dtype bfloat16" in command
    assert "--gpu-memory-utilization 0.5" in command
    assert '--weight-transfer-config {"backend": "nccl"}' in command
    assert not [name for name in serve_environment(gpu) if "CPU" in name or "OMP" in name]


def test_a_server_that_ends_again_and_again_is_given_up_and_the_others_go_on(tmp_path):
    healthy = program(tmp_path / "healthy", HEALTHY.format(pids=str(tmp_path / "child.pid")))
    broken = program(tmp_path / "broken", "print('out of memory')")
    said: list[str] = []
    with VllmServer(config(tmp_path, healthy)) as good:
        bad = VllmServer(VllmServerConfig(model="m", executable=broken, device="cpu", restarts=2))
        bad.launch()
        keeper = ServerKeeper([good, bad], said.append)
        for _ in range(3):
            until(lambda: not bad.running)
            keeper.restart_dead()
        assert bad.restarts == 2
        assert "is given up, 1 go on: vllm serve ended 3 times within an hour" in said[-1]
        assert "out of memory" in said[-1]
        keeper.restart_dead()
        assert good.running
    last = VllmServer(VllmServerConfig(model="m", executable=broken, device="cpu", restarts=0))
    with pytest.raises(
        EngineError, match=r"ended 1 times within an hour; it is not started again \(server.restarts 0\)"
    ):
        give_up(last)


def give_up(server: VllmServer) -> None:
    """The last one: nobody is left to go on."""
    server.launch()
    until(lambda: not server.running)
    ServerKeeper([server], print).restart_dead()


def until(true: Callable[[], bool]) -> None:
    limit = time.monotonic() + 20
    while not true():
        assert time.monotonic() < limit, "it never happened"
        time.sleep(0.01)
