"""The simulator decides what the rollout loop decides."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from snoozing_env import build_scheduler
from snoozing_env.buffers.fresh import FreshBuffer
from snoozing_env.errors import SaturationError
from snoozing_env.gates import Ladder
from snoozing_env.rollout.loop import SyncLoop
from snoozing_env.sim.learner import Learner
from snoozing_env.sim.presets import PRESETS
from snoozing_env.sim.run import LoopConfig, simulate
from snoozing_env.types import Group, GroupOutcome


class LearnerRunner:
    """Rolls out on a simulated learner, one group at a time, for the real loop."""

    def __init__(self, world: Learner, rollouts: int) -> None:
        self.world, self.rollouts = world, rollouts
        self.engine = SimpleNamespace(version=0)

    async def run(self, index: int, *, group_id: int, within_s: float | None = None) -> Group:
        rewards = self.world.sample(np.array([index]), self.rollouts)[0]
        outcome = GroupOutcome(task=index, rewards_G=rewards, version=self.engine.version)
        return Group(id=group_id, key=self.world.tasks[index].key, outcome=outcome, trajectories=())


async def rollout_loop(world: Learner, scheduler: Any, config: LoopConfig) -> list[tuple[int, float, float]]:
    runner = LearnerRunner(world, config.rollouts)
    buffer, ladder = FreshBuffer(config.buffer), Ladder(config.ladder)
    loop = SyncLoop(cast(Any, runner), scheduler, buffer, gate=config.gate, ladder=ladder)
    steps: list[tuple[int, float, float]] = []
    for version in range(config.steps):
        try:
            batch = await loop.collect(config.batch, version=version)
        except SaturationError:
            break
        tasks = np.array([g.outcome.task for g in batch.groups])
        world.train(tasks, [g.outcome.rewards_G for g in batch.groups])
        runner.engine.version += 1
        steps.append((batch.generated_groups, batch.survival, float(world.rates_N().mean())))
    return steps


@pytest.mark.parametrize("snooze", [{"mode": "off"}, {"mode": "permanent"}, {"skip_passes": 2}])
@pytest.mark.parametrize("preset", PRESETS)
def test_simulated_steps_and_their_end_are_those_of_the_rollout_loop(
    preset: str, snooze: dict[str, object]
) -> None:
    config = LoopConfig(steps=40, batch=12)

    def fresh() -> tuple[Learner, Any]:
        world = Learner(PRESETS[preset], 1)
        return world, build_scheduler({"snooze": snooze}, world.tasks, 1)

    simulated = [(s.generated, s.survival, s.rate) for s in simulate(*fresh(), config).steps]
    assert simulated == asyncio.run(rollout_loop(*fresh(), config))
