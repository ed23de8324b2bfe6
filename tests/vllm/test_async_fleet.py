"""Bounded staleness over two real servers, one of which is killed on the way (issue: asynchronous rollouts, must-show 5)."""

from __future__ import annotations

import io
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from rich.console import Console

from snoozing_env.pacing.ledger import FILE_NAME as LEDGER
from snoozing_env.pacing.ledger import audit, read_ledger
from snoozing_env.report.runlog import FILE_NAME, StepRecord, read
from snoozing_env.train.recipe import Recipe
from snoozing_env.train.run import RunOptions, train
from tests.train.small import small_recipe

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.usefixtures("vllm_installed"),
    pytest.mark.filterwarnings("ignore"),
]
BOUND = 4
PATIENCE_S = 500.0


def fleet_recipe(output: Path) -> Recipe:
    """Trains until it is told to stop."""
    return small_recipe(
        output,
        engine={"kind": "vllm", "model": "policy"},
        server={"max_model_len": 128, "replicas": 2, "log": str(output.parent / "server.log")},
        weights={"kind": "dir"},
        pacing={"max_staleness": BOUND, "weight_updates": "in-flight"},
        evaluation={"every": 100_000},
        train={"steps": 100_000, "save_every": 50, "learning_rate": 1e-5},
    )


def steps_of(recipe: Recipe) -> list[StepRecord]:
    path = recipe.directory / FILE_NAME
    return [r for r in read(path) if isinstance(r, StepRecord)] if path.exists() else []


def servers() -> list[psutil.Process]:
    """This process's vLLM servers, oldest first."""
    children = psutil.Process().children()
    found = [p for p in children if any("vllm" in word for word in p.cmdline()) and "serve" in p.cmdline()]
    return sorted(found, key=lambda p: p.create_time())


class Accident(threading.Thread):
    """Kills one server after a few steps, waits until it serves again and a few steps more, then ends the run."""

    def __init__(self, recipe: Recipe, console: io.StringIO, caplog: pytest.LogCaptureFixture) -> None:
        super().__init__(daemon=True)
        self.recipe, self.console, self.caplog = recipe, console, caplog
        self.killed_at = self.back_at = 0
        self.problem = ""

    def run(self) -> None:
        try:
            self.wait("a few steps", lambda: len(steps_of(self.recipe)) >= 5)
            servers()[0].kill()
            self.killed_at = len(steps_of(self.recipe))
            self.wait("the server to come back", lambda: "serves again" in self.caplog.text)
            self.back_at = len(steps_of(self.recipe))
            self.wait("steps after that", lambda: len(steps_of(self.recipe)) >= self.back_at + 8)
        except AssertionError as error:
            self.problem = str(error)
        os.kill(os.getpid(), signal.SIGTERM)

    def wait(self, what: str, true: Callable[[], bool]) -> None:
        limit = time.monotonic() + PATIENCE_S
        while not true():
            assert time.monotonic() < limit, f"waited {PATIENCE_S:g} s for {what}"
            time.sleep(0.2)


@pytest.mark.timeout(900)
def test_training_goes_on_when_a_server_dies_and_it_serves_again_with_the_present_weights(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    recipe, output = fleet_recipe(tmp_path / "run"), io.StringIO()
    accident = Accident(recipe, output, caplog)
    accident.start()
    train(recipe, RunOptions(), console=Console(file=output))
    accident.join(30)
    assert not accident.problem, f"{accident.problem}\n{output.getvalue()[-2000:]}"
    steps = steps_of(recipe)
    print(f"killed at step {accident.killed_at}, back at {accident.back_at}, {len(steps)} steps")
    assert [s.step for s in steps] == list(range(1, len(steps) + 1))
    assert accident.back_at > accident.killed_at, "it trained while one server was down"
    events = read_ledger(recipe.directory / LEDGER)
    assert audit(events, bound=BOUND) == [], "no group lost, trained twice or trained past the bound"
    assert max(s.lag_mean or 0.0 for s in steps) > 0
    # The log-probs the servers gave are those of the policy that the trainer had then: right after an update, the ratio
    # of groups that were sampled with the present weights is one.
    fresh = [s for s in steps if s.lag_mean == 0 and s.logprob_gap is not None]
    assert all(s.logprob_gap < 1e-3 for s in fresh if s.logprob_gap is not None)
