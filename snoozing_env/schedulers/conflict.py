"""Conflict monitor: two one-sided behaviours must not be trained one after the other (M4; S0, figure 4).

    informative groups of a pair ─▶ share of each side ─ far under its share of the pool? ─▶ *look*: wake a few
    re-checks of a side's sleepers ─▶ pass rate ─ under its recent best? ─▶ *alarm*: warn, cap its sleeps, wake early
                                                 └ held? ─▶ alarm over; the cap doubles with every calm window

A side whose share vanishes is either mastered or being unlearned while nobody looks; a mastered side has no share
either, so a vanished share alone only asks for a look, and the looks decide. What is known of a side ages with every
informative group of its *partner*, for that is what unlearns it. With `permanent` a cap is what brings tasks back.

Every comparison is against the near end of a one-sided interval, over groups and not rollouts, for the rollouts of a
group share their task. The alarm ends at half the drop that raised it, so that it does not flutter, and each further
alarm of a side doubles the calm after which its cap is raised.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from pydantic import Field, model_validator

from snoozing_env.config import FrozenConfig
from snoozing_env.schedulers.outcomes import OutcomeTable
from snoozing_env.schedulers.sides import Sides, of_pair, partners, upper_end
from snoozing_env.types import Bools, Floats, Ints, TaskInfo

NO_CAP = float(2**31 - 1)
"""More passes than any sleep; a number, not infinity, for state is JSON."""
MOST_LOOKS = 4.0
"""Evidence about a side weighs at most so many times `looks`."""


class ConflictConfig(FrozenConfig):
    """Which behaviours are opposed, and how closely they are watched."""

    pairs: tuple[tuple[str, str], ...] = ()
    """Opposed sides, e.g. [["refuse", "comply"]]. A side is a task's `side`, else its `cluster`, else its dataset."""
    window: float = Field(default=48.0, gt=0)
    """Informative groups of a pair after which evidence counts half: two batches of 24."""
    vanished: float = Field(default=0.5, gt=0, lt=1)
    """A side is overlooked when its share of the informative groups is under this part of its share of the pool."""
    drop: float = Field(default=0.1, gt=0, lt=1)
    """Fall of a side's pass rate on re-checks below its recent best that raises the alarm."""
    looks: int = Field(default=8, ge=1)
    """Sleepers of an overlooked side that are woken for every half window that the pair is trained on."""
    cap: float = Field(default=2.0, ge=1)
    """Most passes that tasks of a side skip once it is alarmed; halved with every window of alarm, down to 1."""
    calm: float = Field(default=8.0, gt=0)
    """Windows without a drop after which a cap doubles."""
    release: float = Field(default=32.0, ge=1)
    """A cap that has doubled past so many passes is lifted."""
    confidence: float = Field(default=1.64, gt=0)
    """Standard normal quantile of the intervals; 1.64 = 95 % one-sided."""

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        names = [name for pair in self.pairs for name in pair]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"pairs name {twice} more than once; a side has one opponent")
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class Wake:
    """What the monitor wants of one side's sleepers."""

    side: int
    looks: int = 0
    """So many of them are to be drawn next."""
    most: float = NO_CAP
    """None may skip more passes than this."""


class Conflict:
    """Watches S sides; decides, and leaves the waking to the curriculum."""

    def __init__(self, config: ConflictConfig, tasks: Sequence[TaskInfo]) -> None:
        self.config, self.sides = config, Sides(config.pairs, tasks)
        sides = self.sides
        self._pool_S = sides.size_S / of_pair(sides.size_S.astype(np.float64))
        n = len(sides.names)
        self.cap_S = np.full(n, NO_CAP)
        """Most passes a task of the side may skip."""
        self._state_S: dict[str, Floats] = {name: np.zeros(n) for name in _COLUMNS}
        self.alarms = self.looks = 0
        """Counts since the start of the run."""
        self.messages: deque[str] = deque(maxlen=100)

    def most(self, task_B: Ints) -> Floats:
        """[B] most passes each task may skip."""
        side_B = self.sides.side_N[task_B]
        return np.append(self.cap_S, NO_CAP)[side_B]  # -1 reads the last

    def observe(self, table: OutcomeTable, *, recheck_B: Bools) -> list[Wake]:
        """Take in judged groups, told which are re-checks of mastered tasks; what to wake, if anything."""
        side_B = self.sides.side_N[table.task_B].astype(np.int64)
        inside_B = side_B >= 0
        if not inside_B.any():  # above all: nothing is watched
            return []
        n, s = len(self.sides.names), self._state_S
        spread_B = table.max_B - table.min_B > 1e-6
        trained_S = np.bincount(side_B[inside_B & spread_B], minlength=n).astype(np.float64)
        pair_S = of_pair(trained_S)
        s["trained"] = s["trained"] * self._fade(pair_S) + trained_S
        looked_B, first_B = inside_B & recheck_B, inside_B & ~recheck_B
        rate_B = table.sum_B / table.valid_B
        self._level(side_B[first_B], rate_B[first_B])
        self._look_at(side_B[looked_B], rate_B[looked_B], self._fade(partners(trained_S)))
        for name in ("since_look", "since_cap", "calm"):
            s[name] = s[name] + pair_S
        wakes = [*self._alarms(), *self._looks()]
        self._release(pair_S)
        return wakes

    def _level(self, side_B: Ints, rate_B: Floats) -> None:
        """Until a side has re-checks to compare with, its best is the rate of its other groups. It must not be 1: of a
        half-learned side only the lucky fall asleep, and they come back at its level without having been unlearned."""
        s, n = self._state_S, len(self.sides.names)
        count_S = np.bincount(side_B, minlength=n).astype(np.float64)
        weight_S = np.minimum(s["seen"], MOST_LOOKS * self.config.looks)
        s["seen"] = weight_S + count_S
        total_S = s["level"] * weight_S + np.bincount(side_B, weights=rate_B, minlength=n)
        s["level"] = np.where(s["seen"] > 0, total_S / np.maximum(s["seen"], 1.0), 0.0)
        off_S = np.sqrt(0.5 * s["level"] * (1.0 - s["level"]) / np.maximum(s["seen"], 1.0))
        surely_S = s["level"] - self.config.confidence * off_S
        ready_S = (s["compared"] == 0) & (s["seen"] >= self.config.looks)
        s["best"] = np.where(ready_S, np.maximum(s["best"], surely_S), s["best"])

    def _look_at(self, side_B: Ints, rate_B: Floats, fade_S: Floats) -> None:
        """Fold in the pass rates of re-checks. A wave of hundreds must not outweigh the next few looks, so the evidence
        counts as so many groups at most."""
        s, n = self._state_S, len(self.sides.names)
        for name, weight_B in (("looked", np.ones(len(rate_B))), ("held", rate_B), ("held_2", rate_B**2)):
            s[name] = s[name] * fade_S + np.bincount(side_B, weights=weight_B, minlength=n)
        shrink_S = np.minimum(1.0, MOST_LOOKS * self.config.looks / np.maximum(s["looked"], 1e-9))
        for name in ("looked", "held", "held_2"):
            s[name] = s[name] * shrink_S

    def _fade(self, groups_S: Floats) -> Floats:
        return np.exp2(-groups_S / self.config.window)

    # -- what is wrong ----------------------------------------------------------------------------------

    def rates(self) -> Floats:
        """[S] pass rate on re-checks; 1 before any."""
        looked_S = self._state_S["looked"]
        return np.where(looked_S > 0, self._state_S["held"] / np.maximum(looked_S, 1e-9), 1.0)

    def shares(self) -> Floats:
        """[S] share of its pair's informative groups; that of the pool before any."""
        pair_S = of_pair(self._state_S["trained"])
        return np.where(pair_S > 0, self._state_S["trained"] / np.maximum(pair_S, 1e-9), self._pool_S)

    def _fallen(self) -> Bools:
        s = self._state_S
        enough_S = s["looked"] >= self.config.looks / 2
        return enough_S & (self.rates() + self._reach() < s["best"] - self.config.drop)

    def _reach(self) -> Floats:
        """[S] how far the pass rate on re-checks may be off, at the configured confidence. Before any was seen a group's
        rate varies half as much as a single rollout's would at the best rate; that guess is worth one group."""
        s, rate_S = self._state_S, self.rates()
        n_S = np.maximum(s["looked"], 1e-9)
        guess_S = 0.5 * np.clip(s["best"] * (1.0 - s["best"]), 0.05, 0.25)
        variance_S = (np.maximum(s["held_2"] - n_S * rate_S**2, 0.0) + guess_S) / (n_S + 1.0)
        return self.config.confidence * np.sqrt(variance_S / n_S)

    def _overlooked(self) -> Bools:
        pair_S = of_pair(self._state_S["trained"])
        upper_S = upper_end(self.shares(), pair_S, self.config.confidence)
        return (pair_S > 0) & (upper_S < self.config.vanished * self._pool_S)

    # -- what to do about it ----------------------------------------------------------------------------

    def _alarms(self) -> list[Wake]:
        s, config, wakes = self._state_S, self.config, list[Wake]()
        for side in map(int, np.flatnonzero(self._fallen())):
            s["calm"][side] = 0.0
            if not s["alarmed"][side]:
                self.cap_S[side] = min(self.cap_S[side], config.cap)
                s["alarmed"][side], s["since_cap"][side] = 1.0, 0.0
                s["episodes"][side] += 1.0
                self.alarms += 1
                self._warn(side)
            elif s["since_cap"][side] >= config.window:
                self.cap_S[side] = max(self.cap_S[side] / 2.0, 1.0)
                s["since_cap"][side] = 0.0
            else:
                continue
            wakes.append(Wake(side=side, most=self.cap_S[side]))
        return wakes

    def _looks(self) -> list[Wake]:
        """A few sleepers of each overlooked side, time and again while it is one."""
        s, config = self._state_S, self.config
        due_S = (s["since_look"] >= config.window / 2.0) | (s["looked"] < 1.0) & (s["since_look"] > 0)
        sides = np.flatnonzero(self._overlooked() & due_S)
        s["since_look"][sides] = 0.0
        self.looks += config.looks * len(sides)
        return [Wake(side=int(side), looks=config.looks) for side in sides]

    def _release(self, pair_S: Floats) -> None:
        """End alarms whose rate holds again, raise caps slowly, and follow the level that a side settles at."""
        s, config = self._state_S, self.config
        known_S, rate_S = s["looked"] >= config.looks, self.rates()
        holds_S = known_S & (rate_S >= s["best"] - config.drop / 2.0)
        s["alarmed"] = np.where(holds_S, 0.0, s["alarmed"])
        patience_S = config.calm * config.window * 2.0 ** np.clip(s["episodes"] - 1.0, 0.0, 6.0)
        due_S = holds_S & (self.cap_S < NO_CAP) & (s["calm"] >= patience_S)
        doubled_S = np.where(2.0 * self.cap_S > config.release, NO_CAP, 2.0 * self.cap_S)
        self.cap_S = np.where(due_S, doubled_S, self.cap_S)
        s["calm"] = np.where(due_S, 0.0, s["calm"])
        # The best is what the rate surely was: the highest of many noisy rates would be an accident. It comes down, or it
        # would hold a side to its luckiest hour, but slowly, or it would follow a slow unlearning to the bottom.
        lower_S = np.maximum(rate_S - self._reach(), s["best"] - config.drop / 64.0 * pair_S / config.window)
        s["compared"] = np.where(known_S, 1.0, s["compared"])
        s["best"] = np.where(known_S & (s["alarmed"] == 0), lower_S, s["best"])

    def _warn(self, side: int) -> None:
        names, rate, share = self.sides.names, self.rates()[side], self.shares()[side]
        self.messages.append(
            f"conflict: {names[side]!r} came back at a pass rate of {rate:.2f}, its recent best is "
            f"{self._state_S['best'][side]:.2f}, while {names[self.sides.partner(side)]!r} is {1 - share:.0%} of what is trained "
            f"on; its tasks now sleep {self.cap_S[side]:g} passes at most"
        )

    # -- reporting and state ----------------------------------------------------------------------------

    def metrics(self) -> dict[str, float]:
        """Per side: share of the pair's informative groups, pass rate on re-checks, cap (0 = none), whether alarmed."""
        columns = {
            "share": self.shares(),
            "rate": self.rates(),
            "cap": np.where(self.cap_S < NO_CAP, self.cap_S, 0.0),
            "alarmed": self._state_S["alarmed"],
        }
        if not self.sides.names:
            return {}
        found = {"conflict_alarms": float(self.alarms), "conflict_looks": float(self.looks)}
        for name, value_S in columns.items():
            found |= {
                f"conflict/{side}/{name}": float(v) for side, v in zip(self.sides.names, value_S, strict=True)
            }
        return found

    def state(self) -> dict[str, Any]:
        """JSON-able, by side name."""
        columns = {**self._state_S, "cap": self.cap_S}
        sides = {
            name: {k: float(v[s]) for k, v in columns.items()} for s, name in enumerate(self.sides.names)
        }
        return {
            "sides": sides,
            "alarms": self.alarms,
            "looks": self.looks,
            "messages": list(self.messages),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Sides that the state does not know start afresh."""
        for s, name in enumerate(self.sides.names):
            if name in state["sides"]:
                saved = state["sides"][name]
                self.cap_S[s] = saved["cap"]
                for column, value_S in self._state_S.items():
                    value_S[s] = saved[column]
        self.alarms, self.looks = int(state["alarms"]), int(state["looks"])
        self.messages = deque(state["messages"], maxlen=100)


_COLUMNS = (
    "trained",
    "looked",
    "held",
    "held_2",
    "seen",
    "level",
    "compared",
    "best",
    "alarmed",
    "episodes",
    "since_look",
    "since_cap",
    "calm",
)
"""Per side: informative groups, re-checks, their summed rates and squared rates, all faded; other groups and their mean
rate; whether re-checks were ever enough to compare with; the recent best rate; whether
alarmed and how often so far; the pair's informative groups since the last look, the last cap, the last drop."""
