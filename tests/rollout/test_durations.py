"""Expected durations on their way from a task set to the order of dispatch (A3)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import numpy as np
import pytest

from snoozing_env.gates import GateConfig, Ladder, LadderConfig
from snoozing_env.pacing import DurationConfig, Durations, PacingConfig, Planner
from snoozing_env.rollout.async_loop import AsyncLoop
from snoozing_env.rollout.catalogue import Catalogue, EnvironmentConfig, load_catalogue
from snoozing_env.schedulers import build_scheduler
from snoozing_env.testing.clock import run_jumping
from snoozing_env.types import Group, GroupOutcome


def load(name: str, **taskset: object) -> Catalogue:
    return load_catalogue(EnvironmentConfig(id=name, taskset=taskset))


def test_repair_expects_longer_episodes_of_harder_bugs():
    catalogue = load("snooze-repair", turn_s=2.0)
    seconds: dict[str, set[float]] = {}
    for domain, info in zip(catalogue.domains, catalogue.infos, strict=True):
        assert info.duration_s is not None
        seconds.setdefault(domain, set()).add(info.duration_s)
    means = [np.mean(list(seconds[level])) for level in sorted(seconds)]
    assert means == sorted(set(means))
    assert min(means) > 2.0


def test_code_expects_longer_replies_where_the_reference_is_longer():
    catalogue = load("snooze-code", line_s=0.5)
    lines = [len(task.data.answer.splitlines()) for task in catalogue.tasks]  # type: ignore[attr-defined]
    assert [info.duration_s for info in catalogue.infos] == [0.5 * n for n in lines]
    assert max(lines) > 3 * min(lines)


@dataclass
class Recorder:
    started: list[int] = field(default_factory=list)

    async def run(self, index: int, *, group_id: int, within_s: float | None = None) -> Group:
        self.started.append(index)
        await asyncio.sleep(1.0)
        outcome = GroupOutcome(task=index, rewards_G=np.array([0.0, 1.0]), duration_s=1.0)
        return Group(id=group_id, key=str(index), outcome=outcome, trajectories=())


@pytest.mark.parametrize("name", ["snooze-repair", "snooze-code"])
def test_of_the_tasks_that_are_drawn_together_the_longest_start_first(name: str):
    infos = load(name).infos
    seconds = [info.duration_s for info in infos]
    runner = Recorder()
    loop = AsyncLoop(
        runner,
        build_scheduler({"kind": "uniform"}, infos, 0),
        Planner(PacingConfig(), batch=12),
        Durations(DurationConfig(), seconds),
        gate=GateConfig(),
        ladder=Ladder(LadderConfig()),
        keys=tuple(info.key for info in infos),
    )

    async def program() -> None:
        await loop.next_batch()
        await loop.close()

    run_jumping(program())
    first = [seconds[task] or 0.0 for task in runner.started[:12]]
    assert first == sorted(first, reverse=True)
    assert first[0] > first[-1]
