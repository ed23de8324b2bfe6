"""What a run trains on more than once: replayed groups and stored successes (B1, B2).

    before a step   fewer groups are asked for: some will be replayed, some places are for anchors; tasks whose stored
                    success may join their group are drawn first
    every group     its rare successes are stored; one that failed as a whole takes a stored success of its task in
    after           replayed groups and anchors fill the batch; the fresh groups are kept for later, but for those with a
                    stored success: a success is verified before every use

Neither tells the scheduler anything: it learns from rollouts of the present policy alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from snoozing_env.buffers.base import Buffer
from snoozing_env.buffers.replay import ReplayBuffer, ReplayConfig
from snoozing_env.buffers.store import dump_groups, parse_groups
from snoozing_env.buffers.success import Success, SuccessBuffer, SuccessConfig
from snoozing_env.files import write_atomically
from snoozing_env.rollout.loop import StepBatch
from snoozing_env.rollout.runner import GroupRunner
from snoozing_env.schedulers import Curriculum
from snoozing_env.types import Group, Trajectory

REPLAY_FILE = "replay.parquet"
SUCCESS_FILE = "success.parquet"


class Reuse:
    """Both buffers of a run, either of which may be off."""

    def __init__(
        self,
        replay: ReplayConfig | None,
        success: SuccessConfig | None,
        *,
        runner: GroupRunner,
        scheduler: Curriculum,
        seed: int,
        batch: int,
        group_size: int,
        wait: int = 0,
    ) -> None:
        """`batch` B groups of `group_size` G a step; `wait` is how many versions may pass between a finished group and its step."""
        self._kept = 0
        """Places of the step in progress that are kept for anchors."""
        self._places = 0 if success is None else max(int(success.share * batch + 1e-9), 1)
        self._wait, self._group_size = wait, group_size
        self._joined: dict[int, int] = {}
        """Groups with a stored success that wait for their step, by id: the version they were made for."""
        self.replay = None if replay is None else ReplayBuffer(replay, seed=seed)
        self.success = None if success is None else SuccessBuffer(success)
        self._runner, self._scheduler = runner, scheduler
        self._index_of = {task.key: i for i, task in enumerate(scheduler.tasks)}
        self.rescued = 0
        """Groups that a stored success gave a gradient since the start of the run."""
        self.anchored_rows = 0
        """Anchors trained since the start of the run."""

    # -- a step -----------------------------------------------------------------------------------------

    def open(self, batch: int, *, version: int) -> int:
        """Groups to generate for a batch of B: at least one, for what is replayed or stored alone teaches nothing new.

        The scheduler is asked to offer tasks whose stored success may join their group first.
        """
        self._revisit(version)
        again = 0 if self.replay is None else self.replay.available(batch, version=version)
        self._kept = self._anchor_places()
        return max(batch - again - self._kept, 1)

    async def complete(self, collected: StepBatch, batch: int) -> StepBatch:
        """The batch with its replayed groups and its anchors, verified just now."""
        for group in collected.groups:
            self._joined.pop(group.id, None)
        return await self._anchored(self._replayed(collected, batch), batch)

    def _replayed(self, collected: StepBatch, batch: int) -> StepBatch:
        """Groups of earlier steps in the places left; those of this one may be replayed from the next step on."""
        if self.replay is None:
            return collected
        ids = {group.id for group in collected.groups}
        places = batch - self._kept - len(collected.groups)
        again = self.replay.take(max(places, 0), version=collected.version, without=ids)
        self.replay.put(g for g in collected.groups if not any(t.stored for t in g.trajectories))
        return replace(collected, groups=(*collected.groups, *again), replayed=len(again))

    async def _anchored(self, batch: StepBatch, size: int) -> StepBatch:
        """Anchors in the places that are left, up to their share."""
        room = min(self._places, size - len(batch.groups))
        if self.success is None or self.success.config.use != "anchor" or room <= 0:
            return batch
        weight, anchors = self.success.config.weight, list[Trajectory]()
        for key in self.success.next_tasks(room * self._group_size, version=batch.version):
            for success in self.success.candidates(key, version=batch.version):
                if await self._accepted(success) is not None:
                    anchors.append(replace(success.trajectory, stored=True, anchor=weight))
                    break
        self.anchored_rows += len(anchors)
        return replace(batch, anchors=tuple(anchors))

    def _anchor_places(self) -> int:
        """Places to keep for anchors: as many as the share allows and there are tasks for."""
        if self.success is None or self.success.config.use != "anchor":
            return 0
        return min(self._places, -(-self.success.tasks_held // self._group_size))

    # -- successes --------------------------------------------------------------------------------------

    async def _accepted(self, success: Success) -> float | None:
        """The reward that the grader gives a stored success now; None where it does not accept it or cannot say."""
        assert self.success is not None
        reward = await self._runner.regrade(self._index_of[success.key], success.trajectory)
        verdict = None if reward is None else reward >= self.success.config.threshold - 1e-6
        return reward if self.success.verified(success, verdict) else None

    def store(self, group: Group) -> None:
        """Keep what a group of a hard task solved."""
        if self.success is not None:
            # The running mean of what was seen. A posterior would hold a prior against the first success of a hard task.
            rate = float(self._scheduler.difficulty.ema_N[group.outcome.task])
            self.success.put(group, pass_rate=rate)

    def _revisit(self, version: int) -> None:
        if self.success is None or self.success.config.use != "importance":
            return
        named = self.success.next_tasks(self._places, version=version)
        for key in reversed(named):
            self._scheduler.offer(self._index_of[key])

    async def rescue(self, group: Group, *, version: int) -> Group | None:
        """A group that failed as a whole, with a stored success of its task, verified just now, in place of its last
        rollout; None where there is nothing to rescue, nothing to do it with, or no place left in the batch."""
        if self.success is None or self.success.config.use != "importance" or not _failed(group):
            return None
        if not self._place(version):
            return None
        for success in self.success.candidates(group.key, version=version + self._wait):
            reward = await self._accepted(success)
            if reward is not None and self._place(version):
                self.rescued += 1
                self._joined[group.id] = version
                return _joined(group, success, reward)
        return None

    def _place(self, version: int) -> bool:
        """Whether one more group with a stored success may wait for its step."""
        self._joined = {id: made for id, made in self._joined.items() if version - made <= self._wait}
        return len(self._joined) < self._places

    # -- state ------------------------------------------------------------------------------------------

    def save(self, directory: Path) -> dict[str, Any]:
        """Write the buffers beside the checkpoint; returns the JSON-able rest."""
        state: dict[str, Any] = {
            "rescued": self.rescued,
            "anchored": self.anchored_rows,
            "joined": list(self._joined.items()),
        }
        for name, (file, buffer) in self._buffers().items():
            write_atomically(directory / file, dump_groups(buffer.groups))
            state[name] = buffer.state()
        return json.loads(json.dumps(state))

    def load(self, directory: Path, state: Mapping[str, Any], index_of: Mapping[str, int]) -> None:
        """Continue from `save`; a buffer that the checkpoint does not have starts empty."""
        self.rescued, self.anchored_rows = int(state.get("rescued", 0)), int(state.get("anchored", 0))
        self._joined = {int(id): int(version) for id, version in state.get("joined", ())}
        for name, (file, buffer) in self._buffers().items():
            if name in state:
                buffer.restore(state[name], parse_groups((directory / file).read_bytes(), index_of))

    def _buffers(self) -> dict[str, tuple[str, Buffer]]:
        """Those that are on, and the files they are saved in."""
        both = {"replay": (REPLAY_FILE, self.replay), "success": (SUCCESS_FILE, self.success)}
        return {name: (file, buffer) for name, (file, buffer) in both.items() if buffer is not None}

    def metrics(self) -> dict[str, float]:
        """What each buffer that is on holds, and its counts since the start."""
        found: dict[str, float] = {}
        if self.replay is not None:
            found |= {"replay/held": float(len(self.replay)), "replay/replayed": float(self.replay.replayed)}
        if self.success is not None:
            found |= {
                "success/held": float(len(self.success)),
                "success/dropped": float(self.success.dropped),
                "success/retired": float(self.success.retired),
                "success/rescued": float(self.rescued),
                "success/anchored": float(self.anchored_rows),
            }
        return found


def _failed(group: Group) -> bool:
    rewards = group.outcome.valid_rewards
    return rewards.size >= 2 and float(rewards.max()) <= 1e-6


def _joined(group: Group, success: Success, reward: float) -> Group:
    """The group with a success in place of its last valid rollout."""
    valid_G = group.outcome.valid_G
    assert valid_G is not None
    at = int(np.flatnonzero(valid_G)[-1])
    trajectories = list(group.trajectories)
    trajectories[at] = replace(success.trajectory, stored=True)
    rewards_G = group.outcome.rewards_G.copy()
    rewards_G[at] = reward
    # The versions stay those of the fresh rollouts: the buffer's age bound is about them, the success has its own.
    return replace(
        group, outcome=replace(group.outcome, rewards_G=rewards_G), trajectories=tuple(trajectories)
    )
