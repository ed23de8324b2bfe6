"""Graders and sandboxes that fail under the asynchronous loop: noticed in bounded time, named, never a zero (A8).

The real group runner over a task set whose grader hangs, loses its box or kills its worker process on demand.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable

import pytest

from snoozing_env.errors import EngineError, LoopError
from snoozing_env.gates import GateConfig, Ladder, LadderConfig
from snoozing_env.pacing import DurationConfig, Durations, Fate, Flight, PacingConfig, Planner
from snoozing_env.rollout.async_loop import AsyncLoop, Watcher
from snoozing_env.rollout.catalogue import Catalogue, EnvironmentConfig, load_catalogue
from snoozing_env.rollout.loop import StepBatch
from snoozing_env.rollout.loop_thread import LoopThread
from snoozing_env.rollout.runner import GroupRunner, RolloutConfig
from snoozing_env.schedulers import build_scheduler
from snoozing_env.testing.clock import run_jumping
from snoozing_env.types import Group
from tests.rollout.scripted import ScriptedEngine

WORDS = tuple(f"w{i}" for i in range(60))
DEADLINE_S = 7.0


class Seen(Watcher):
    """Every group, as it finished or was lost."""

    def __init__(self) -> None:
        self.groups: list[Group] = []
        self.lost_keys: list[str] = []

    def finished(self, group: Group, fate: Fate) -> None:
        self.groups.append(group)

    def lost(self, flight: Flight) -> None:
        self.lost_keys.append(flight.key)


def script(fault: str) -> Callable[[str, int], str]:
    """The first rollout of the task "w0" meets the fault; of the others two of four are right."""

    def reply(prompt: str, k: int) -> str:
        if k == 0 and prompt == "Say w0":
            return fault
        return prompt.removeprefix("Say ") if k % 2 else "mauve"

    return reply


def build(catalogue: Catalogue, engine: ScriptedEngine, seen: Watcher) -> AsyncLoop:
    infos = catalogue.infos
    return AsyncLoop(
        GroupRunner(catalogue, engine, RolloutConfig(group_size=4, deadline_s=DEADLINE_S), seed=0),
        build_scheduler({"kind": "uniform"}, infos, 0),
        Planner(PacingConfig(max_staleness=1), batch=4),
        Durations(DurationConfig(), [None] * len(infos)),
        gate=GateConfig(),
        ladder=Ladder(LadderConfig()),
        keys=tuple(info.key for info in infos),
        watcher=seen,
    )


def publish(loop: AsyncLoop, version: int) -> None:
    loop.runner.engine.set_version(version)  # type: ignore[attr-defined]
    loop.publish(version)


async def steps(loop: AsyncLoop, n: int) -> list[StepBatch]:
    batches = []
    for step in range(n):
        batches.append(await loop.next_batch())
        publish(loop, step + 1)
    await loop.close()
    return batches


def faulty(*, pooled: bool = False) -> Catalogue:
    return load_catalogue(EnvironmentConfig(id="plain-faulty", taskset={"words": WORDS, "pooled": pooled}))


def first_of_victim(seen: Seen) -> Group:
    return next(group for group in seen.groups if group.prompt == "Say w0")


def check_only_the_first_is_invalid(group: Group, reason: str) -> None:
    assert group.outcome.valid_G is not None
    assert group.outcome.valid_G.tolist() == [False, True, True, True]
    assert group.outcome.valid_rewards.tolist() == [1.0, 0.0, 1.0], "and no zero is invented for it"
    assert re.search(reason, group.trajectories[0].error)


@pytest.mark.parametrize(
    ("fault", "reason", "at_most_s"),
    [
        ("hangs", rf"scoring: no verdict within {DEADLINE_S:g} s", DEADLINE_S),
        ("lost", "SandboxError: the box is gone", 0.0),
    ],
)
def test_a_verdict_that_never_comes_costs_its_rollout_and_nothing_else(
    fault: str, reason: str, at_most_s: float
):
    seen = Seen()

    async def program() -> float:
        batches = await steps(build(faulty(), ScriptedEngine(script(fault)), seen), 6)
        assert all(len(batch.groups) == 4 for batch in batches)
        return asyncio.get_running_loop().time()

    assert run_jumping(program()) <= at_most_s, "the whole run waits no longer than for one deadline"
    check_only_the_first_is_invalid(first_of_victim(seen), reason)
    assert len([g for g in seen.groups if g.outcome.valid_G.all()]) >= 22, "the others go on"


def test_a_grading_worker_that_dies_leaves_no_verdict_and_the_next_one_grades():
    seen = Seen()
    loop = build(faulty(pooled=True), ScriptedEngine(script("dies")), seen)
    batches = asyncio.run(steps(loop, 6))
    assert all(len(batch.groups) == 4 for batch in batches)
    check_only_the_first_is_invalid(
        first_of_victim(seen), "TaskError: .*the grading worker ended with crash: .*3"
    )


def test_an_engine_that_is_gone_costs_what_was_in_flight_and_those_tasks_start_again_first():
    seen, engine = Seen(), ScriptedEngine(script("mauve"))
    loop = build(faulty(), engine, seen)

    async def program() -> None:
        await loop.next_batch()
        engine.down = True
        publish(loop, 1)
        await asyncio.sleep(0.1)  # before the pause after a failure is over
        lost, before = list(seen.lost_keys), len(seen.groups)
        engine.down = False
        await loop.next_batch()  # what waited already
        publish(loop, 2)
        await loop.next_batch()
        again = [group.key for group in seen.groups[before:]]
        assert len(lost) == len(set(lost)) == 4
        assert set(lost) <= set(again[:8])
        await loop.close()

    run_jumping(program())
    assert loop.planner.counts.lost == len(seen.lost_keys)
    assert loop.planner.balance() == 0


def test_a_grader_that_blocks_the_loop_ends_the_wait_with_the_place_where_it_stands():
    from plain_faulty import RELEASE

    thread, engine = LoopThread(stall_s=0.5), ScriptedEngine(script("mauve"))

    async def make() -> AsyncLoop:
        return build(faulty(), engine, Seen())

    loop = thread.run(make())
    thread.run(loop.next_batch())
    engine.script = lambda prompt, k: "stalls"

    async def publish_and_wait() -> None:
        publish(loop, 1)
        await asyncio.Event().wait()

    with pytest.raises(LoopError, match=r"has not turned for \d s and stands in .*plain_faulty.py:\d+ "):
        thread.run(publish_and_wait(), every_s=0.02)
    thread.close()  # does not wait for it
    RELEASE.set()


def test_an_interrupted_wait_takes_nothing_and_starts_nothing():
    seen = Seen()
    loop = build(faulty(), ScriptedEngine(script("mauve")), seen)

    async def program() -> None:
        await loop.next_batch()
        publish(loop, 1)
        await asyncio.sleep(1.0)
        step, waiting = loop.planner.step, loop.planner.accepted
        loop.interrupt(EngineError("asked to stop"))
        with pytest.raises(EngineError, match="asked to stop"):
            await loop.next_batch()
        assert (loop.planner.step, loop.planner.accepted) == (step, waiting)
        assert loop.planner.running == ()
        await loop.close()

    run_jumping(program())
