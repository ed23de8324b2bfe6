"""Kill an asynchronous run with SIGKILL at random moments, resume it, and hold its books against what is on disk.

Casualty ─┬─ "trainer"  SIGKILL to the process, which the rollout loop's thread dies with
          ├─ "loop"     an exception in the loop's thread alone; the process must end by itself, with the cause
          └─ "engine"   SIGKILL to one of its engine processes; the process must go on, and start it again
"""

from __future__ import annotations

import ctypes
import io
import json
import logging
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Literal

import psutil

from snoozing_env.buffers.journal import read_journal
from snoozing_env.buffers.store import parse_groups
from snoozing_env.errors import SnoozingError
from snoozing_env.pacing.ledger import FILE_NAME as LEDGER
from snoozing_env.pacing.ledger import audit, read_ledger
from snoozing_env.report.runlog import FILE_NAME, EvalRecord, StepRecord, read
from snoozing_env.rollout.catalogue import load_catalogue
from snoozing_env.train.async_supply import JOURNALS
from snoozing_env.train.checkpoints import MARK, STATE_DIR, last_whole_checkpoint
from snoozing_env.train.recipe import Recipe
from snoozing_env.train.supply import GROUPS_FILE
from tests.train.killing import forkserver

Victim = Literal["trainer", "loop", "engine"]
Moment = Literal["any", "start-up", "saving", "evaluating", "sync"]
LOG, ERROR = "child.log", "error.txt"
SPARE_S = 20.0
"""Seconds that a kill waits for its moment before it takes any."""
ALL_BACK = 0.7
"""Share of the engine kills that wait until every engine serves; the others may meet one that starts."""
SYNC_S = 0.02
"""Seconds that an update of the lab policy takes after its file was written, about."""
PATIENCE_S = 600.0


@dataclass(frozen=True, slots=True)
class Casualty:
    """One kill."""

    victim: Victim
    moment: Moment
    """When it is meant to happen."""


@dataclass(slots=True)
class Kill:
    """What a kill met."""

    victim: Victim
    met: Moment
    step: int
    seconds: float = 0.0
    """From the death of the loop to the end of its process."""


@dataclass(slots=True)
class Toll:
    """All kills of a run and what was found after each."""

    kills: list[Kill] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    """Of the ledger's audit, of files that cannot be read, of processes that ended as they should not."""
    starts: int = 0


# -- the child ----------------------------------------------------------------------------------------------


def train_until_killed(recipe: Recipe, resume: bool) -> None:
    """The child's work. SIGUSR1 ends the loop's thread, as a bug in one of its callbacks would."""
    from rich.console import Console

    from snoozing_env.train.run import RunOptions, train

    recipe.directory.parent.mkdir(parents=True, exist_ok=True)
    logging.basicConfig(filename=recipe.directory.parent / LOG, level=logging.WARNING)
    signal.signal(signal.SIGUSR1, lambda *_: end_thread("rollouts"))
    try:
        train(recipe, RunOptions(resume=resume), console=Console(file=io.StringIO()))
    except SnoozingError as error:
        (recipe.directory.parent / ERROR).write_text(f"{type(error).__name__}: {error}")
        raise SystemExit(3) from error


def end_thread(name: str) -> None:
    """Raise SystemExit in a thread of this process, wherever it is."""
    for thread in threading.enumerate():
        if thread.name == name and thread.ident is not None:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(thread.ident), ctypes.py_object(SystemExit)
            )


# -- the parent ---------------------------------------------------------------------------------------------


class Killer:
    """Runs a recipe to its end in children, killing as told on the way."""

    def __init__(self, recipe: Recipe, *, seed: int) -> None:
        self.recipe, self.toll = recipe, Toll()
        self._rng = random.Random(seed)
        self._child: BaseProcess | None = None
        self._steps_at_start = 0
        self._said_before = 0
        """Bytes of the children's log that earlier starts wrote: this start has engines of its own."""
        self.between: Callable[[], None] = lambda: None
        """Called before every start but the first."""

    def run(self, casualties: Sequence[Casualty], *, more_steps: int = 6) -> Toll:
        """`more_steps`: what the last start still does after SIGTERM ended the one before."""
        for casualty in casualties:
            child = self._alive()
            self._await(casualty)
            if child.exitcode is not None:
                self.toll.problems.append(f"the run ended with code {child.exitcode} before its kill")
                break
            self.toll.kills.append(self._kill(child, casualty))
            self.toll.problems += self.check()
        self._finish(more_steps)
        return self.toll

    def _alive(self) -> BaseProcess:
        if self._child is None or self._child.exitcode is not None:
            if self.toll.starts:
                self.between()
            self._steps_at_start = len(steps_of(self.recipe))
            self._said_before = len(said_by(self.recipe))
            self._child = forkserver().Process(
                target=train_until_killed, args=(self.recipe, self.toll.starts > 0)
            )
            self._child.start()
            self.toll.starts += 1
        return self._child

    def _await(self, casualty: Casualty) -> None:
        """The moment meant, or any after a while; then a random time more."""
        rng, started = self._rng, time.monotonic()
        if casualty.moment == "start-up":
            time.sleep(rng.uniform(0.0, 2.0))
            return
        if casualty.victim == "engine":
            self._until(lambda: len(engines(self._pid)) > 0 and self._trained() >= 1, PATIENCE_S)
            if rng.random() < ALL_BACK:
                self._until(self._all_serve, PATIENCE_S)
            goal = len(steps_of(self.recipe)) + rng.randint(0, 2)
        else:
            goal = self._steps_at_start + rng.randint(1, 4)
        self._until(lambda: len(steps_of(self.recipe)) >= goal, PATIENCE_S)
        if casualty.moment != "any":
            now = self._syncing if casualty.moment == "sync" else lambda: self.moment() == casualty.moment
            self._until(now, SPARE_S, every_s=0.001)
            time.sleep(rng.uniform(0.0, 0.005))
        else:
            time.sleep(rng.uniform(0.0, 0.5 + 0.2 * (time.monotonic() - started)))

    def _all_serve(self) -> bool:
        """Whether every engine that was noticed to be gone serves again."""
        said = said_by(self.recipe)[self._said_before :]
        return said.count("out of service") == said.count("serves again")

    def _trained(self) -> int:
        return len(steps_of(self.recipe)) - self._steps_at_start

    def _until(self, true: Callable[[], bool], limit_s: float, every_s: float = 0.02) -> None:
        limit = time.monotonic() + limit_s
        while not true() and time.monotonic() < limit:
            if self._child is None or self._child.exitcode is not None:
                return
            time.sleep(every_s)

    @property
    def _pid(self) -> int:
        assert self._child is not None
        return self._child.pid or 0

    def _kill(self, child: BaseProcess, casualty: Casualty) -> Kill:
        victim, step = casualty.victim, len(steps_of(self.recipe))
        found = engines(self._pid) if victim == "engine" else []
        met = self.moment()
        started = time.monotonic()
        if victim == "engine" and found:
            self._rng.choice(found).kill()
        elif victim == "loop":
            os.kill(self._pid, signal.SIGUSR1)
            child.join(PATIENCE_S)
            self._expect_loop_error(child)
        else:
            victim = "trainer"
            child.kill()
            child.join()
        return Kill(victim, met, step, time.monotonic() - started)

    def _expect_loop_error(self, child: BaseProcess) -> None:
        path = self.recipe.directory.parent / ERROR
        said = path.read_text() if path.exists() else ""
        # A loop that is not there yet, or no more, cannot be killed: then the process goes by itself, or on.
        if child.exitcode != 3 or not said.startswith("LoopError: "):
            self.toll.problems.append(
                f"a dead loop ended its process with code {child.exitcode} and said {said!r}"
            )
        path.unlink(missing_ok=True)

    def _finish(self, more_steps: int) -> None:
        """SIGTERM, and a last start that does a few steps more and ends by itself; 0 = at the recipe's own last step."""
        if not more_steps:
            self._end(self._alive(), "the last start")
            return
        child = self._alive()
        self._until(self._all_serve, PATIENCE_S)
        self._until(lambda: self._trained() >= 1, PATIENCE_S)
        if child.exitcode is None:
            os.kill(self._pid, signal.SIGTERM)
        self._end(child, "the start that was told to stop")
        train = self.recipe.train.model_copy(update={"steps": len(steps_of(self.recipe)) + more_steps})
        self.recipe = self.recipe.model_copy(update={"train": train})
        self._end(self._alive(), "the last start")

    def _end(self, child: BaseProcess, name: str) -> None:
        child.join(PATIENCE_S)
        if child.exitcode != 0:
            self.toll.problems.append(f"{name} ended with code {child.exitcode}")
            child.kill()
            child.join()
        self.toll.problems += self.check()

    def moment(self) -> Moment:
        """What the child does now, as far as the disk tells."""
        directory = self.recipe.directory
        if self._trained() <= 0:
            return "start-up"
        if self._syncing():
            return "sync"
        whole = last_whole_checkpoint(directory)
        newest = max((int(p.name.split("-")[1]) for p in directory.glob("checkpoint-*")), default=0)
        records = read(directory / FILE_NAME)
        done = max((r.step for r in records if isinstance(r, StepRecord)), default=0)
        due = done - done % self.recipe.train.save_every
        if max(newest, due) > (whole[1] if whole else 0):
            return "saving"
        evaluated = {r.step for r in records if isinstance(r, EvalRecord)}
        if done % self.recipe.evaluation.every == 0 and done not in evaluated:
            return "evaluating"
        return "any"

    def _syncing(self) -> bool:
        """Whether weights were handed over a moment ago; the engines are reading or copying them."""
        file = Path(getattr(self.recipe.weights, "path", "")) / "model.safetensors"
        return file.exists() and time.time() - file.stat().st_mtime < SYNC_S

    def check(self) -> list[str]:
        """What is wrong on disk now."""
        return books_of(self.recipe) + unreadable(self.recipe)


def engines(pid: int) -> list[psutil.Process]:
    """Engine processes of a child."""
    try:
        children = psutil.Process(pid).children()
        return [p for p in children if any("lab_engine" in word for word in p.cmdline())]
    except psutil.Error:
        return []


def steps_of(recipe: Recipe) -> list[StepRecord]:
    path = recipe.directory / FILE_NAME
    return [r for r in read(path) if isinstance(r, StepRecord)] if path.exists() else []


# -- the books ----------------------------------------------------------------------------------------------


def books_of(recipe: Recipe) -> list[str]:
    """The ledger's audit."""
    return audit(read_ledger(recipe.directory / LEDGER), bound=recipe.pacing.bound)


def unreadable(recipe: Recipe) -> list[str]:
    """Files of the run that a resume would stumble over."""
    try:
        waiting_in(recipe)
    except (OSError, ValueError, KeyError) as error:
        return [f"what waits cannot be read: {error!r}"]
    return []


def waiting_in(recipe: Recipe) -> set[int]:
    """Groups that a resume would go on with: the checkpoint's and the journals' since."""
    index_of = {info.key: i for i, info in enumerate(load_catalogue(recipe.environment).infos)}
    found = last_whole_checkpoint(recipe.directory)
    step, ids = 0, set[int]()
    if found is not None:
        step = found[1]
        ids |= {g.id for g in parse_groups((found[0] / STATE_DIR / GROUPS_FILE).read_bytes(), index_of)}
    for path in sorted((recipe.directory / JOURNALS).glob("*.frames")):
        if int(path.stem) >= step:
            ids |= {entry.id for entry in read_journal(path, index_of) if entry.group is not None}
    return ids


@dataclass(frozen=True, slots=True)
class Account:
    """What became of every group, counted without the audit."""

    trained: dict[int, int]
    """Step by group, of the steps that survived."""
    twice: int
    lost: set[int]
    """Accepted, and neither trained, nor expired, nor waiting on disk."""
    largest_lag: int
    restored: int
    """Groups that resumes went on with."""
    again: int
    """Tasks in flight at a checkpoint that a resume started again."""
    lost_in_flight: int
    """Groups that an engine or a shutdown cost; their tasks are offered again first."""


def account(recipe: Recipe) -> Account:
    """A second opinion on the ledger."""
    events = read_ledger(recipe.directory / LEDGER)
    accepted = {e["id"]: e["version"] for e in events if e["event"] == "finish" and e["fate"] == "accepted"}
    takes: list[tuple[int, int]] = []
    expired: set[int] = set()
    for event in events:
        match event["event"]:
            case "take":
                takes += [(id, event["step"]) for id in event["ids"]]
            case "expire":
                expired |= set(event["ids"])
            case "resume":
                takes = [(id, step) for id, step in takes if step < event["step"]]
                expired -= set(event["ids"])
                accepted |= dict(zip(event["ids"], event["versions"], strict=True))
            case _:
                pass
    trained = dict(takes)
    resumes = [e for e in events if e["event"] == "resume"]
    return Account(
        trained=trained,
        twice=len(takes) - len(trained),
        lost=set(accepted) - set(trained) - expired - waiting_in(recipe),
        largest_lag=max((step - accepted[id] for id, step in takes), default=0),
        restored=sum(len(e["ids"]) for e in resumes),
        again=sum(e["again"] for e in resumes),
        lost_in_flight=sum(e["event"] == "lose" for e in events),
    )


def engine_returns(recipe: Recipe) -> int:
    """Times that an engine served again, by the children's own log."""
    return said_by(recipe).count("serves again")


def said_by(recipe: Recipe) -> str:
    """What the children logged."""
    path = recipe.directory.parent / LOG
    return path.read_text() if path.exists() else ""


def figures_of(recipe: Recipe, toll: Toll) -> dict[str, Any]:
    """Flat figures of one run."""
    found, steps = account(recipe), steps_of(recipe)
    met = [kill.met for kill in toll.kills]
    final = last_whole_checkpoint(recipe.directory)
    state = json.loads((final[0] / STATE_DIR / MARK).read_bytes()) if final else {"reuse": {}}
    return {
        "kills": {v: sum(k.victim == v for k in toll.kills) for v in ("trainer", "loop", "engine")},
        "met": {m: met.count(m) for m in sorted(set(met))},
        "starts of the trainer": toll.starts,
        "problems": toll.problems,
        "steps": [s.step for s in steps] == list(range(1, recipe.train.steps + 1)) and len(steps),
        "groups trained": len(found.trained),
        "trained twice": found.twice,
        "finished groups lost": len(found.lost),
        "largest lag": found.largest_lag,
        "bound": recipe.pacing.bound,
        "finished groups that resumes went on with": found.restored,
        "tasks in flight at a checkpoint started again": found.again,
        "groups lost in flight and offered again": found.lost_in_flight,
        "replayed groups": sum(s.trained_groups for s in steps) - len(found.trained),
        "stored successes at the end": len(state["reuse"].get("entries", ())),
    }
