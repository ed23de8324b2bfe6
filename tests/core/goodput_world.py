"""Groups and a clock for the laws of the goodput account."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from snoozing_env.gates import GateConfig
from snoozing_env.types import Group, GroupOutcome, Trajectory

GATE = GateConfig(band=(0.05, 0.9))
MIXED, MAX, MIN, LEVEL = [0.0, 1.0], [1.0, 1.0], [0.0, 0.0], [0.5, 0.5]
OUT_OF_BAND = [0.0, 0.05]


@dataclass
class Clock:
    """A clock that moves when told."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def group(id: int, rewards: Sequence[float] = MIXED, *, tokens: int = 8, valid: Sequence[bool] = ()) -> Group:
    """A group of two rollouts whose first has 3 of the tokens."""
    valid_G = np.array(valid or [True] * len(rewards))
    lengths = (3, tokens - 3)
    trajectories = tuple(
        Trajectory(
            prompt_ids=(1,),
            completion_ids=(2,) * n,
            logprobs=(0.0,) * n,
            mask=(1,) * n,
            reward=r,
            valid=bool(ok),
        )
        for n, r, ok in zip(lengths, rewards, valid_G, strict=True)
    )
    outcome = GroupOutcome(task=0, rewards_G=np.array(rewards), valid_G=valid_G, tokens=tokens)
    return Group(id=id, key="t", outcome=outcome, trajectories=trajectories)


def lost(reading: Mapping[str, float]) -> dict[str, float]:
    """Tokens by cause, where there are some."""
    return {name.split("/")[-1]: v for name, v in reading.items() if name.count("/") == 2 and v}
