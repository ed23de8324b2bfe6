"""What only walls can show: verified bugs, repairs that earn the reward, cheats that do not and harm nobody."""

from __future__ import annotations

import asyncio
import os
import random

import docker
import pytest
from snooze_repair import gold_turns
from snooze_repair.authored import projects
from snooze_repair.bank import Bug, bank
from snooze_repair.grading import failures, grade
from snooze_repair.inject import bugs_of
from snooze_repair.scripted import SUBMIT, shell
from snooze_repair.taskset import RepairTask
from snoozing_sandboxes import Pool, open_pool

from tests.conftest import engine_missing
from tests.environments.repair_cheats import CHEATS, can_be_hard_coded
from tests.environments.repair_world import DOCKER, ScriptedModel, environment, playing

pytestmark = pytest.mark.docker

QUICK_LIMITS = {**DOCKER, "command_cpu_s": 2.0, "command_wall_s": 5.0, "tests_cpu_s": 2.0}


@pytest.fixture(autouse=True)
def _engine() -> None:
    if why := engine_missing():
        pytest.skip(why)


def kill_own_boxes(count: int | None = None) -> None:
    """Remove containers that this process owns, as an operator might."""
    client = docker.DockerClient.from_env()
    try:
        mine = client.containers.list(filters={"label": f"snoozing.owner.pid={os.getpid()}"})
        for container in mine[:count]:
            container.kill()
    finally:
        client.close()


def sample(count: int, *, seed: int = 1) -> list[Bug]:
    return random.Random(seed).sample(list(bank().values()), count)


def test_every_working_program_keeps_its_own_promises() -> None:
    async def run() -> dict[str, tuple[tuple[str, str], ...]]:
        async with open_pool(boxes=2, spares=0) as pool:
            graded = {name: await grade(pool, project, project.files) for name, project in projects().items()}
        assert all(
            one.passed == len(projects()[name].checks.blocks) for name, one in graded.items() if one.ok
        )
        return {name: one.details for name, one in graded.items() if not one.ok}

    assert asyncio.run(run()) == {}


def test_a_sample_of_the_bank_breaks_exactly_what_the_bank_says() -> None:
    async def run() -> None:
        async with open_pool(boxes=2, spares=0) as pool:
            for bug in sample(24):
                seen = failures(await grade(pool, bug.home(), bug.files()))
                assert seen is not None, bug.id
                assert tuple(one.block for one in seen) == bug.fails, bug.id
                assert bug.shown in seen, bug.id

    asyncio.run(run())


def test_the_injection_repeats_under_its_seed() -> None:
    async def run() -> tuple[list[Bug], list[Bug]]:
        async with open_pool(boxes=2, spares=0) as pool:
            project = projects()["lru_cache"]
            return await bugs_of(pool, project, seed=0, keep=6), await bugs_of(pool, project, seed=0, keep=6)

    first, again = asyncio.run(run())
    assert first == again
    assert {bug.id for bug in first} <= set(bank())


def test_the_scripted_repair_earns_the_reward_on_a_sample_of_all_levels() -> None:
    tasks = {
        task.data.prompt: task for split in ("train", "eval") for task in environment(split=split).taskset
    }
    chosen = random.Random(3).sample(list(tasks.values()), 20)
    chosen += [next(task for task in tasks.values() if task.data.level == level) for level in (1, 2, 3, 4, 5)]
    model = ScriptedModel({"gold": lambda prompt: gold_turns(tasks[prompt].bug)})

    async def run() -> dict[str, float]:
        async with playing(environment(task=DOCKER), model) as play:
            episodes = [await play(task, "gold") for task in chosen]
        assert all(episode.ok for episode in episodes)
        return {episode.traces[0].task.data.id: episode.traces[0].reward for episode in episodes}

    assert set(asyncio.run(run()).values()) == {1.0}


@pytest.mark.parametrize("name", CHEATS)
def test_a_cheat_earns_nothing_and_harms_no_later_episode(name: str) -> None:
    env = environment(task=QUICK_LIMITS)
    assert env.config.taskset.task.sandbox.backend == "docker", "never without walls"
    tasks = [task for task in env.taskset if can_be_hard_coded(task.bug)]
    victim, later = tasks[:2]
    scripts = {
        "cheat": lambda _: CHEATS[name](victim.bug),
        "gold": lambda _: gold_turns(later.bug),
    }

    async def run() -> None:
        async with playing(env, ScriptedModel(scripts)) as play:
            episode = await play(victim, "cheat")
            assert episode.ok, episode.errors
            assert episode.traces[0].reward == 0.0
            assert episode.traces[0].info["repair"]["ended"] == "submitted"
            await assert_clean(env.pool)
            after = await play(later, "gold")
            assert (after.ok, after.traces[0].reward) == (True, 1.0)

    asyncio.run(run())


async def assert_clean(pool: Pool) -> None:
    """Every box of the pool: nothing lies in it, nothing of another runs in it."""
    async with pool.box() as one, pool.box() as other:
        for box in (one, other):
            seen = await box.run_shell(
                "find /box /tmp /dev/shm -mindepth 1 | head -5; ls /proc | grep -c '^[0-9]'"
            )
            assert seen.ok
            assert int(seen.stdout.split()[-1]) <= 7, seen.stdout
            assert len(seen.stdout.split()) == 1, seen.stdout


def test_the_hard_coded_example_passes_its_own_promise_or_at_least_more_than_before() -> None:
    """Otherwise that cheat would prove nothing."""
    bug = next(bug for bug in bank().values() if can_be_hard_coded(bug))
    [[written], _] = CHEATS["hard-code the visible example"](bug)
    files = {**bug.files(), written.arguments["path"]: written.arguments["content"]}

    async def run() -> None:
        async with open_pool(boxes=1, spares=0) as pool:
            seen = failures(await grade(pool, bug.home(), files))
        assert seen, "the rest is still broken"
        assert bug.shown not in seen

    asyncio.run(run())


def test_a_box_killed_under_an_episode_makes_it_invalid_and_the_pool_goes_on() -> None:
    env = environment(task=DOCKER)
    victim: RepairTask = next(iter(env.taskset))
    model = ScriptedModel(
        {"slow": lambda _: [[shell("sleep 20")], [SUBMIT]], "gold": lambda _: gold_turns(victim.bug)}
    )

    async def run() -> None:
        async with playing(env, model) as play:
            episode = asyncio.create_task(play(victim, "slow"))
            await model.asked.wait()
            await asyncio.to_thread(kill_own_boxes)
            lost = await episode
            assert not lost.ok
            assert lost.traces[0].rewards == {}
            assert lost.traces[0].errors[0].type == "SandboxError"
            after = await play(victim, "gold")
            assert after.traces[0].reward == 1.0

    asyncio.run(run())
