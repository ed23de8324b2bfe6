"""A run over two real servers of which one is killed on the way, and what its files say afterwards."""

from __future__ import annotations

import io
import json
import logging
import os
import re
import signal
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import torch
from rich.console import Console
from transformers import AutoModelForCausalLM

from snoozing_env.buffers.journal import read_journal
from snoozing_env.pacing.ledger import FILE_NAME as LEDGER
from snoozing_env.pacing.ledger import audit, read_ledger
from snoozing_env.report.runlog import FILE_NAME, StepRecord, read
from snoozing_env.rollout.catalogue import load_catalogue
from snoozing_env.train.async_supply import JOURNALS
from snoozing_env.train.recipe import Recipe
from snoozing_env.train.run import RunOptions, policy_path, train
from snoozing_env.types import Group, Trajectory
from tests.train.small import small_recipe

BOUND = 4
PATIENCE_S = 500.0
SAME = 1e-5
"""Nats by which a server's log-prob may differ from torch's for the same weights (2.4e-6 seen)."""


def fleet_recipe(output: Path) -> Recipe:
    """Trains until it is told to stop; every version's weights stay on disk. The policy is unsure of its answers, so
    that its groups are informative and its log-probs move with every update."""
    warmup = {"steps": 60, "batch": 64}
    return small_recipe(
        output,
        policy={"lab": {"hidden_size": 64, "layers": 2, "heads": 2, "kv_heads": 2, "warmup": warmup}},
        engine={"kind": "vllm", "model": "policy"},
        server={"max_model_len": 128, "replicas": 2, "log": str(output.parent / "server.log")},
        weights={"kind": "dir"},
        pacing={"max_staleness": BOUND, "weight_updates": "in-flight"},
        evaluation={"every": 100_000},
        train={"steps": 100_000, "save_every": 1, "keep_checkpoints": 100_000, "learning_rate": 5e-4},
    )


def steps_of(recipe: Recipe) -> list[StepRecord]:
    path = recipe.directory / FILE_NAME
    return [r for r in read(path) if isinstance(r, StepRecord)] if path.exists() else []


def servers() -> list[psutil.Process]:
    """This process's vLLM servers, oldest first."""
    children = psutil.Process().children()
    found = [p for p in children if any("vllm" in word for word in p.cmdline()) and "serve" in p.cmdline()]
    return sorted(found, key=lambda p: p.create_time())


class Notices(logging.Handler):
    """What the fleet said."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())

    def first(self, words: str) -> str:
        return next((line for line in self.lines if words in line), "")


@dataclass
class Seen:
    """What the accident saw."""

    killed_at: int = 0
    """Steps done when a server was killed."""
    back_at: int = 0
    """Steps done when it served again."""
    seconds_noticed: float = 0.0
    seconds_back: float = 0.0
    reports_versions: bool = False
    """Whether this vLLM gives each choice's weight versions itself."""
    problem: str = ""
    said: list[str] = field(default_factory=list)


class Accident(threading.Thread):
    """Kills one server after a few steps, waits until it serves again and a few steps more, then ends the run."""

    def __init__(self, recipe: Recipe, notices: Notices) -> None:
        super().__init__(daemon=True)
        self.recipe, self.notices, self.seen = recipe, notices, Seen()

    def run(self) -> None:
        seen = self.seen
        try:
            self._wait("a few steps", lambda: len(steps_of(self.recipe)) >= 8)
            victim = servers()[0]
            seen.reports_versions = reports_versions(victim)
            victim.kill()
            killed, seen.killed_at = time.monotonic(), len(steps_of(self.recipe))
            self._wait("the loss to be noticed", lambda: bool(self.notices.first("out of service")))
            seen.seconds_noticed = time.monotonic() - killed
            self._wait("the server to come back", lambda: bool(self.notices.first("serves again")))
            seen.seconds_back, seen.back_at = time.monotonic() - killed, len(steps_of(self.recipe))
            self._wait("steps after that", lambda: len(steps_of(self.recipe)) >= seen.back_at + 8)
        except AssertionError as error:
            seen.problem = str(error)
        seen.said = self.notices.lines
        os.kill(os.getpid(), signal.SIGTERM)

    def _wait(self, what: str, true: Callable[[], bool]) -> None:
        limit = time.monotonic() + PATIENCE_S
        while not true():
            assert time.monotonic() < limit, f"waited {PATIENCE_S:g} s for {what}"
            time.sleep(0.1)


def reports_versions(server: psutil.Process) -> bool:
    port = server.cmdline()[server.cmdline().index("--port") + 1]
    body = {"model": "policy", "messages": [{"role": "user", "content": "1"}], "max_tokens": 1}
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/v1/chat/completions",
        json.dumps(body | {"return_token_ids": True}).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return "weight_versions" in json.loads(answer.read())["choices"][0]


def run_with_accident(recipe: Recipe) -> Seen:
    """Train until a server was lost and is back; call it from the main thread, which gets a SIGTERM."""
    notices = Notices()
    logger = logging.getLogger("snoozing_env")
    logger.addHandler(notices)
    try:
        accident = Accident(recipe, notices)
        accident.start()
        output = io.StringIO()
        train(recipe, RunOptions(), console=Console(file=output))
        accident.join(30)
    finally:
        logger.removeHandler(notices)
    if accident.seen.problem:
        accident.seen.problem += f"\n{output.getvalue()[-2000:]}"
    return accident.seen


# -- afterwards ---------------------------------------------------------------------------------------------


@dataclass
class Versions:
    """First tokens held against the weights of every version, which are all on disk."""

    tokens: int = 0
    right: int = 0
    """Of the version on the label, and of no neighbour."""
    newer: int = 0
    """Sampled within the span of the label, by weights newer than its first version."""
    undecided: int = 0
    """Neighbouring versions give the same log-prob."""
    wrong: list[str] = field(default_factory=list)
    """Older than the label says, or of no version in its span."""


def check_first_tokens(recipe: Recipe, *, most: int = 400) -> Versions:
    """Whether each rollout's first token has the log-prob of the version that its label names."""
    found, weights = Versions(), Weights(recipe)
    for trajectory in _trajectories(recipe, most):
        _check(found, weights, trajectory)
    return found


class Weights:
    """The policy at every version of a run."""

    def __init__(self, recipe: Recipe) -> None:
        self._recipe = recipe
        self._models: dict[int, Any] = {}
        steps = [int(p.name.split("-")[1]) for p in recipe.directory.glob("checkpoint-*")]
        self.newest = max(steps)

    def first_logprob(self, version: int, trajectory: Trajectory) -> float:
        """Of a rollout's first token under the weights of a version."""
        if version not in self._models:
            path = self._recipe.directory / f"checkpoint-{version}"
            where = path if version else policy_path(self._recipe, Console(file=io.StringIO()))
            model = AutoModelForCausalLM.from_pretrained(str(where), dtype=torch.float32)
            self._models[version] = model.eval()
        with torch.no_grad():
            logits = self._models[version](torch.tensor([trajectory.prompt_ids])).logits[0, -1]
        return float(logits.log_softmax(-1)[trajectory.completion_ids[0]])


def _check(found: Versions, weights: Weights, trajectory: Trajectory) -> None:
    first, last, got = trajectory.version, trajectory.last_version, trajectory.logprobs[0]
    around = range(max(first - 1, 0), min(last + 1, weights.newest) + 1)
    off = {v: abs(weights.first_logprob(v, trajectory) - got) for v in around}
    fits = [v for v in around if off[v] < SAME]
    found.tokens += 1
    if fits == [first]:
        found.right += 1
    elif first in fits:
        found.undecided += 1
    elif any(first <= v <= last for v in fits):
        found.newer += 1
    else:
        found.wrong.append(
            f"label {first} to {last}, nearest {min(off, key=off.__getitem__)}, {min(off.values()):.1e} off"
        )


def _trajectories(recipe: Recipe, most: int) -> Iterator[Trajectory]:
    """Of the accepted groups in the journals, evenly over the run."""
    groups = list(_accepted(recipe))
    every = max(len(groups) * recipe.rollout.group_size // most, 1)
    for group in groups[::every]:
        yield from group.trajectories


def _accepted(recipe: Recipe) -> Iterator[Group]:
    index_of = {info.key: i for i, info in enumerate(load_catalogue(recipe.environment).infos)}
    for path in sorted((recipe.directory / JOURNALS).glob("*.frames")):
        for entry in read_journal(path, index_of):
            if entry.group is not None:
                yield entry.group


def problems_of(recipe: Recipe) -> list[str]:
    """Of the ledger's audit."""
    return audit(read_ledger(recipe.directory / LEDGER), bound=BOUND)


def tokens_per_second(steps: Sequence[StepRecord], first: int, last: int) -> float:
    """Generated per wall second from step `first` to `last`."""
    part = [s for s in steps if first < s.step <= last]
    if len(part) < 2:
        return float("nan")
    return sum(s.generated_tokens or 0 for s in part[1:]) / (part[-1].seconds - part[0].seconds)


def asked_again(seen: Seen) -> int:
    """Requests of the dead server that the other one answered."""
    match = re.search(r"; (\d+) requests were asked again", " ".join(seen.said))
    return int(match[1]) if match else 0
