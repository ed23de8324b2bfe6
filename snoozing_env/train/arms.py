"""Arms of one recipe, side by side: one process each, so that every arm has a core and a clean interpreter."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from snoozing_env.errors import SnoozingError, StateError
from snoozing_env.report.compare import Run, load_runs
from snoozing_env.report.console import run_tables
from snoozing_env.report.html import write_report
from snoozing_env.report.runlog import FILE_NAME
from snoozing_env.train.recipe import Recipe
from snoozing_env.train.run import REPORT, policy_path

POLL_S = 0.5
PLAIN_EVERY_S = 15.0
CONSOLE_FILE = "console.log"


@dataclass(slots=True)
class _Arm:
    name: str
    recipe: Recipe
    process: subprocess.Popen[bytes]
    bar: TaskID
    printed_at: float = 0.0

    @property
    def log(self) -> Path:
        return self.recipe.directory / FILE_NAME


def train_arms(recipe: Recipe, arguments: Sequence[str], *, console: Console | None = None) -> Path:
    """Train every arm of a recipe with the command line it came from; returns the common report.

    Raises:
        SnoozingError: an arm failed; carries the end of its output. The others are stopped.
    """
    console = console or Console()
    policy_path(recipe, console)  # once, before every arm would build it
    width = min(len(recipe.arms), os.cpu_count() or 1)
    waiting = list(recipe.arms)
    running: list[_Arm] = []
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[facts]}"),
        TimeRemainingColumn(),
    )
    with (
        ExitStack() as stack,
        Progress(*columns, console=console, disable=not console.is_terminal) as progress,
    ):
        stack.callback(_stop_all, running)
        stack.enter_context(_exit_on_signal())
        while waiting or running:
            while waiting and len(running) < width:
                running.append(_launch(recipe, waiting.pop(0), arguments, progress))
            time.sleep(POLL_S)
            for arm in running:
                _show(arm, progress, console)
            _check(running)
            running[:] = [arm for arm in running if arm.process.poll() is None]
    logs = [recipe.directory / name for name in recipe.arms]
    console.print(*run_tables(logs), sep="\n")
    return write_report(logs, recipe.directory / REPORT)


@contextmanager
def _exit_on_signal() -> Iterator[None]:
    """SIGTERM ends this process by an exception, so that its arms are told to stop too."""

    def leave(*_: object) -> None:
        raise SystemExit(128 + signal.SIGTERM)

    previous = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


def _launch(recipe: Recipe, name: str, arguments: Sequence[str], progress: Progress) -> _Arm:
    arm_recipe = recipe.for_arm(name)
    arm_recipe.directory.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "snoozing_env", "train", *arguments, "--arm", name]
    with (recipe.directory / f"{name}.{CONSOLE_FILE}").open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
    bar = progress.add_task(name, total=arm_recipe.train.steps, facts="starting")
    return _Arm(name, arm_recipe, process, bar)


def _show(arm: _Arm, progress: Progress, console: Console) -> None:
    run = _peek(arm)
    if run is None or not run.steps:
        return
    generated, trained = run.total("generated_groups") or 0, run.total("trained_groups") or 0
    asleep = run.steps[-1].asleep_share or 0.0
    facts = f"{generated} groups generated, {trained} trained, {asleep:.0%} asleep"
    if run.evals:
        facts += f", held-out {run.evals[-1].accuracy:.3f}"
    progress.update(arm.bar, completed=run.steps[-1].step, facts=facts)
    if not console.is_terminal and time.monotonic() - arm.printed_at >= PLAIN_EVERY_S:
        arm.printed_at = time.monotonic()
        console.print(
            f"{arm.name}: step {run.steps[-1].step}/{arm.recipe.train.steps} · {facts}", soft_wrap=True
        )


def _peek(arm: _Arm) -> Run | None:
    """The arm's log so far; None before its first line is whole."""
    if not arm.log.exists():
        return None
    try:
        return load_runs([arm.log])[0]
    except StateError:
        return None


def _check(running: Sequence[_Arm]) -> None:
    for arm in running:
        code = arm.process.poll()
        if code:
            output = arm.recipe.directory.parent / f"{arm.name}.{CONSOLE_FILE}"
            tail = "\n".join(output.read_text(errors="replace").splitlines()[-15:])
            raise SnoozingError(f"arm {arm.name!r} ended with code {code}; the end of {output}:\n{tail}")


def _stop_all(running: Sequence[_Arm]) -> None:
    for arm in running:
        if arm.process.poll() is None:
            arm.process.terminate()
    for arm in running:
        arm.process.wait(timeout=60)
