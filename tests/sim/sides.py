"""Runs of the conflicting pair and of the standalone set under each arm, and what figure 4 reads off them."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from snoozing_env import build_scheduler
from snoozing_env.schedulers import UniformConfig
from snoozing_env.schedulers.snooze import SnoozeConfig
from snoozing_env.sim.learner import Learner, LearnerConfig
from snoozing_env.sim.presets import ARM_SETS, PRESETS
from snoozing_env.sim.run import LoopConfig, SimulatedLoop

CONFLICT = PRESETS["conflict"]
HIDDEN = CONFLICT.model_copy(
    update={"populations": tuple(p.model_copy(update={"dataset": "qa"}) for p in CONFLICT.populations)}
)
"""The same pair inside one data set; only the tasks' `side` tells them apart."""
LEARNERS = {"conflict": CONFLICT, "hidden": HIDDEN, "standalone": PRESETS["standalone"]}
STEPS = {"conflict": 150, "hidden": 150, "standalone": 250}
"""The standalone set is mastered by then; until tasks are, there is nothing to re-check."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """One run."""

    rate_S: np.ndarray
    """Pass rate of the answerable side after each update; of all tasks where there are no sides."""
    factor_S_C: np.ndarray
    """N of each cell of `auto` after each update."""
    alarms: int
    warnings: tuple[str, ...]
    generated: int

    @property
    def fall_S(self) -> np.ndarray:
        return np.maximum.accumulate(self.rate_S) - self.rate_S

    @property
    def dip(self) -> float:
        """Deepest fall below what was reached before."""
        return float(self.fall_S.max())

    @property
    def long(self) -> int:
        """Updates spent more than a tenth below what was reached before."""
        return int((self.fall_S > 0.1).sum())

    @property
    def late(self) -> float:
        """Mean over the second half."""
        return float(self.rate_S[len(self.rate_S) // 2 :].mean())

    @property
    def factor(self) -> float:
        """Where `auto` settled: the longest of the cells' mean N over the last quarter."""
        return float(self.factor_S_C[-len(self.factor_S_C) // 4 :].mean(axis=0).max())


@lru_cache(maxsize=256)
def run(learner: str, arm: str, seed: int) -> Watched:
    return train(LEARNERS[learner], ARM_SETS["conflict"][arm], seed, STEPS[learner])


@lru_cache(maxsize=32)
def standalone(seed: int) -> Watched:
    """The standalone set under `auto`, with no conflict to watch."""
    arm = UniformConfig(snooze=SnoozeConfig(skip_passes="auto"))
    return train(LEARNERS["standalone"], arm, seed, STEPS["standalone"])


def train(learner: LearnerConfig, arm: UniformConfig, seed: int, steps: int) -> Watched:
    """A run that finds nothing more to train on stays where it stopped."""
    world = Learner(learner, seed)
    scheduler = build_scheduler(arm, world.tasks, seed)
    loop = SimulatedLoop(world, scheduler, LoopConfig(steps=steps))
    rates, factors, generated = list[float](), list[np.ndarray](), 0
    for _ in range(steps):
        metrics = loop.step()
        if metrics is not None:
            generated += metrics.generated
            rates.append(metrics.side_rates.get("+1", metrics.rate))
            factors.append(scheduler.snooze.forgetting.factor_C.copy())
    rates += rates[-1:] * (steps - len(rates))
    return Watched(
        rate_S=np.array(rates),
        factor_S_C=np.array(factors),
        alarms=scheduler.conflict.alarms,
        warnings=tuple(scheduler.warnings()),
        generated=generated,
    )
