"""The books of one run and the flat metrics made of them.

trainer's thread   Account.trainer ─ enter / during
loop's thread      Account.engine ─ start / land / finish / train / expire …
every step         reading (totals) ─▶ step_metrics(before, after) ─▶ run log, trackers
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from snoozing_env.gates import GateConfig, judge
from snoozing_env.goodput.fates import LOST, Cause, Fates
from snoozing_env.goodput.times import PHASES, STATES, Clock, EngineTime, TrainerTime
from snoozing_env.types import Group, GroupOutcome

LEVELS = ("tokens/waiting", "work/waiting_s", "work/in_flight_s")
"""Metrics that say how it stands; all others of a step say what it added."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone:
    """What a dead process had done after the checkpoint that its successor goes on from."""

    seconds: float = 0.0
    tokens: int = 0
    """Generated and gone; where finished groups are kept in a journal, none are."""


class EngineAccount:
    """The engine's time, and what became of the groups it went into; used by the loop's thread alone."""

    def __init__(self, gate: GateConfig, clock: Clock) -> None:
        self.time, self.fates, self._gate = EngineTime(clock), Fates(), gate
        self._landed: dict[int, float] = {}
        """Own seconds of groups that have landed and not finished."""

    # -- groups -----------------------------------------------------------------------------------------

    def start(self, id: int) -> None:
        """A group is in flight."""
        self.time.start(id)

    def land(self, id: int) -> None:
        """It has its verdicts; `finish` says what becomes of it."""
        self._landed[id] = self.time.land(id, failed=False)

    def cancel(self, id: int, *, failed: bool) -> None:
        """It ended without; `failed`: because the engine did not serve it."""
        self.fates.waste("cancelled", seconds=self.time.land(id, failed=True if failed else None))

    def finish(self, group: Group, fate: Literal["accepted", "filtered", "over_age"]) -> None:
        """A landed group, trainable or not; an accepted one waits."""
        invalid = sum(sum(t.mask) for t in group.trajectories if not t.valid)
        self._finish(group.id, group.outcome, fate, invalid=min(invalid, group.tokens))

    def restore(self, id: int, outcome: GroupOutcome, fate: str) -> None:
        """A group that finished after the checkpoint, in a process that died since; its time died with it."""
        self._finish(id, outcome, fate)

    def filter(self, group: Group) -> None:
        """A group that waited and was found to teach nothing."""
        self.fates.lose(group.id, self._verdict(group.outcome), tokens=group.tokens)

    def train(self, groups: Iterable[Group]) -> None:
        """Groups that are trained for the first time."""
        for group in groups:
            self.fates.train(group.id, tokens=group.tokens)

    def replay(self, groups: Iterable[Group]) -> None:
        """Groups that are trained once more."""
        self.fates.replayed += sum(group.tokens for group in groups)

    def expire(self, groups: Iterable[Group]) -> None:
        """Groups that waited too long."""
        for group in groups:
            self.fates.lose(group.id, "expired", tokens=group.tokens)

    def expire_all_but(self, kept: Collection[int]) -> None:
        """The same, by the ids of those that may still be trained."""
        self.fates.lose_all_but(kept, "expired")

    def _finish(self, id: int, outcome: GroupOutcome, fate: str, *, invalid: int = 0) -> None:
        seconds = self._landed.pop(id, 0.0)
        self.fates.finish(id, tokens=outcome.tokens, invalid=invalid, seconds=seconds)
        if fate == "over_age":
            self.fates.lose(id, "over_age")
        elif fate == "filtered":
            self.fates.lose(id, self._verdict(outcome))

    def _verdict(self, outcome: GroupOutcome) -> Cause:
        """Why a group was filtered. The ladder may have widened the band, never the rest, so a group that did not
        pass failed the same test here."""
        verdict = judge(self._gate, outcome)
        return "out_of_band" if verdict == "admitted" else verdict

    # -- reading ----------------------------------------------------------------------------------------

    def reading(self) -> dict[str, float]:
        """Totals since the start of the run."""
        fates, waiting, time = self.fates, self.fates.waiting, self.time.read()
        found: dict[str, float] = {f"engine/{s}_s": v for s, v in time.by_state.items()}
        found |= {
            "engine/flight_s": time.in_flight,
            "tokens/generated": fates.generated,
            "tokens/trained": fates.trained.tokens,
            "tokens/replayed": fates.replayed,
            "tokens/waiting": waiting.tokens,
            "work/trained_s": fates.trained.seconds,
            "work/waiting_s": waiting.seconds + sum(self._landed.values()),
            "work/in_flight_s": time.running,
        }
        for family, causes in LOST.items():
            found[f"tokens/lost_{family}"] = sum(fates.lost[cause].tokens for cause in causes)
            found[f"work/lost_{family}_s"] = sum(fates.lost[cause].seconds for cause in causes)
            found |= {f"tokens/lost_{family}/{cause}": fates.lost[cause].tokens for cause in causes}
        return found

    def state(self) -> dict[str, Any]:
        """JSON-able. What is in flight is started again after a kill, so its time counts as cancelled."""
        time = self.time.read()
        return {
            "seconds": time.by_state,
            "in_flight": time.in_flight,
            "cancelled": time.running + sum(self._landed.values()),
            "fates": self.fates.state(),
        }

    def add(self, state: Mapping[str, Any]) -> None:
        """Take in what a checkpoint holds."""
        self.time.add(state["seconds"], in_flight=state["in_flight"])
        self.fates.add(state["fates"])
        self.fates.waste("cancelled", seconds=state["cancelled"])


class Account:
    """Both sides of a run, and what of them was told already."""

    def __init__(self, gate: GateConfig, clock: Clock, *, undone: Undone | None = None) -> None:
        """`undone`: what the process that this one takes over from had done for nothing."""
        self.trainer, self.engine = TrainerTime(clock), EngineAccount(gate, clock)
        self._told: dict[str, float] = {}
        if undone is not None:
            self.trainer.add({"undone": undone.seconds})
            self.engine.time.add({"undone": undone.seconds})
            self.engine.fates.waste("undone", tokens=undone.tokens)

    def step(self, *, close: bool = False) -> dict[str, float]:
        """Metrics since the last step that was closed. In the loop's thread, for which the trainer's waits meanwhile:
        then both sides are read at one instant."""
        now = {f"time/{phase}_s": s for phase, s in self.trainer.seconds.items()} | self.engine.reading()
        before = self._told
        if close:
            self._told = now
        return step_metrics(before, now)

    @property
    def closed_s(self) -> float:
        """Wall seconds of the run at the last closed step; every step's seconds by phase, added up."""
        return sum(self._told.get(f"time/{phase}_s", 0.0) for phase in PHASES)

    @property
    def seconds(self) -> float:
        """Wall seconds of the run, earlier starts included."""
        return sum(self.trainer.seconds.values())

    def state(self) -> dict[str, Any]:
        """JSON-able, without the engine's side, which is saved in its thread."""
        return {"trainer": self.trainer.seconds, "told": self._told}

    def add(self, state: Mapping[str, Any]) -> None:
        """Take in what a checkpoint holds."""
        self.trainer.add(state["trainer"])
        self._told = dict(state["told"])


def step_metrics(before: Mapping[str, float], now: Mapping[str, float]) -> dict[str, float]:
    """What a step added, the levels at its end, and goodput since the start of the run; zeros are left out.

    Args:
        before, now: totals by name, as in `EngineAccount.reading` with `time/PHASE_s`; names that are missing are 0.
    """
    found = {name: value if name in LEVELS else value - before.get(name, 0) for name, value in now.items()}
    wall = sum(found.get(f"engine/{state}_s", 0.0) for state in STATES)
    if wall > 0:
        found["engine/groups_in_flight"] = found.get("engine/flight_s", 0.0) / wall
    return {name: value for name, value in found.items() if value} | goodput(now)


def goodput(totals: Mapping[str, float]) -> dict[str, float]:
    """Shares in [0, 1] of the whole run up to now; empty before any time has passed."""
    wall = sum(totals.get(f"time/{phase}_s", 0.0) for phase in PHASES)
    engine_wall = sum(totals.get(f"engine/{state}_s", 0.0) for state in STATES)
    if wall <= 0 or engine_wall <= 0:
        return {}
    trainer = totals.get("time/training_s", 0.0) / wall
    engine = totals.get("work/trained_s", 0.0) / engine_wall
    found = {
        "goodput/trainer": trainer,
        "goodput/engine": engine,
        "goodput/time": (trainer + engine) / 2,
        "goodput/waiting_on_rollouts": totals.get("time/waiting_s", 0.0) / wall,
        "goodput/waiting_on_trainer": totals.get("engine/waiting_s", 0.0) / engine_wall,
    }
    trained = totals.get("tokens/trained", 0)
    known = trained + sum(totals.get(f"tokens/lost_{family}", 0) for family in LOST)
    return found | ({"goodput/tokens": trained / known} if known else {})
