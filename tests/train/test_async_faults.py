"""What kills parts of an asynchronous run is noticed in bounded time and named, and the run goes on or can be resumed (A8)."""

from __future__ import annotations

import io
import json
import logging
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from rich.console import Console

from snoozing_env.cli import main
from snoozing_env.errors import LoopError, StateError
from snoozing_env.pacing.ledger import FILE_NAME as LEDGER
from snoozing_env.pacing.ledger import audit, read_ledger
from snoozing_env.train.checkpoints import MARK, STATE_DIR, last_whole_checkpoint
from snoozing_env.train.recipe import Recipe
from snoozing_env.train.run import RunOptions, end_of, train
from tests.train.async_kills import Casualty, Killer, account, end_thread, engines, steps_of
from tests.train.lab_engine import program
from tests.train.small import small_recipe

BOUND = 2
PATIENCE_S = 240.0


def recipe(folder: Path, *, steps: int = 8, **train: Any) -> Recipe:
    return small_recipe(
        folder / "run",
        engine={"kind": "local", "own_weights": True},
        pacing={"max_staleness": BOUND, "weight_updates": "in-flight"},
        train={"steps": steps, "save_every": 2, **train},
    )


def run(made: Recipe, *, resume: bool = False) -> None:
    train(made, RunOptions(resume=resume), console=Console(file=io.StringIO()))


def check_books(made: Recipe) -> None:
    assert audit(read_ledger(made.directory / LEDGER), bound=BOUND) == []
    assert account(made).lost == set()
    assert [s.step for s in steps_of(made)] == list(range(1, made.train.steps + 1))


class Accident(threading.Thread):
    """Does something to the run that the main thread drives, once it has done some steps."""

    def __init__(self, made: Recipe, after: int, act: Callable[[Accident], None]) -> None:
        super().__init__(daemon=True)
        self.made, self._after, self._act = made, after, act
        self.problem = ""

    def run(self) -> None:
        try:
            self.wait(lambda: len(steps_of(self.made)) >= self._after, f"{self._after} steps")
            self._act(self)
        except AssertionError as error:
            self.problem = str(error)
            os.kill(os.getpid(), signal.SIGTERM)

    def wait(self, true: Callable[[], bool], what: str) -> None:
        limit = time.monotonic() + PATIENCE_S
        while not true():
            assert time.monotonic() < limit, f"waited {PATIENCE_S:g} s for {what}"
            time.sleep(0.02)


@contextmanager
def accident(made: Recipe, act: Callable[[Accident], None], *, after: int = 3) -> Iterator[None]:
    thread = Accident(made, after, act)
    thread.start()
    yield
    thread.join(PATIENCE_S)
    assert not thread.problem, thread.problem


def terminate(_: object = None) -> None:
    os.kill(os.getpid(), signal.SIGTERM)


@pytest.mark.parametrize("trainer", ["grpo", "async_grpo"])
def test_a_loop_that_dies_ends_the_run_with_its_cause_and_a_resume_goes_on(tmp_path: Path, trainer: str):
    made = recipe(tmp_path, trainer=trainer)
    with (
        accident(made, lambda _: end_thread("rollouts")),
        pytest.raises(LoopError, match=r"thread 'rollouts' ended: SystemExit.*; resume from the last"),
    ):
        run(made)
    run(made, resume=True)
    check_books(made)


def test_sigterm_ends_the_command_with_a_checkpoint_a_message_and_the_code_of_a_stopped_program(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    made, file = recipe(tmp_path, steps=1000), tmp_path / "recipe.json"
    file.write_text(made.model_dump_json(exclude_none=True))
    words = ["train", "@", str(file)]
    with accident(made, terminate), pytest.raises(SystemExit, match="143"):
        main(words)
    assert "pass --resume to go on" in capsys.readouterr().out
    found = last_whole_checkpoint(made.directory)
    assert found is not None
    assert end_of(made.directory) == f"stopped at step {found[1]}; pass --resume to go on"
    state = json.loads((found[0] / STATE_DIR / MARK).read_bytes())
    # What was in flight is in the checkpoint; nothing is where generation was as far ahead as it may be.
    assert all(set(f) == {"id", "key", "version", "attempt"} for f in state["in_flight"])

    steps = found[1] + 3
    main([*words, "--resume", "--train.steps", str(steps)])
    resumed = [e for e in read_ledger(made.directory / LEDGER) if e["event"] == "resume"]
    finished = {e["id"] for e in read_ledger(made.directory / LEDGER) if e["event"] == "finish"}
    lost = [f for f in state["in_flight"] if f["id"] not in finished]
    assert [e["again"] for e in resumed] == [len(lost)]
    check_books(made.model_copy(update={"train": made.train.model_copy(update={"steps": steps})}))


def test_a_run_that_dies_before_its_first_checkpoint_goes_on_from_its_journal(tmp_path: Path):
    made = recipe(tmp_path, steps=1000, save_every=50)
    killer = Killer(made, seed=2)
    toll = killer.run([Casualty("trainer", "any")], more_steps=2)
    assert toll.problems == []
    resumed = [e for e in read_ledger(made.directory / LEDGER) if e["event"] == "resume"]
    assert resumed[0]["step"] == 0
    assert resumed[0]["ids"], "what had finished waits again"
    check_books(killer.recipe)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
@pytest.mark.parametrize("left_kb", [0, 200], ids=["journal", "checkpoint"])
def test_a_full_disk_is_named_and_costs_no_checkpoint_that_was_whole(tmp_path: Path, left_kb: int):
    with small_disk(tmp_path / "disk", mb=64) as disk:
        made = recipe(disk, steps=1000, save_every=1)
        filler = disk / "filler"

        def fill(_: Accident) -> None:
            free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
            with filler.open("wb", buffering=0) as file, suppress(OSError):  # the run writes too
                file.write(b"\0" * max(free - left_kb * 1024, 0))

        with (
            accident(made, fill),
            pytest.raises(StateError, match=r"No space left on device|where [\d,]+ bytes are free"),
        ):
            run(made)
        whole = last_whole_checkpoint(made.directory)
        assert whole is not None
        assert whole[1] >= 2
        filler.unlink()
        longer = made.model_copy(update={"train": made.train.model_copy(update={"steps": whole[1] + 3})})
        run(longer, resume=True)
        check_books(longer)


@contextmanager
def small_disk(at: Path, *, mb: int) -> Iterator[Path]:
    at.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={mb}m", "tmpfs", str(at)], check=False)
    if mounted.returncode:
        pytest.skip("this machine lets nobody mount a small disk")
    try:
        yield at
    finally:
        subprocess.run(["umount", "--lazy", str(at)], check=True)


def test_the_only_engine_may_die_and_come_back_and_one_that_stays_away_does_not_keep_the_run_from_stopping(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    executable = Path(program(tmp_path))
    made = small_recipe(
        tmp_path / "run",
        engine={"kind": "vllm", "model": "policy"},
        server={"executable": str(executable), "log": str(tmp_path / "server.log")},
        weights={"kind": "dir"},
        pacing={"max_staleness": BOUND, "weight_updates": "in-flight"},
        evaluation={"every": 2},
        train={"steps": 1000, "save_every": 50},
    )

    def kill() -> None:
        (engine,) = engines(os.getpid())
        engine.kill()
        engine.wait(20)

    def act(thread: Accident) -> None:
        kill()
        thread.wait(lambda: "serves again" in caplog.text, "the engine to come back")
        steps = len(steps_of(made))
        thread.wait(lambda: len(steps_of(made)) >= steps + 3, "steps after that")
        executable.write_text("#!/bin/sh\nexec sleep 1000\n")
        kill()
        thread.wait(lambda: caplog.text.count("out of service") >= 2, "the loss to be noticed")
        terminate()

    with caplog.at_level(logging.WARNING), accident(made, act):
        run(made)
    found = last_whole_checkpoint(made.directory)
    assert found is not None
    assert end_of(made.directory) == f"stopped at step {found[1]}; pass --resume to go on"
    assert not [p for p in psutil.Process().children(recursive=True) if "sleep" in p.name()]
    program(tmp_path)
    longer = made.model_copy(update={"train": made.train.model_copy(update={"steps": found[1] + 2})})
    run(longer, resume=True)
    check_books(longer)
