"""CPU of the asynchronous loop with its goodput account, and what importing it pulls in (must-show 9)."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from typing import Any

import numpy as np

from snoozing_env.gates import GateConfig, Ladder, LadderConfig
from snoozing_env.goodput import EngineAccount
from snoozing_env.pacing import DurationConfig, Durations, Fate, PacingConfig, Planner
from snoozing_env.rollout.accounted import AccountedRunner
from snoozing_env.rollout.async_loop import AsyncLoop, Watcher
from snoozing_env.rollout.engines.base import Engine
from snoozing_env.schedulers import build_scheduler
from snoozing_env.types import Group, GroupOutcome, TaskInfo

IN_FLIGHT, GROUP = 256, 8
MIXED = np.array([0.0, 1.0] * (GROUP // 2))


class _Waiting:
    """Rollouts that cost nothing: they only wait their turn."""

    @property
    def engine(self) -> Engine:
        raise NotImplementedError("nothing here asks for an engine")

    async def run(self, index: int, *, group_id: int, within_s: float | None = None) -> Group:
        await asyncio.sleep(0.01)
        outcome = GroupOutcome(task=index, rewards_G=MIXED, duration_s=0.01, tokens=8)
        return Group(id=group_id, key=f"t{index}", outcome=outcome, trajectories=())


class _Books(Watcher):
    """Tells the account, as a run does."""

    def __init__(self, account: EngineAccount) -> None:
        self._account = account

    def finished(self, group: Group, fate: Fate) -> None:
        self._account.finish(group, fate)


def figures(quick: bool) -> dict[str, Any]:
    """Milliseconds of CPU per rollout with 256 groups in flight."""
    seconds, rollouts = asyncio.run(_measure(5 if quick else 100))
    modules = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys, snoozing_env.rollout.async_loop; print(sorted({'torch', 'trl', 'vllm'} & set(sys.modules)))",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    return {
        "ms_cpu_per_rollout": round(1000 * seconds / rollouts, 4),
        "groups_in_flight": IN_FLIGHT,
        "rollouts": rollouts,
        "imported_of_torch_trl_vllm": modules.stdout.strip(),
    }


async def _measure(steps: int) -> tuple[float, int]:
    batch, n = 64, 10_000
    planner = Planner(PacingConfig(max_staleness=8, max_running=IN_FLIGHT), batch=batch)
    account = EngineAccount(GateConfig(), time.monotonic)
    loop = AsyncLoop(
        AccountedRunner(_Waiting(), account),
        build_scheduler({"kind": "uniform"}, [TaskInfo(key=f"t{i}") for i in range(n)], 0),
        planner,
        Durations(DurationConfig(), [None] * n),
        gate=GateConfig(),
        ladder=Ladder(LadderConfig()),
        keys=tuple(f"t{i}" for i in range(n)),
        watcher=_Books(account),
    )
    started = time.process_time()
    for _ in range(steps):
        # The simulated groups are of version 0 all the time; the planner is told so, or they would be too old.
        planner.step = planner.version = 0
        account.train((await loop.next_batch()).groups)
        planner.step = planner.version = 0
    spent = time.process_time() - started
    finished = planner.counts.started - len(planner.running)
    await loop.close()
    return spent, finished * GROUP


if __name__ == "__main__":
    print(json.dumps(figures(quick=True)))
