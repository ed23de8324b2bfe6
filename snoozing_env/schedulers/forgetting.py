"""How fast mastered tasks are forgotten while they sleep, and how long they may therefore sleep (Z9).

A re-check after t passes (N skipped, t = N + 1) comes back imperfect for two reasons: the task was not mastered but
lucky when it fell asleep, which does not depend on t, or it was forgotten since, which does:

    P(imperfect | t) = 1 - (1 - luck) · exp(-h·t)

Counting failures alone would take half-learned tasks for a conflict: in the simulator a standalone set's re-checks
fail as often as a conflicting pair's (13 to 25 % against 10 to 25 %), but the former at every t alike. So the
posterior is over both, on a grid, from the counts of re-checks and of imperfect ones at each t. What tells luck from
forgetting is that N changes: evidence from other N counts for `half_life` passes. The prior: luck uniform on
[0, 1/2]; h a Gamma of shape 1/2, so that very slow is as easily believed as fast, with the mean that makes
`prior_passes` the answer.

Tasks not yet re-checked enter nowhere. Given t, a re-check's result does not depend on whether other sleepers have
come back, so leaving them out biases nothing; dividing failures by *all* sleepers would.

The rule. With hazard h, a task that sleeps N passes is forgotten for the share F(x) = 1 - (1 - exp(-x)) / x of the
time, x = h·(N + 1): about x/2. A longer sleep saves re-checks, 1/(N + 1) a pass, of which all but x are wasted;
it costs time in which forgotten tasks are not trained. `forgotten_share` is the price at which the two balance: N is
the largest with F(h·(N + 1)) ≤ forgotten_share, at the posterior mean of h.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from pydantic import Field, model_validator

from snoozing_env.config import FrozenConfig
from snoozing_env.types import Bools, Floats, Ints

LUCK = np.linspace(0.0, 0.5, 51)
HAZARD = np.geomspace(1e-4, 2.0, 48)
SHAPE = 0.5
"""Of the Gamma prior of h."""
LONGEST = 64
"""Re-checks after longer sleeps count as after so many passes."""


class AutoConfig(FrozenConfig):
    """How `skip_passes = "auto"` chooses N."""

    forgotten_share: float = Field(default=0.025, gt=0, lt=0.5)
    """Share of sleeping tasks that may be forgotten, on average over a sleep."""
    prior_passes: float = Field(default=5.0, gt=0)
    """N before any re-check."""
    prior_opposed: float = Field(default=2.0, ge=1)
    """The same for the sides of a [scheduler.conflict] pair, if it is less: whoever declares a conflict expects one,
    and the first wave of sleepers does its harm before anything is measured."""
    min_passes: float = Field(default=1.0, ge=1)
    max_passes: float = Field(default=50.0, ge=1, lt=LONGEST)
    half_life: float = Field(default=50.0, gt=0)
    """Passes after which a re-check counts half: the policy that forgot was another one."""

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if not self.min_passes <= self.prior_passes <= self.max_passes:
            raise ValueError(
                f"min_passes {self.min_passes:g}, prior_passes {self.prior_passes:g}, max_passes {self.max_passes:g}: "
                "they must be in this order"
            )
        return self


class Forgetting:
    """One posterior per cell: a dataset, a cluster or a side of a conflict whose factor is "auto"."""

    def __init__(self, config: AutoConfig, cells: Sequence[str], opposed: Mapping[str, str]) -> None:
        """`opposed` names the partner of cells that are sides of a conflict."""
        self.config, self.cells = config, tuple(cells)
        index = {name: c for c, name in enumerate(cells)}
        self._partner_C = np.array([index.get(opposed.get(n, n), c) for n, c in index.items()], np.int64)
        shape = (len(cells), LONGEST + 1)
        self._held_C_T = np.zeros(shape)
        """Re-checks by passes since the task fell asleep that came back all-max, faded."""
        self._lapsed_C_T = np.zeros(shape)
        """Those that did not."""
        self._pass_C = np.zeros(len(cells))
        """Pass up to which each cell's counts are faded."""
        self._most = _exposure(config.forgotten_share)
        wary = min(config.prior_opposed, config.prior_passes)
        passes_C = np.array([wary if name in opposed else config.prior_passes for name in cells])
        mean_C = self._most / (passes_C + 1.0)
        # On a geometric grid a density is weighed by h.
        log_prior_C_H = SHAPE * np.log(HAZARD) - SHAPE * HAZARD / mean_C[:, None]
        self._log_prior_C = np.tile(log_prior_C_H, (1, len(LUCK)))
        survival = (1.0 - LUCK)[:, None, None] * np.exp(-HAZARD[:, None] * np.arange(LONGEST + 1))
        survival = np.clip(survival, 1e-12, 1.0 - 1e-9).reshape(-1, LONGEST + 1)
        self._log_held, self._log_lapsed = np.log(survival).T, np.log1p(-survival).T
        self.hazard_C = mean_C
        """Posterior mean of h, per pass."""
        self.factor_C = self._in_step(self._factor(self.hazard_C))
        """N of each cell."""

    def observe(self, cell_B: Ints, *, passes_B: Ints, lapsed_B: Bools, now_B: Ints) -> None:
        """Take in re-checks: passes since each task fell asleep, whether it came back imperfect, the present pass."""
        if not len(cell_B):
            return
        touched = np.unique(cell_B)
        latest_C = self._pass_C.copy()
        np.maximum.at(latest_C, cell_B, now_B)
        fade_C = np.exp2((self._pass_C - latest_C) / self.config.half_life)[touched, None]
        self._held_C_T[touched] *= fade_C
        self._lapsed_C_T[touched] *= fade_C
        self._pass_C = latest_C
        length_B = np.clip(passes_B, 1, LONGEST)
        np.add.at(self._held_C_T, (cell_B, length_B), (~lapsed_B).astype(np.float64))
        np.add.at(self._lapsed_C_T, (cell_B, length_B), lapsed_B.astype(np.float64))
        self._judge(touched)

    def _judge(self, cell_K: Ints) -> None:
        log_K_H = self._log_prior_C[cell_K] + self._held_C_T[cell_K] @ self._log_held
        log_K_H += self._lapsed_C_T[cell_K] @ self._log_lapsed
        weight_K_H = np.exp(log_K_H - log_K_H.max(axis=1, keepdims=True))
        weight_K_H = weight_K_H.reshape(len(cell_K), len(LUCK), len(HAZARD)).sum(axis=1)
        self.hazard_C[cell_K] = weight_K_H @ HAZARD / weight_K_H.sum(axis=1)
        self.factor_C = self._in_step(self._factor(self.hazard_C))

    def _in_step(self, factor_C: Floats) -> Floats:
        """Opposed sides sleep equally long: what skews a batch is that one is away while the other is trained."""
        return np.minimum(factor_C, factor_C[self._partner_C])

    def _factor(self, hazard: Floats) -> Floats:
        passes = self._most / hazard - 1.0
        return np.clip(passes, self.config.min_passes, self.config.max_passes)

    def rechecks(self) -> Floats:
        """[C] faded number of re-checks behind each N."""
        return (self._held_C_T + self._lapsed_C_T).sum(axis=1)

    def state(self) -> dict[str, Any]:
        """Per cell by name: its pass, and its counts by length."""
        rows = zip(
            self.cells, self._pass_C.tolist(), self._held_C_T.tolist(), self._lapsed_C_T.tolist(), strict=True
        )
        return {name: [at, held, lapsed] for name, at, held, lapsed in rows}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Cells that the state does not know keep the prior."""
        known = [c for c, name in enumerate(self.cells) if name in state]
        for c in known:
            self._pass_C[c], self._held_C_T[c], self._lapsed_C_T[c] = state[self.cells[c]]
        # A cell without a re-check has the prior's mean as it was configured, not that of the grid.
        measured = np.asarray([c for c in known if self.rechecks()[c] > 0], np.int64)
        if len(measured):
            self._judge(measured)


def _exposure(share: float) -> float:
    """x with 1 - (1 - exp(-x)) / x = share, by bisection."""
    low, high = 1e-9, 1e3
    for _ in range(100):
        middle = 0.5 * (low + high)
        forgotten = 1.0 + np.expm1(-middle) / middle
        low, high = (middle, high) if forgotten < share else (low, middle)
    return low
