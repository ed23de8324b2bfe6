"""What a run trains on more than once: replayed groups and stored successes (B1, B2).

    before a step   B − (what can be replayed) fresh groups are asked for
    every group     its rare successes are stored; one that failed as a whole takes a stored success of its task in
    after           replayed groups fill the batch; the fresh ones are kept for later

Neither tells the scheduler anything: it learns from rollouts of the present policy alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from snoozing_env.buffers.replay import ReplayBuffer, ReplayConfig
from snoozing_env.buffers.store import dump_groups, parse_groups
from snoozing_env.buffers.success import Success, SuccessBuffer, SuccessConfig
from snoozing_env.files import write_atomically
from snoozing_env.rollout.loop import StepBatch
from snoozing_env.rollout.runner import GroupRunner
from snoozing_env.schedulers import Curriculum
from snoozing_env.types import Group, GroupOutcome

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
    ) -> None:
        self.replay = None if replay is None else ReplayBuffer(replay, seed=seed)
        self.success = None if success is None else SuccessBuffer(success)
        self._runner, self._scheduler = runner, scheduler
        self.rescued = 0
        """Groups that a stored success gave a gradient since the start of the run."""

    # -- replay -----------------------------------------------------------------------------------------

    def fresh(self, batch: int, *, version: int) -> int:
        """Groups to generate for a batch of B."""
        return batch if self.replay is None else batch - self.replay.available(batch, version=version)

    def complete(self, collected: StepBatch, batch: int) -> StepBatch:
        """The batch with its replayed groups; its fresh ones may be replayed from the next step on."""
        if self.replay is None:
            return collected
        ids = {group.id for group in collected.groups}
        again = self.replay.take(batch - len(collected.groups), version=collected.version, without=ids)
        self.replay.put(collected.groups)
        return replace(collected, groups=(*collected.groups, *again), replayed=len(again))

    # -- successes --------------------------------------------------------------------------------------

    def store(self, group: Group) -> None:
        """Keep what a group of a hard task solved."""
        if self.success is not None:
            rate = float(self._scheduler.difficulty.mean_N()[group.outcome.task])
            self.success.put(group, pass_rate=rate)

    async def rescue(self, group: Group, *, version: int) -> Group | None:
        """A group that failed as a whole, with a stored success of its task, verified just now, in place of its last
        rollout; None where there is nothing to rescue or nothing to do it with."""
        if self.success is None or not _failed(group):
            return None
        for success in self.success.candidates(group.key, version=version):
            verdict = await self._runner.regrade(group.outcome.task, success.trajectory)
            if self.success.verified(success, verdict):
                self.rescued += 1
                return _joined(group, success, anchor=self.success.config.use == "anchor")
        return None

    # -- state ------------------------------------------------------------------------------------------

    def save(self, directory: Path) -> dict[str, Any]:
        """Write the buffers beside the checkpoint; returns the JSON-able rest."""
        state: dict[str, Any] = {"rescued": self.rescued}
        if self.replay is not None:
            write_atomically(directory / REPLAY_FILE, dump_groups(self.replay.groups))
            state["replay"] = self.replay.state()
        if self.success is not None:
            entries = self.success.entries
            write_atomically(
                directory / SUCCESS_FILE, dump_groups([_as_group(i, s) for i, s in enumerate(entries)])
            )
            state["success"] = self.success.state()
            state["entries"] = [[s.pass_rate, s.uses] for s in entries]
        return json.loads(json.dumps(state))

    def load(self, directory: Path, state: Mapping[str, Any], index_of: Mapping[str, int]) -> None:
        """Continue from `save`; a buffer that the checkpoint does not have starts empty."""
        self.rescued = int(state.get("rescued", 0))
        if self.replay is not None and "replay" in state:
            groups = parse_groups((directory / REPLAY_FILE).read_bytes(), index_of)
            self.replay.restore(state["replay"], groups)
        if self.success is not None and "success" in state:
            groups = parse_groups((directory / SUCCESS_FILE).read_bytes(), index_of)
            self.success.restore(state["success"], [_as_success(g, *state["entries"][g.id]) for g in groups])

    def metrics(self) -> Mapping[str, float]:
        found: dict[str, float] = {}
        if self.replay is not None:
            found |= {"replay/held": float(len(self.replay)), "replay/replayed": float(self.replay.replayed)}
        if self.success is not None:
            found |= {
                "success/held": float(len(self.success)),
                "success/dropped": float(self.success.dropped),
                "success/retired": float(self.success.retired),
                "success/rescued": float(self.rescued),
            }
        return found


def _failed(group: Group) -> bool:
    rewards = group.outcome.valid_rewards
    return rewards.size >= 2 and float(rewards.max()) <= 1e-6


def _joined(group: Group, success: Success, *, anchor: bool) -> Group:
    """The group with a success in place of its last valid rollout."""
    valid_G = group.outcome.valid_G
    assert valid_G is not None
    at = int(np.flatnonzero(valid_G)[-1])
    trajectories = list(group.trajectories)
    trajectories[at] = replace(success.trajectory, anchor=anchor)
    rewards_G = group.outcome.rewards_G.copy()
    rewards_G[at] = 1.0
    # The versions stay those of the fresh rollouts: the buffer's age bound is about them, the success has its own.
    return replace(
        group, outcome=replace(group.outcome, rewards_G=rewards_G), trajectories=tuple(trajectories)
    )


def _as_group(id: int, success: Success) -> Group:
    """A stored success as a group of one, for the file."""
    outcome = GroupOutcome(
        task=0, rewards_G=np.array([success.trajectory.reward]), version=success.trajectory.version
    )
    return Group(
        id=id,
        key=success.key,
        outcome=outcome,
        trajectories=(success.trajectory,),
        prompt=success.prompt,
        gold=success.gold,
    )


def _as_success(group: Group, pass_rate: float, uses: int) -> Success:
    return Success(
        key=group.key,
        trajectory=group.trajectories[0],
        pass_rate=pass_rate,
        prompt=group.prompt,
        gold=group.gold,
        uses=int(uses),
    )
