"""Rare successes are kept: trajectories that solved a hard task, to be trained on again (B2; seed S3).

    put      a group's successes, if the task's pass rate is at most `hard_below`; per-task quota, no two alike
    verify   the grader looks again before every reuse: what it no longer accepts is dropped, never trained
    take     hardest task first, at most one of a task per step
    rescue   a group that failed as a whole takes one stored success of its task in: it has a gradient again

The buffer stores completions, so what it hands out is off-policy: with `use = "importance"` it is corrected against
the policy that sampled it and ages out; with `use = "anchor"` it is a positive example (cross-entropy), which has no
behaviour policy and may be old. Neither counts as a success of the policy: retirement looks at real rollouts only.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from pydantic import Field

from snoozing_env.config import FrozenConfig
from snoozing_env.types import Group, Trajectory

Verify = Callable[["Success"], bool | None]
"""Whether the grader still accepts a success; None = it could not say, so the entry stays and waits."""


class SuccessConfig(FrozenConfig):
    """Which successes are worth keeping."""

    per_task: int = Field(default=4, ge=1)
    """Trajectories kept of one task; the newest replace the oldest."""
    tasks: int = Field(default=1024, ge=1)
    """Tasks kept; the easiest leave first."""
    hard_below: float = Field(default=0.25, gt=0, le=1)
    """Largest pass rate of a task whose successes are kept; at or above it the entries retire."""
    use: Literal["importance", "anchor"] = "importance"
    """How they are trained on."""
    max_staleness: int = Field(default=32, ge=1)
    """With `importance`: largest lag in weight updates."""
    share: float = Field(default=0.25, gt=0, le=1)
    """Largest share of a batch's groups that stored successes join."""
    threshold: float = Field(default=1.0, gt=0, le=1)
    """Reward at which a rollout is a success."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Success:
    """One stored trajectory."""

    key: str
    trajectory: Trajectory
    pass_rate: float
    """Of the task, from real rollouts, when it was last looked at; orders the buffer."""
    prompt: str = ""
    gold: str = ""
    uses: int = 0

    @property
    def digest(self) -> str:
        """Content of the completion: two equal ones are one."""
        return hashlib.sha256(np.array(self.trajectory.completion_ids, np.int64).tobytes()).hexdigest()


class SuccessBuffer:
    """Successes by task key, hardest first."""

    def __init__(self, config: SuccessConfig) -> None:
        self.config = config
        self._of_task: dict[str, dict[str, Success]] = {}
        self.dropped = 0
        """Entries that the grader no longer accepted."""
        self.retired = 0
        """Entries whose task the policy came to solve often enough."""

    def __len__(self) -> int:
        return sum(map(len, self._of_task.values()))

    @property
    def entries(self) -> tuple[Success, ...]:
        """Hardest task first, newest first within a task."""
        ordered = sorted(self._of_task.items(), key=lambda item: (self._rate(item[0]), item[0]))
        return tuple(s for _, kept in ordered for s in reversed(kept.values()))

    def put(self, group: Group, *, pass_rate: float) -> int:
        """Keep a group's successes; `pass_rate` is the task's estimate from real rollouts. Returns how many are new.

        A group of a task that is not hard (any more) retires what the buffer has of it.
        """
        self.refresh(group.key, pass_rate)
        if pass_rate > self.config.hard_below:
            return 0
        new = 0
        for trajectory in group.trajectories:
            if not trajectory.valid or trajectory.reward < self.config.threshold:
                continue
            success = Success(
                key=group.key,
                trajectory=trajectory,
                pass_rate=pass_rate,
                prompt=group.prompt,
                gold=group.gold,
            )
            kept = self._of_task.setdefault(group.key, {})
            if success.digest in kept:
                continue
            kept[success.digest] = success
            new += 1
            for digest in list(kept)[: max(len(kept) - self.config.per_task, 0)]:
                del kept[digest]
        self._trim()
        return new

    def refresh(self, key: str, pass_rate: float) -> None:
        """A task's newest estimate from real rollouts: reorders its entries or retires them."""
        kept = self._of_task.get(key)
        if kept is None:
            return
        if pass_rate > self.config.hard_below:
            self.retired += len(self._of_task.pop(key))
            return
        self._of_task[key] = {d: replace(s, pass_rate=pass_rate) for d, s in kept.items()}

    def take(self, n: int, *, version: int, verify: Verify) -> list[Success]:
        """Up to n successes of distinct tasks, hardest first, each accepted by the grader just now."""
        if self.config.use == "importance":
            self.expire(version=version)
        taken: list[Success] = []
        for key in sorted(self._of_task, key=lambda k: (self._rate(k), k)):
            if len(taken) == n:
                break
            if (success := self._verified(key, verify)) is not None:
                taken.append(success)
        return taken

    def _verified(self, key: str, verify: Verify) -> Success | None:
        """The task's least used entry that the grader accepts; rejected ones are dropped on the way."""
        for success in sorted(self._of_task[key].values(), key=lambda success: success.uses):
            if self.verified(success, verify(success)):
                return success
        return None

    def candidates(self, key: str, *, version: int) -> list[Success]:
        """A task's entries that may be used at `version`, the least used first; each still to be verified."""
        if self.config.use == "importance":
            self.expire(version=version)
        return sorted(self._of_task.get(key, {}).values(), key=lambda success: success.uses)

    def verified(self, success: Success, verdict: bool | None) -> bool:
        """Take the grader's newest verdict on an entry in; whether it may be used now."""
        kept = self._of_task.get(success.key, {})
        if success.digest not in kept:
            return False
        if verdict is False:
            del kept[success.digest]
            self.dropped += 1
            if not kept:
                del self._of_task[success.key]
        elif verdict:
            kept[success.digest] = replace(success, uses=success.uses + 1)
        return bool(verdict)

    def expire(self, *, version: int) -> int:
        """Forget entries past the age bound; returns how many."""
        gone = 0
        for key, kept in list(self._of_task.items()):
            for digest, success in list(kept.items()):
                if version - success.trajectory.version > self.config.max_staleness:
                    del kept[digest]
                    gone += 1
            if not kept:
                del self._of_task[key]
        return gone

    def _rate(self, key: str) -> float:
        return next(iter(self._of_task[key].values())).pass_rate

    def _trim(self) -> None:
        surplus = len(self._of_task) - self.config.tasks
        if surplus > 0:
            for key in sorted(self._of_task, key=lambda k: (-self._rate(k), k))[:surplus]:
                del self._of_task[key]

    def state(self) -> dict[str, Any]:
        """Counts; the entries are saved beside them."""
        return {"dropped": self.dropped, "retired": self.retired}

    def restore(self, state: Mapping[str, Any], entries: Iterable[Success]) -> None:
        """Continue from `entries` (in the order of `entries`) and `state`."""
        self._of_task = {}
        for success in reversed(list(entries)):
            self._of_task.setdefault(success.key, {})[success.digest] = success
        self.dropped, self.retired = int(state["dropped"]), int(state["retired"])
