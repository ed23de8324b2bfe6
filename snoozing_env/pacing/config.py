"""One field goes from synchronous to K versions stale (A2); the rest says what happens to what comes too late."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from snoozing_env.config import FrozenConfig
from snoozing_env.pacing.durations import DurationConfig
from snoozing_env.pacing.tail import TailConfig

OverAge = Literal["drop", "requeue", "keep-corrected"]
Mode = Literal["sync", "double-buffer", "bounded", "in-flight"]


class PacingConfig(FrozenConfig):
    """Bound on staleness, and pacing that keeps work from running into it."""

    max_staleness: int = Field(default=0, ge=0)
    """K: largest lag in weight updates between a group's first token and the step that trains it, the queue included
    (A1). 0 = synchronous, 1 = double buffering; up to 8 is what published runs call safe with importance correction."""
    weight_updates: Literal["drain", "in-flight"] = "drain"
    """How new weights reach a busy engine: after the requests in progress, or between two of their tokens."""
    over_age: OverAge = "drop"
    """What becomes of a group that finishes past the bound: thrown away, its task offered again first, or trained
    with its importance ratio as long as its lag stays within `keep_until`. All three teach the scheduler (A4)."""
    keep_until: int | None = Field(default=None, ge=0)
    """With `keep-corrected`: the lag that takes the bound's place; None = 2 K + 1. Pacing still aims at K."""
    stragglers: Literal["wait", "let-go"] = "wait"
    """Before a step that is the last one in which a running group could be trained: wait for it (until its
    deadline), or train without it. Letting go is faster and biased: what takes long is thrown away."""
    max_running: int = Field(default=256, ge=1)
    """Groups in flight at once, whatever the bound allows."""
    group_s: float = Field(default=3600.0, gt=0)
    """Seconds from a group's dispatch to its last verdict, in every mode. Rollouts that are unfinished then are
    cancelled and invalid, never zeros; with `gate.min_valid` valid ones the group is used without them (A5), with
    fewer it is lost: it teaches nothing, is counted and its task is tried again."""
    patience_s: float = Field(default=120.0, gt=0)
    """Seconds without one finished group, or evaluation, or update of the weights, while the engine fails; then it is
    given up."""
    stall_s: float = Field(default=300.0, gt=0)
    """Seconds for which the rollouts' event loop may stand still, e.g. in a grader that never returns and cannot be
    cancelled, before the run ends with the place where it stands."""
    durations: DurationConfig = DurationConfig()
    """How durations are predicted."""
    tail: TailConfig | None = None
    """Tail batching: tasks predicted to be long wait for a round of their own, which pays where a step waits for its
    slowest group, at max_staleness 0 and 1. None = off."""

    @property
    def bound(self) -> int:
        """The lag that nothing trained ever exceeds."""
        if self.over_age != "keep-corrected":
            return self.max_staleness
        return 2 * self.max_staleness + 1 if self.keep_until is None else self.keep_until

    @property
    def mode(self) -> Mode:
        """The name that seed S4 gives to this setting."""
        if self.max_staleness == 0:
            return "sync"
        if self.weight_updates == "in-flight":
            return "in-flight"
        return "double-buffer" if self.max_staleness == 1 else "bounded"
