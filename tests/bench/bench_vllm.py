"""A real `vllm serve` on this CPU: how far its log-probs are from the trainer's after each update, and what a push costs.

.venv-vllm/bin/python tests/bench/bench_vllm.py [--quick]
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import logging
import statistics
import sys
import tempfile
import time
from pathlib import Path

from snoozing_env.rollout.engines.base import SamplingParams
from snoozing_env.rollout.engines.vllm import VllmEngine, VllmEngineConfig
from snoozing_env.rollout.server import VllmServer, VllmServerConfig
from snoozing_env.train.weights import build_transfer
from snoozing_env.train.weights_config import DirTransferConfig, GlooTransferConfig

sys.path.insert(0, str(Path(__file__).parent.parent / "vllm"))
UPDATES = 4
Figures = dict[str, float | str]


def figures(quick: bool) -> Figures:
    """Flat figures, "<model> <route> max_delta_logprob" and "... push_s"; quick leaves SmolLM2 out."""
    if importlib.util.find_spec("vllm") is None:
        return {
            "skipped": "vLLM is not installed here; run scripts/setup_vllm.sh and use .venv-vllm/bin/python"
        }
    from tiny_qwen3 import build_tiny

    found: Figures = {}
    with tempfile.TemporaryDirectory(prefix="bench-vllm-") as folder:
        root = Path(folder)
        paths = {name: build_tiny(root / name, tied=name == "tied", seed=1) for name in ("tied", "untied")}
        scales = dict.fromkeys(paths, 0.03)
        if not quick:
            from snoozing_env.train.smollm2 import load_smollm2

            paths["smollm2"], scales["smollm2"] = load_smollm2(root), 1e-3
        for name, path in paths.items():
            with VllmServer(VllmServerConfig(model=str(path), log=str(root / f"{name}.log"))) as server:
                found |= updates(name, path, server.base_url, scale=scales[name])
                if name == "tied":
                    found["engine cpu_ms_per_rollout"] = asyncio.run(cpu_per_rollout(server.base_url))
    return found


def updates(name: str, path: Path, base_url: str, *, scale: float) -> Figures:
    """Push UPDATES times over each route, comparing log-probs after every push."""
    from policies import completions_of, delta, load_policy, nudge

    policy = load_policy(path)
    found: Figures = {f"{name} before max_delta_logprob": delta(policy, completions_of(base_url, seed=3))}
    configs = GlooTransferConfig(base_url=base_url), DirTransferConfig(base_url=base_url)
    for config in configs:
        transfer = build_transfer(config)
        transfer.connect()
        deltas, seconds = [], []
        for version in range(1, UPDATES + 1):
            nudge(policy, seed=version, scale=scale)
            started = time.perf_counter()
            transfer.push(policy.named_parameters(), version)
            seconds.append(time.perf_counter() - started)
            deltas.append(delta(policy, completions_of(base_url, seed=3)))
        transfer.close()
        found[f"{name} {config.kind} max_delta_logprob"] = max(deltas)
        found[f"{name} {config.kind} push_s"] = statistics.median(seconds)
    return found


async def cpu_per_rollout(base_url: str, *, groups: int = 16, n: int = 8) -> float:
    """Client-side CPU milliseconds for one completion of 32 tokens, `groups` requests at once."""
    engine = VllmEngine(VllmEngineConfig(base_url=base_url))
    await engine.start()
    prompts = [[{"role": "user", "content": f"question {g}"}] for g in range(groups)]
    started = time.process_time()
    await asyncio.gather(
        *(engine.sample(p, n=n, seed=g, params=SamplingParams(max_tokens=32)) for g, p in enumerate(prompts))
    )
    spent = time.process_time() - started
    await engine.close()
    return 1e3 * spent / (groups * n)


if __name__ == "__main__":
    logging.getLogger("transformers").setLevel(logging.ERROR)
    for figure, value in (answer := figures(quick="--quick" in sys.argv)).items():
        print(f"{figure:42s} {value if isinstance(value, str) else format(value, '.2e')}")
    print(json.dumps(answer))
