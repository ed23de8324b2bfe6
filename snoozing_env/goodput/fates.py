"""What became of every generated token, and of the engine's time that went into it.

finish ─▶ waiting ─┬─ train ──▶ trained
                   └─ lose ───▶ lost to staleness, filters or failures
generated = trained + lost + waiting, at any moment and across a resume
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal

Cause = Literal[
    "over_age", "expired", "all_max", "all_min", "no_spread", "out_of_band", "invalid", "too_few_valid", "cancelled", "undone"
]  # fmt: skip
Family = Literal["staleness", "filters", "failures"]
LOST: Mapping[Family, tuple[Cause, ...]] = {
    "staleness": ("over_age", "expired"),
    "filters": ("all_max", "all_min", "no_spread", "out_of_band"),
    "failures": ("invalid", "too_few_valid", "cancelled", "undone"),
}
"""Causes of loss by family. Over age: finished past the bound; expired: waited past it. Invalid: rollouts without a
verdict, in whatever group; too few valid: the rest of a group that such rollouts spoiled. Cancelled: a group that ended
without a verdict, whose tokens nobody counted: only its time is lost on the books. Undone: taken back by a kill."""


@dataclass(slots=True)
class Spent:
    """Tokens, and the engine's seconds for them."""

    tokens: int = 0
    seconds: float = 0.0

    def add(self, other: Spent) -> None:
        self.tokens += other.tokens
        self.seconds += other.seconds


class Fates:
    """Books by group; a group counts once, when it is trained the first time."""

    def __init__(self) -> None:
        self.generated = 0
        """Tokens of finished groups."""
        self.replayed = 0
        """Tokens that were trained once more; they are no part of the sum."""
        self.trained = Spent()
        self.lost: dict[Cause, Spent] = {cause: Spent() for causes in LOST.values() for cause in causes}
        self._waiting: dict[int, Spent] = {}

    def finish(self, id: int, *, tokens: int, invalid: int = 0, seconds: float = 0.0) -> None:
        """A group with its verdicts waits; the tokens of its `invalid` rollouts are lost already.

        Its seconds are lost in the same proportion.
        """
        self.generated += tokens
        wasted = seconds * invalid / tokens if tokens else 0.0
        if invalid:
            self.lost["invalid"].add(Spent(invalid, wasted))
        self._waiting[id] = Spent(tokens - invalid, seconds - wasted)

    def train(self, id: int, *, tokens: int) -> None:
        """`tokens` count for a group that was never said to have finished, as after a resume from before the books."""
        self.trained.add(self._settle(id, tokens))

    def lose(self, id: int, cause: Cause, *, tokens: int = 0) -> None:
        """As `train`, but thrown away."""
        self.lost[cause].add(self._settle(id, tokens))

    def waste(self, cause: Cause, *, tokens: int = 0, seconds: float = 0.0) -> None:
        """Work that made no group."""
        self.generated += tokens
        self.lost[cause].add(Spent(tokens, seconds))

    def lose_all_but(self, kept: Collection[int], cause: Cause) -> None:
        """Whatever waits and is not among these."""
        for id in [id for id in self._waiting if id not in kept]:
            self.lose(id, cause)

    def _settle(self, id: int, tokens: int) -> Spent:
        if id not in self._waiting:
            self.finish(id, tokens=tokens)
        return self._waiting.pop(id)

    @property
    def waiting(self) -> Spent:
        """Of groups that finished and were neither trained nor lost."""
        whole = Spent()
        for one in self._waiting.values():
            whole.add(one)
        return whole

    def balance(self) -> int:
        """Tokens that the books cannot account for; 0, or they are wrong."""
        lost = sum(spent.tokens for spent in self.lost.values())
        return self.generated - self.trained.tokens - lost - self.waiting.tokens

    # -- state ------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """JSON-able."""
        return {
            "generated": self.generated,
            "replayed": self.replayed,
            "trained": [self.trained.tokens, self.trained.seconds],
            "lost": {cause: [spent.tokens, spent.seconds] for cause, spent in self.lost.items()},
            "waiting": {str(id): [spent.tokens, spent.seconds] for id, spent in self._waiting.items()},
        }

    def add(self, state: Mapping[str, Any]) -> None:
        """Take in what a checkpoint holds."""
        self.generated += int(state["generated"])
        self.replayed += int(state["replayed"])
        self.trained.add(Spent(*state["trained"]))
        for cause, spent in state["lost"].items():
            if cause in self.lost:
                self.lost[cause].add(Spent(*spent))
        self._waiting |= {int(id): Spent(*spent) for id, spent in state["waiting"].items()}
