"""Real `vllm serve` processes on the CPU, shared by the whole session (each takes about 25 s to come up)."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from snoozing_env.rollout.server import VllmServer, VllmServerConfig, free_port

HERE = Path(__file__).parent
# Helpers beside the tests (tiny_qwen3, policies) are plain modules; importlib mode puts nothing on the path.
sys.path.insert(0, str(HERE))


@dataclass(frozen=True)
class Served:
    """A checkpoint and the server that serves it under the name "policy"."""

    path: Path
    server: VllmServer

    @property
    def base_url(self) -> str:
        return self.server.base_url


@pytest.fixture(scope="session")
def vllm_installed() -> None:
    spec = importlib.util.find_spec("vllm")
    if spec is None or spec.origin is None:
        pytest.skip("vLLM is not installed here: `make test-vllm` runs these in .venv-vllm")


@pytest.fixture(scope="session")
def checkpoints(vllm_installed: None, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Tiny random Qwen3 checkpoints, "tied" and "untied", and "moved": the tied one after a known update."""
    from policies import load_policy, nudge
    from tiny_qwen3 import build_tiny, build_tokenizer

    root = tmp_path_factory.mktemp("checkpoints")
    paths = {name: build_tiny(root / name, tied=name == "tied", seed=1) for name in ("tied", "untied")}
    moved = load_policy(paths["tied"])
    nudge(moved, seed=7)
    moved.save_pretrained(root / "moved")
    build_tokenizer().save_pretrained(root / "moved")
    return {**paths, "moved": root / "moved"}


@pytest.fixture(scope="session")
def servers(
    checkpoints: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Served]]:
    """All servers of the session, started side by side.

    "unrepaired" serves the moved checkpoint and takes weights without the tied-head repair: it is both the fresh
    server to compare with and the proof that the repair is needed.
    """
    logs = tmp_path_factory.mktemp("logs")
    unrepaired = VllmServerConfig(
        model=str(checkpoints["moved"]),
        log=str(logs / "unrepaired.log"),
        weight_backend="unrepaired",
        worker_extension="unrepaired.UnrepairedExtension",
        env={"PYTHONPATH": os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH")]))},
        port=free_port(),
    )
    configs = {
        name: VllmServerConfig(model=str(checkpoints[name]), log=str(logs / f"{name}.log"))
        for name in ("tied", "untied")
    }
    configs["unrepaired"] = unrepaired
    served = {name: Served(Path(config.model), VllmServer(config)) for name, config in configs.items()}
    try:
        for one in served.values():
            one.server.launch()
        for one in served.values():
            one.server.wait_ready()
        yield served
    finally:
        for one in served.values():
            one.server.stop()


@pytest.fixture(scope="session")
def tied(servers: dict[str, Served]) -> Served:
    return servers["tied"]


@pytest.fixture(scope="session")
def untied(servers: dict[str, Served]) -> Served:
    return servers["untied"]


@pytest.fixture(scope="session")
def unrepaired(servers: dict[str, Served]) -> Served:
    return servers["unrepaired"]


@pytest.fixture(params=["tied", "untied"])
def served(request: pytest.FixtureRequest, servers: dict[str, Served]) -> Served:
    return servers[request.param]
