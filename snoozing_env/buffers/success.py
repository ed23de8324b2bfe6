"""Rare successes are kept: trajectories that solved a hard task, to be trained on again (B2; seed S3).

    put         a group's successes, if the task's pass rate is at most `hard_below`; per-task quota, no two alike
    next_tasks  tasks to use now: the longest not used first, then the hardest
    candidates ─▶ the grader looks again ─▶ verified: what it no longer accepts is dropped, never trained
    refresh     a task that the policy solves often enough by itself retires

What it hands out is off-policy, and used in one of two ways:

    importance  the task is rolled out again, and where the group fails as a whole the success takes one rollout's place,
                corrected against the policy that sampled it: the group has a gradient again. Ages out.
    anchor      a positive example beside the groups (cross-entropy, a fixed advantage): no behaviour policy, no age, and
                nothing is generated for it

Neither counts as a success of the policy: retirement looks at real rollouts only.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from pydantic import Field

from snoozing_env.config import FrozenConfig
from snoozing_env.types import Group, GroupOutcome, Trajectory


class SuccessConfig(FrozenConfig):
    """Which successes are worth keeping."""

    per_task: int = Field(default=4, ge=1)
    """Trajectories kept of one task; the newest replace the oldest."""
    tasks: int = Field(default=1024, ge=1)
    """Tasks kept; the easiest leave first."""
    hard_below: float = Field(default=0.25, gt=0, le=1)
    """Largest pass rate of a task whose successes are kept; above it the entries retire."""
    use: Literal["importance", "anchor"] = "anchor"
    """How they are trained on; see the head of this module."""
    max_staleness: int = Field(default=32, ge=1)
    """With `importance`: largest lag in weight updates."""
    share: float = Field(default=0.25, gt=0, le=1)
    """Largest share of a batch for them. `importance`: groups that one joins; as many tasks are drawn first. `anchor`: places
    of groups that are not generated but filled with anchors, G to a place."""
    weight: float = Field(default=1.0, gt=0)
    """Advantage of an anchor; that of the one success among eight rollouts is 2.6."""
    threshold: float = Field(default=1.0, gt=0, le=1)
    """Reward in [0, 1] at which a rollout is a success."""


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

    def as_group(self, id: int) -> Group:
        """Alone in a group, as it is saved."""
        t = self.trajectory
        outcome = GroupOutcome(task=0, rewards_G=np.array([t.reward]), version=t.version)
        return Group(
            id=id, key=self.key, outcome=outcome, trajectories=(t,), prompt=self.prompt, gold=self.gold
        )


class SuccessBuffer:
    """Successes by task key, hardest first."""

    def __init__(self, config: SuccessConfig) -> None:
        self.config = config
        self._of_task: dict[str, dict[str, Success]] = {}
        self._turns: dict[str, int] = {}
        """When each task was last named by `next_tasks`, in calls of it."""
        self._turn = 0
        self.dropped = 0
        """Entries that the grader no longer accepted."""
        self.retired = 0
        """Entries whose task the policy came to solve often enough."""

    def __len__(self) -> int:
        return sum(map(len, self._of_task.values()))

    @property
    def tasks_held(self) -> int:
        """Tasks with an entry."""
        return len(self._of_task)

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
        for reward, trajectory in zip(group.own_outcome.rewards_G, group.trajectories, strict=True):
            if not trajectory.valid or reward < self.config.threshold - 1e-6:
                continue
            success = Success(
                key=group.key,
                trajectory=trajectory,
                pass_rate=pass_rate,
                prompt=group.prompt,
                gold=group.gold,
            )
            kept = self._of_task.setdefault(group.key, {})
            old = kept.pop(success.digest, None)
            # The newest of equal ones stays: its behaviour policy is the nearest.
            kept[success.digest] = success if old is None else replace(success, uses=old.uses)
            new += old is None
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
            self.retired += self._forget_task(key)
            return
        self._of_task[key] = {d: replace(s, pass_rate=pass_rate) for d, s in kept.items()}

    def next_tasks(self, n: int, *, version: int) -> list[str]:
        """Up to n keys of tasks to use now, each taking its turn: the longest not named first, then the hardest."""
        self.expire(version=version)
        named = sorted(self._of_task, key=lambda key: (self._turns.get(key, -1), self._rate(key), key))[:n]
        for key in named:
            self._turn += 1
            self._turns[key] = self._turn
        return named

    def candidates(self, key: str, *, version: int) -> list[Success]:
        """A task's entries that may be used at `version`, the least used first; each still to be verified."""
        kept = self._of_task.get(key, {}).values()
        young = [success for success in kept if not self._too_old(success, version)]
        return sorted(young, key=lambda success: success.uses)

    def verified(self, success: Success, verdict: bool | None) -> bool:
        """Take the grader's newest verdict on an entry in; whether it may be used now."""
        kept = self._of_task.get(success.key, {})
        if success.digest not in kept:
            return False
        if verdict is False:
            self._forget(success)
            self.dropped += 1
        elif verdict:
            kept[success.digest] = replace(success, uses=success.uses + 1)
        return bool(verdict)

    def expire(self, *, version: int) -> int:
        """Forget entries past the age bound, of which anchors have none; returns how many."""
        old = [success for success in self.entries if self._too_old(success, version)]
        for success in old:
            self._forget(success)
        return len(old)

    def _too_old(self, success: Success, version: int) -> bool:
        age = version - success.trajectory.version
        return self.config.use == "importance" and age > self.config.max_staleness

    def _forget(self, success: Success) -> None:
        kept = self._of_task[success.key]
        del kept[success.digest]
        if not kept:
            self._forget_task(success.key)

    def _forget_task(self, key: str) -> int:
        self._turns.pop(key, None)
        return len(self._of_task.pop(key))

    def _rate(self, key: str) -> float:
        return next(iter(self._of_task[key].values())).pass_rate

    def _trim(self) -> None:
        surplus = len(self._of_task) - self.config.tasks
        if surplus > 0:
            for key in sorted(self._of_task, key=lambda k: (-self._rate(k), k))[:surplus]:
                self._forget_task(key)

    @property
    def groups(self) -> tuple[Group, ...]:
        """The entries as groups of one, numbered in their order."""
        return tuple(success.as_group(i) for i, success in enumerate(self.entries))

    def state(self) -> dict[str, Any]:
        """JSON-able; the entries are saved beside it."""
        return {
            "dropped": self.dropped,
            "retired": self.retired,
            "turn": self._turn,
            "turns": dict(self._turns),
            "entries": [[success.pass_rate, success.uses] for success in self.entries],
        }

    def restore(self, state: Mapping[str, Any], groups: Iterable[Group]) -> None:
        """Continue from `groups` and `state`."""
        self._of_task = {}
        for group in reversed(list(groups)):
            pass_rate, uses = state["entries"][group.id]
            success = _as_success(group, pass_rate=pass_rate, uses=uses)
            self._of_task.setdefault(success.key, {})[success.digest] = success
        self.dropped, self.retired = int(state["dropped"]), int(state["retired"])
        self._turn = int(state["turn"])
        self._turns = {key: int(turn) for key, turn in state["turns"].items() if key in self._of_task}


def _as_success(group: Group, *, pass_rate: float, uses: int) -> Success:
    return Success(
        key=group.key,
        trajectory=group.trajectories[0],
        pass_rate=pass_rate,
        prompt=group.prompt,
        gold=group.gold,
        uses=uses,
    )
