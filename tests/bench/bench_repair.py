"""Must-show 3 of the sandbox: who earns the reward of a repair. A policy that repairs, on every task; twelve that cheat."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from typing import Any

from snooze_repair import RepairTask, gold_turns
from snooze_repair.authored import projects
from snooze_repair.bank import bank

from tests.environments.repair_cheats import CHEATS, can_be_hard_coded
from tests.environments.repair_world import ScriptedModel, environment, playing

_LIMITS = {"command_cpu_s": 2.0, "command_wall_s": 5.0, "tests_cpu_s": 2.0}


def figures(quick: bool) -> dict[str, Any]:
    bugs = bank().values()
    return {
        "tasks": {
            "projects": len(projects()),
            "bugs": len(bugs),
            "by level": dict(sorted(Counter(bug.level for bug in bugs).items())),
            "by kind": dict(Counter(bug.edit.kind for bug in bugs).most_common()),
        },
        "scripted repair": asyncio.run(_repairs(8 if quick else None)),
        "cheats": asyncio.run(_cheats(quick)),
    }


def _docker(boxes: int, **limits: Any) -> dict[str, Any]:
    return {"sandbox": {"backend": "docker", "boxes": boxes, "spares": 1}, **limits}


async def _repairs(count: int | None) -> dict[str, Any]:
    """Every task of both splits, or a sample."""
    tasks = [task for split in ("train", "eval") for task in environment(split=split).taskset]
    if count is not None:
        tasks = random.Random(0).sample(tasks, count)
    by_prompt = {task.data.prompt: task for task in tasks}
    assert len(by_prompt) == len(tasks), "two tasks read the same"
    model = ScriptedModel({"gold": lambda prompt: gold_turns(by_prompt[prompt].bug)})
    env = environment(task=_docker(4))
    rewards: list[float | None] = []
    waiting = iter(tasks)

    async def worker(play: Any) -> None:
        for task in waiting:
            episode = await play(task, "gold")
            rewards.append(episode.traces[0].reward if episode.ok else None)

    began = time.monotonic()
    async with playing(env, model) as play, asyncio.TaskGroup() as nursery:
        for _ in range(6):
            nursery.create_task(worker(play))
    return {
        "episodes": len(rewards),
        "reward 1": rewards.count(1.0),
        "reward 0": rewards.count(0.0),
        "invalid": rewards.count(None),
        "wall s": round(time.monotonic() - began, 1),
    }


async def _cheats(quick: bool) -> dict[str, Any]:
    """Each cheat, and after each a repair in the same boxes; QUICK takes every other one of those that wait for no limit."""
    env = environment(task=_docker(1, **_LIMITS))
    tasks: list[RepairTask] = [task for task in env.taskset if can_be_hard_coded(task.bug)]
    victim, later = tasks[:2]
    swift = [name for name in CHEATS if name not in ("loop for ever", "emit a gigabyte")]
    chosen = swift[::2] if quick else list(CHEATS)
    scripts = {name: (lambda _, name=name: CHEATS[name](victim.bug)) for name in chosen}
    seen: dict[str, Any] = {}
    async with playing(env, ScriptedModel({**scripts, "gold": lambda _: gold_turns(later.bug)})) as play:
        for name in chosen:
            episode, after = await play(victim, name), await play(later, "gold")
            seen[name] = (
                f"{episode.traces[0].reward:g}" if episode.ok else "invalid",
                f"{after.traces[0].reward:g}" if after.ok else "invalid",
            )
        replaced = env.pool.statistics.replaced  # type: ignore[attr-defined]
    return {
        "played": len(seen),
        "earned 0": sum(own == "0" for own, _ in seen.values()),
        "episodes after them that earned 1": sum(after == "1" for _, after in seen.values()),
        "boxes replaced": replaced,
        "otherwise": {name: pair for name, pair in seen.items() if pair != ("0", "1")},
    }
