"""Must-show 4 of the sandbox: many long repair episodes at once, what a turn costs, and one box killed under them."""

from __future__ import annotations

import asyncio
import os
import time
from typing import Any

import docker
from snooze_repair import RepairTask
from snooze_repair.scripted import SUBMIT, Call, repair, shell, view

from tests.bench.bench_sandbox_runs import _cpu_of_boxes
from tests.environments.repair_world import ScriptedModel, environment, playing

TURNS = 20


def figures(quick: bool) -> dict[str, Any]:
    episodes = 12 if quick else 64
    return {
        "together": asyncio.run(_together(episodes)),
        "one box killed": asyncio.run(_one_killed(4 if quick else 16)),
        "boxes left": len(_own_boxes()),
    }


def turns_of(task: RepairTask) -> list[list[Call]]:
    """Twenty turns: look, edit back and forth, run, repair, submit."""
    path = task.bug.edit.path
    around = [[view(path)], [shell(f"grep -n def {path} | head -3")], [shell(f"python3 {path}; ls")]]
    work = [around[n % 3] for n in range(TURNS - 2)]
    return [*work, [repair(task.bug)], [SUBMIT]]


async def _together(episodes: int) -> dict[str, Any]:
    sandbox = {"backend": "docker", "boxes": episodes, "spares": 0}
    env = environment(size=episodes, task={"sandbox": sandbox})
    tasks = list(env.taskset)
    by_prompt = {task.data.prompt: turns_of(task) for task in tasks}
    model = ScriptedModel({"gold": by_prompt.__getitem__})
    opening = time.monotonic()
    client = docker.DockerClient.from_env()
    try:
        async with playing(env, model) as play:
            opened = time.monotonic() - opening
            boxes = await asyncio.to_thread(_cpu_of_boxes, client)
            began, own = time.monotonic(), time.process_time()
            played = await asyncio.gather(*(play(task, "gold") for task in tasks))
            own, wall = time.process_time() - own, time.monotonic() - began
            spent = await asyncio.to_thread(_cpu_of_boxes, client)
            statistics = env.pool.statistics  # type: ignore[attr-defined]
    finally:
        client.close()
    turns = sum(int(episode.traces[0].metrics["turns"] or 0) for episode in played)
    return {
        "episodes": len(played),
        "finished with reward 1": sum(e.ok and e.traces[0].reward == 1.0 for e in played),
        "turns": turns,
        "wall s": round(wall, 1),
        "CPU ms per turn, host process (harness, interception, scripted model)": round(1e3 * own / turns, 2),
        "CPU ms per turn, boxes": round(1e3 * sum(spent[b] - boxes[b] for b in boxes) / turns, 2),
        "boxes opened in s": round(opened, 1),
        "boxes started / replaced": f"{statistics.starts} / {statistics.replaced}",
    }


async def _one_killed(episodes: int) -> dict[str, Any]:
    """A container killed while every episode is under way."""
    sandbox = {"backend": "docker", "boxes": episodes, "spares": 0}
    env = environment(size=episodes, task={"sandbox": sandbox})
    tasks = list(env.taskset)
    by_prompt = {task.data.prompt: [[shell("sleep 4")], *turns_of(task)] for task in tasks}
    model = ScriptedModel({"gold": by_prompt.__getitem__})
    async with playing(env, model) as play:
        running = [asyncio.create_task(play(task, "gold")) for task in tasks]
        while model.requests < episodes:  # noqa: ASYNC110 - a benchmark may look twenty times a second
            await asyncio.sleep(0.05)
        await asyncio.to_thread(lambda: _own_boxes(kill=1))
        played = [await one for one in running]
    lost = [episode for episode in played if not episode.ok]
    return {
        "episodes": len(played),
        "invalid": len(lost),
        "with a reward of 0": sum(e.ok and e.traces[0].reward == 0.0 for e in played),
        "with a reward of 1": sum(e.ok and e.traces[0].reward == 1.0 for e in played),
        "recorded as": sorted({error.type for episode in lost for error in episode.traces[0].errors}),
    }


def _own_boxes(kill: int = 0) -> list[str]:
    """Containers of this process, of which some are killed as an operator might."""
    client = docker.DockerClient.from_env()
    try:
        mine = client.containers.list(filters={"label": f"snoozing.owner.pid={os.getpid()}"})
        for container in mine[:kill]:
            container.kill()
        return [str(container.id) for container in mine]
    finally:
        client.close()
