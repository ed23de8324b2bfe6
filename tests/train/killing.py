"""Kill a training process with SIGKILL again and again, and let it resume until it is done."""

from __future__ import annotations

import json
import multiprocessing
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from typing import Any

import numpy as np

from snoozing_env.report.runlog import FILE_NAME, StepRecord, read
from snoozing_env.schedulers.state import load_snapshot
from snoozing_env.train.checkpoints import STATE_DIR, last_whole_checkpoint
from snoozing_env.train.recipe import Recipe

PRELOAD = ["snoozing_env.train.assemble", "snoozing_env.train.session", "snoozing_env.train.run"]
PATIENCE_S = 240.0


def forkserver() -> Any:
    """A process that has imported everything once; children start from it in milliseconds."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOAD)
    return context


def train_quietly(recipe: Recipe, resume: bool) -> None:
    """The child's work."""
    import io

    from rich.console import Console

    from snoozing_env.train.run import RunOptions, train

    train(recipe, RunOptions(resume=resume), console=Console(file=io.StringIO()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Trail:
    """What a finished run leaves behind that a resumed one must leave too."""

    tasks: list[tuple[str, ...]]
    """Trained task keys per step."""
    generated: list[int]
    """Generated groups per step: the draws that were wasted count too."""
    state: dict[str, Any]
    """Scheduler state of the last checkpoint."""
    weights: bytes


def trail_of(recipe: Recipe) -> Trail:
    steps = [r for r in read(recipe.directory / FILE_NAME) if isinstance(r, StepRecord)]
    found = last_whole_checkpoint(recipe.directory)
    assert found is not None
    return Trail(
        tasks=[s.tasks or () for s in steps],
        generated=[s.generated_groups or 0 for s in steps],
        state=load_snapshot(found[0] / STATE_DIR).to_json(),
        weights=(found[0] / "model.safetensors").read_bytes(),
    )


def run_to_the_end(recipe: Recipe) -> None:
    child = forkserver().Process(target=train_quietly, args=(recipe, False))
    child.start()
    child.join(PATIENCE_S)
    assert child.exitcode == 0, f"the run ended with code {child.exitcode}"


def run_with_kills(recipe: Recipe, kills: int, seed: int) -> Iterator[int]:
    """Kill the run `kills` times at random points, resuming it each time; yields the step each kill fell into."""
    rng = random.Random(seed)
    for n in range(kills + 1):
        child = forkserver().Process(target=train_quietly, args=(recipe, n > 0))
        start = _saved_step(recipe)
        child.start()
        if n == kills:
            child.join(PATIENCE_S)
            assert child.exitcode == 0, f"the resumed run ended with code {child.exitcode}"
            return
        _wait_for_step(recipe, child, start + rng.randint(1, 3))
        time.sleep(rng.uniform(0.0, 0.5))
        child.kill()
        child.join()
        yield _logged_step(recipe)


def _saved_step(recipe: Recipe) -> int:
    found = last_whole_checkpoint(recipe.directory)
    return found[1] if found else 0


def _logged_step(recipe: Recipe) -> int:
    path = recipe.directory / FILE_NAME
    lines = path.read_text().splitlines() if path.exists() else []
    steps = [
        json.loads(line)["step"]
        for line in lines
        if line.startswith('{"event": "step"') and line.endswith("}")
    ]
    return max(steps, default=0)


def _wait_for_step(recipe: Recipe, child: BaseProcess, step: int) -> None:
    started = time.monotonic()
    resumed = False
    while time.monotonic() - started < PATIENCE_S:
        logged = _logged_step(recipe)
        resumed = resumed or logged < step
        if resumed and logged >= min(step, recipe.train.steps - 1):
            return
        if child.exitcode is not None:
            return
        time.sleep(0.01)
    raise AssertionError(f"step {step} never came")


def differences(a: Trail, b: Trail) -> list[str]:
    """What two trails do not share, in words; empty when they are the same."""
    found = []
    if a.tasks != b.tasks:
        first = next(
            (i for i, (x, y) in enumerate(zip(a.tasks, b.tasks, strict=False)) if x != y),
            min(len(a.tasks), len(b.tasks)),
        )
        found.append(f"trained tasks differ from step {first + 1} ({len(a.tasks)} and {len(b.tasks)} steps)")
    if a.generated != b.generated:
        found.append(f"generated groups differ: {a.generated} and {b.generated}")
    for name in a.state["columns"]:
        if not np.array_equal(a.state["columns"][name], b.state["columns"][name]):
            found.append(f"scheduler column {name!r} differs")
    if a.state["meta"] != b.state["meta"]:
        found.append("scheduler cursors, counts or generator states differ")
    if a.weights != b.weights:
        found.append("weights differ")
    return found
