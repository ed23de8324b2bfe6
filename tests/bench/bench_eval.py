"""`snooze eval` of SmolLM2-135M through vLLM over every installed environment, killed once and resumed (must-show 6).

    .venv-vllm/bin/python -m tests.bench.bench_eval [--quick]

Quick: a stub endpoint that answers at random stands in for the model, so that its scores mean nothing; killing,
resuming and `vf-replay` are the same.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console

from snoozing_env.report.evaluation import EvalRun, load_evaluation
from snoozing_env.report.evaluation_console import cost_table, scores_table, two_sided_table

ROOT = Path(__file__).parents[2]
ENVIRONMENTS: dict[str, dict[str, Any]] = {
    "snooze-math": {"style": "few_shot"},
    "snooze-groundedqa": {"style": "few_shot"},
    "snooze-refusal": {},
}
"""With the prompt style that a model of 135 M parameters can follow."""
ROLLOUTS, KILL_AT = 4, 0.35
"""Rollouts per task; share of all rollouts on disk when the first process is killed."""
PATIENCE_S = 3600.0


def figures(quick: bool) -> dict[str, Any]:
    """Scores with intervals per environment, what the kill cost, and what vf-replay read."""
    if not quick and importlib.util.find_spec("vllm") is None:
        return {"skipped": "vLLM is not installed here; run `make setup-vllm` and use .venv-vllm/bin/python"}
    installed = [e for e in ENVIRONMENTS if importlib.util.find_spec(e.replace("-", "_")) is not None]
    with tempfile.TemporaryDirectory(prefix="bench-eval-") as folder:
        root = Path(folder)
        with _stub() if quick else _smollm2(root) as (url, label):
            tasks = 5 if quick else 64
            config = write_config(root, url, installed, tasks, concurrency=4 if quick else 64)
            started = time.monotonic()
            found = killed_and_resumed(config, root / "run", total=len(installed) * tasks * ROLLOUTS)
            found["wall_s"] = round(time.monotonic() - started, 1)
        run = load_evaluation(root / "run")
        show(run)
        replays = {one.part.name: replayed(one.part.directory, root / "replay") for one in run.rollouts}
        return {"endpoint": label, **scores(run), **found, "vf-replay": replays}


def write_config(root: Path, url: str, environments: list[str], tasks: int, *, concurrency: int) -> Path:
    """The evaluation as one TOML."""
    lines = [
        f'output = "{root / "run"}"',
        f"tasks = {tasks}",
        f"rollouts = {ROLLOUTS}",
        f"concurrency = {concurrency}",
        "deadline_s = 600",
        "[endpoint]",
        f'url = "{url}"',
        "[sampling]",
        "temperature = 0.7",
        "max_tokens = 48",
    ]
    for name in environments:
        lines += ["[[environment]]", f'id = "{name}"']
        lines += [f"taskset.{key} = {json.dumps(value)}" for key, value in ENVIRONMENTS[name].items()]
    path = root / "eval.toml"
    path.write_text("\n".join(lines) + "\n")
    return path


def killed_and_resumed(config: Path, run: Path, *, total: int) -> dict[str, Any]:
    """Start, SIGKILL at KILL_AT, resume; nothing finished may be lost or done twice."""
    command = [sys.executable, "-m", "snoozing_env", "eval", "@", str(config)]
    with (config.parent / "first.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log)
        deadline = time.monotonic() + PATIENCE_S
        while len(ids(run)) < KILL_AT * total and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    before = ids(run)
    done = subprocess.run([*command, "--resume"], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the resumed run ended with code {done.returncode}: {done.stderr[-800:]}")
    after = ids(run)
    return {
        "rollouts": total,
        "on_disk_when_killed": len(before),
        "lost_by_the_kill": len(set(before) - set(after)),
        "done_twice": len(after) - len(set(after)),
        "missing_after_resume": total - len(set(after)),
    }


def ids(run: Path) -> list[str]:
    """Ids of the whole lines on disk."""
    found: list[str] = []
    for path in run.glob("*/traces.jsonl"):
        for line in path.read_bytes().splitlines(keepends=True):
            if line.endswith(b"\n"):
                found.append(json.loads(line)["id"])
    return found


def replayed(directory: Path, out: Path) -> dict[str, Any]:
    """verifiers' own tool over our file: traces it re-scored, and whether it gave the same mean reward."""
    tool = Path(sys.executable).with_name("vf-replay")
    command = [str(tool), str(directory), "--no-rich", "-o", str(out / directory.name)]
    done = subprocess.run(command, cwd=out.parent, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"failed": (done.stderr or done.stdout)[-300:]}
    theirs, ours = (load_evaluation(d).scored[0].score for d in (out / directory.name, directory))
    means = [s.mean.value if s.mean else None for s in (ours, theirs)]
    return {
        "traces": theirs.n_rollouts + theirs.n_invalid,
        "mean": means[1],
        "same_mean": means[0] == means[1],
    }


def scores(run: EvalRun) -> dict[str, Any]:
    """Environment → figures, each with its interval."""
    found: dict[str, Any] = {}
    for one in run.scored:
        estimates = {"avg": one.score.mean, **{f"pass@{k}": e for k, e in one.score.pass_at.items()}}
        estimates |= one.two_sided
        found[one.name] = {
            name: [round(v, 4) for v in e[:3]] for name, e in estimates.items() if e is not None
        }
        found[one.name] |= {
            "tasks": one.score.n_tasks,
            "valid": one.score.n_rollouts,
            "invalid": one.score.n_invalid,
            "generated_tokens": one.cost.output_tokens,
        }
    return found


def show(run: EvalRun) -> None:
    """The tables that `snooze eval` prints."""
    console = Console(file=sys.stderr, width=100)
    for table in (scores_table(run), two_sided_table(run), cost_table(run)):
        if table is not None:
            console.print(table)


@contextlib.contextmanager
def _smollm2(root: Path) -> Iterator[tuple[str, str]]:
    from snoozing_env.rollout.server import VllmServer, VllmServerConfig
    from snoozing_env.train.smollm2 import default_cache_dir, load_smollm2

    path = load_smollm2(default_cache_dir())
    config = VllmServerConfig(model=str(path), log=str(root / "vllm.log"), wait_s=600.0)
    with VllmServer(config) as server:
        yield server.base_url, "SmolLM2-135M-Instruct, vLLM on CPU"


@contextlib.contextmanager
def _stub() -> Iterator[tuple[str, str]]:
    """An endpoint in a process of its own, so that killing the evaluation leaves it up."""
    with tempfile.TemporaryDirectory() as folder:
        address = Path(folder) / "url"
        command = [sys.executable, "-m", "tests.bench.bench_eval", "--serve-stub", str(address)]
        process = subprocess.Popen(command, cwd=ROOT)
        try:
            while not address.exists() and process.poll() is None:
                time.sleep(0.05)
            yield address.read_text(), "a stub that answers at random: no model was measured"
        finally:
            process.kill()
            process.wait()


async def _serve_stub(address: Path) -> None:
    sys.path.insert(0, str(ROOT / "tests" / "rollout"))
    from chat_server import ChatServer, serve

    async def answer(_server: ChatServer, body: dict[str, Any], _before: int) -> str:
        await asyncio.sleep(0.2)
        return str(body["seed"] % 30)

    async with serve(ChatServer(answer)) as server:
        partial = address.with_suffix(".partial")
        partial.write_text(server.url)
        partial.rename(address)
        await asyncio.Event().wait()


if __name__ == "__main__":
    if "--serve-stub" in sys.argv:
        asyncio.run(_serve_stub(Path(sys.argv[-1])))
    else:
        print(json.dumps(figures("--quick" in sys.argv)))
