"""A scheduler around one selector, held in a known state."""

from typing import Any

import numpy as np

from snoozing_env import TaskInfo, build_scheduler
from snoozing_env.schedulers import Curriculum
from snoozing_env.schedulers.selector import Selector
from snoozing_env.schedulers.source import Selection
from snoozing_env.testing import outcome

ALL = slice(None)


def build(tasks: int | list[TaskInfo], **config: Any) -> tuple[Curriculum, Any]:
    """A scheduler and its selector."""
    infos = (
        [TaskInfo(key=str(i), text=f"number {i}") for i in range(tasks)] if isinstance(tasks, int) else tasks
    )
    scheduler = build_scheduler(config, infos, 0)
    assert isinstance(scheduler.source, Selection)
    return scheduler, scheduler.source.selector


def hold(scheduler: Curriculum, s: Any, f: Any) -> None:
    """Set the Beta posteriors."""
    scheduler.difficulty.successes_N[:] = s
    scheduler.difficulty.failures_N[:] = f
    scheduler.difficulty.visits_N[:] = 1


def teach(scheduler: Curriculum, task: int, *solved: int, version: int = 0) -> None:
    """Groups of four for one task, one after the other."""
    for k in solved:
        scheduler.observe(outcome(task, k, version=version))


def first_choices(selector: Selector, n: int, rounds: int) -> np.ndarray:
    """[n] how often each task is chosen when one may be."""
    picks = [int(selector.choose(1, np.ones(n, np.bool_))[0]) for _ in range(rounds)]
    return np.bincount(picks, minlength=n) / rounds
