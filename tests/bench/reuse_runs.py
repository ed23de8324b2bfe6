"""Runs of the lab policy that are compared at equal generated tokens."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from snoozing_env.intervals import over_seeds
from snoozing_env.report.compare import Run, load_runs
from snoozing_env.train.recipe import Recipe, load_recipe
from snoozing_env.train.run import RunOptions, train

QUIET = Console(file=io.StringIO())


def run_words(words: Sequence[str]) -> Run:
    """Train what the command line says, in a folder that is gone afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        return run_recipe(load_recipe([*words, "--output", f"{folder}/run"]))


def run_recipe(recipe: Recipe) -> Run:
    """Train and read the log."""
    train(recipe, RunOptions(), console=QUIET)
    return load_runs([Path(recipe.output)])[0]


class Curve:
    """Held-out accuracy of a run over the tokens that it had generated."""

    def __init__(self, run: Run) -> None:
        used = np.concatenate(([0.0], run.cumulative("generated_tokens")))
        self.tokens = np.array([used[min(e.step, len(used) - 1)] for e in run.evals])
        self.accuracy = np.array([e.accuracy for e in run.evals])

    @property
    def end(self) -> float:
        """Tokens generated in all."""
        return float(self.tokens[-1])

    def at(self, tokens: float) -> float:
        """Between evaluations by straight line."""
        return float(np.interp(tokens, self.tokens, self.accuracy))

    def mean_until(self, tokens: float) -> float:
        """Mean over everything spent until then: how soon the accuracy came."""
        x = np.linspace(0.0, tokens, 2001)
        return float(np.interp(x, self.tokens, self.accuracy).mean())


def mean_of(run: Run, read: Callable[[Any], float | None], *, after: int = 0) -> float | None:
    """Mean over a run's steps (those past `after`) of what was measured."""
    values = [v for s in run.steps if s.step > after and (v := read(s)) is not None]
    return float(np.mean(values)) if values else None


def source(name: str, key: str) -> Callable[[Any], float | None]:
    """One entry of a step's mapping."""

    def read(step: Any) -> float | None:
        found: Mapping[str, float] = getattr(step, name) or {}
        return found.get(key)

    return read


def mean_and_interval(values: Sequence[float]) -> str:
    """`+0.012 [-0.003, +0.027]`: the mean and its 95 % interval over seeds (Student's t, so wide for three)."""
    mean = float(np.mean(values))
    if len(values) < 2:
        return f"{mean:+.4f}"
    low, high = over_seeds(values)
    return f"{mean:+.4f} [{low:+.4f}, {high:+.4f}]"


def rounded(value: float | None, digits: int = 4) -> float | None:
    return None if value is None else round(value, digits)
