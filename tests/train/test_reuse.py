"""Replayed groups and stored successes in a run of the lab policy."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from snoozing_env.buffers.replay import ReplayBuffer, ReplayConfig
from snoozing_env.buffers.success import SuccessConfig
from snoozing_env.pacing.ledger import FILE_NAME as LEDGER
from snoozing_env.pacing.ledger import audit, read_ledger
from snoozing_env.report.runlog import FILE_NAME, StepRecord, read
from snoozing_env.rollout.loop import StepBatch
from snoozing_env.schedulers import build_scheduler
from snoozing_env.train.recipe import Recipe
from snoozing_env.train.reuse import Reuse
from snoozing_env.train.run import RunOptions, train
from snoozing_env.types import Group, GroupOutcome, TaskInfo, Trajectory
from tests.train.killing import differences, run_to_the_end, run_with_kills, trail_of
from tests.train.small import small_recipe


def run(made: Recipe) -> list[StepRecord]:
    train(made, RunOptions(), console=Console(file=io.StringIO()))
    return [record for record in read(made.directory / FILE_NAME) if isinstance(record, StepRecord)]


def test_replay_halves_what_is_generated_and_trains_as_many_groups(tmp_path: Path):
    plain = run(small_recipe(tmp_path / "plain"))
    replayed = run(small_recipe(tmp_path / "replayed", replay={"fresh": 0.5}))
    assert sum(s.trained_groups for s in replayed) >= sum(s.trained_groups for s in plain) > 40
    tokens = [sum(s.generated_tokens or 0 for s in steps[1:]) for steps in (plain, replayed)]
    assert tokens[1] < 0.75 * tokens[0]
    assert max(s.lag_mean or 0.0 for s in replayed) > 0
    stale = [s.ratio_mean for s in replayed if s.lag_mean and s.ratio_mean is not None]
    assert any(abs(ratio - 1.0) > 1e-6 for ratio in stale), (
        "replayed rows are corrected for the policy that made them"
    )
    drifted = [s for s in replayed if s.replayed_groups]
    assert sum(s.replayed_groups or 0 for s in drifted) >= 12
    assert all((s.ratio_distance or {})["replayed"] > 1e-4 for s in drifted)
    assert all(0 <= (s.clipped or {})["replayed"] < 1 for s in drifted)
    assert all(s.replayed_groups is None and set(s.ratio_distance or {}) == {"fresh"} for s in plain)


def test_a_run_with_replay_is_the_same_after_kills(tmp_path: Path):
    reuse: dict[str, Any] = {"replay": {"fresh": 0.5}, "success": {"hard_below": 0.5}}
    whole, killed = small_recipe(tmp_path / "whole", **reuse), small_recipe(tmp_path / "killed", **reuse)
    run_to_the_end(whole)
    assert len(list(run_with_kills(killed, kills=2, seed=3))) == 2
    assert differences(trail_of(whole), trail_of(killed)) == []


@pytest.mark.parametrize("use", ["anchor", "importance"])
def test_both_buffers_serve_a_run_that_generates_ahead(tmp_path: Path, use: str):
    made = small_recipe(
        tmp_path / "ahead",
        replay={"fresh": 0.5},
        success={"use": use, "hard_below": 0.9, "share": 0.5},
        pacing={"max_staleness": 2},
        engine={"own_weights": True},
    )
    last = run(made)[-1]
    assert last.step == 12
    assert (last.buffers or {})["replay/replayed"] > 0
    used = {"anchor": "success/anchored", "importance": "success/rescued"}
    assert (last.buffers or {})[used[use]] >= (1 if use == "anchor" else 0)
    assert audit(read_ledger(made.directory / LEDGER), bound=2) == []


# -- rescue -------------------------------------------------------------------------------------------------


def rolled(reward: float, token: int, version: int = 0) -> Trajectory:
    return Trajectory(
        prompt_ids=(1,), completion_ids=(token,), logprobs=(-1.0,), mask=(1,), reward=reward, version=version
    )


def group(id: int, *rewards: float, version: int = 0) -> Group:
    trajectories = tuple(rolled(r, 10 * id + i, version) for i, r in enumerate(rewards))
    outcome = GroupOutcome(task=0, rewards_G=np.array(rewards), version=version)
    return Group(id=id, key="hard", outcome=outcome, trajectories=trajectories)


class Grader:
    """Grades again with a fixed opinion."""

    def __init__(self, opinion: Callable[[Trajectory], bool | None]) -> None:
        self.opinion = opinion

    async def regrade(self, index: int, trajectory: Trajectory) -> float | None:
        verdict = self.opinion(trajectory)
        return None if verdict is None else float(verdict)


def reuse(opinion: Callable[[Trajectory], bool | None], **config: Any) -> Reuse:
    scheduler = build_scheduler({"kind": "uniform"}, [TaskInfo(key="hard", difficulty_prior=0.05)], 0)
    made = SuccessConfig(**{"use": "importance", **config})
    grader: Any = Grader(opinion)
    return Reuse(None, made, runner=grader, scheduler=scheduler, seed=0, batch=8, group_size=4, wait=1)


def rescued(kept: Reuse, failed: Group, version: int = 1) -> Group | None:
    return asyncio.run(kept.rescue(failed, version=version))


def test_a_group_that_failed_as_a_whole_takes_a_stored_success_of_its_task_in():
    kept = reuse(lambda trajectory: True)
    kept.store(group(0, 0.0, 1.0, 0.0))
    failed = group(1, 0.0, 0.0, 0.0, version=1)
    joined = rescued(kept, failed)
    assert joined is not None
    assert joined.outcome.rewards_G.tolist() == [0.0, 0.0, 1.0]
    assert joined.trajectories[2] == replace(rolled(1.0, 1), stored=True)
    assert joined.outcome.version == 1
    assert joined.own_outcome.rewards_G.tolist() == [0.0, 0.0, 0.0], "the policy itself did not solve it"
    assert kept.rescued == 1


def test_groups_that_have_a_gradient_or_no_stored_success_stay_as_they_are():
    kept = reuse(lambda trajectory: True)
    assert rescued(kept, group(1, 0.0, 0.0)) is None
    kept.store(group(0, 0.0, 1.0))
    assert rescued(kept, group(2, 0.0, 1.0)) is None
    assert rescued(kept, group(3, 1.0, 1.0)) is None


def test_a_poisoned_success_is_dropped_and_one_that_cannot_be_graded_waits():
    poisoned = reuse(lambda trajectory: False)
    poisoned.store(group(0, 0.0, 1.0))
    assert rescued(poisoned, group(1, 0.0, 0.0)) is None
    assert poisoned.metrics()["success/dropped"] == 1.0
    assert poisoned.metrics()["success/held"] == 0.0
    waiting = reuse(lambda trajectory: None)
    waiting.store(group(0, 0.0, 1.0))
    assert rescued(waiting, group(1, 0.0, 0.0)) is None
    assert waiting.metrics()["success/held"] == 1.0


def test_importance_ages_out_before_a_group_could_be_trained_too_late():
    kept = reuse(
        lambda trajectory: True, use="importance", max_staleness=4
    )  # of these, one version may pass in waiting
    kept.store(group(0, 0.0, 1.0))
    assert rescued(kept, group(1, 0.0, 0.0), version=4) is None
    assert rescued(kept, group(1, 0.0, 0.0), version=3) is not None


# -- anchors ------------------------------------------------------------------------------------------------


def many(opinion: Callable[[Trajectory], bool | None], stored: int, **config: Any) -> Reuse:
    """Twenty hard tasks, some with a stored success; batches of 4 groups of 4, half of the places for anchors."""
    tasks = [TaskInfo(key=f"t{i}", difficulty_prior=0.05) for i in range(20)]
    scheduler = build_scheduler({"kind": "uniform"}, tasks, 0)
    grader: Any = Grader(opinion)
    made = SuccessConfig(use="anchor", share=0.5, **config)
    kept = Reuse(None, made, runner=grader, scheduler=scheduler, seed=0, batch=4, group_size=4)
    for task in range(stored):
        found = replace(group(task, 0.0, 1.0), key=f"t{task}")
        kept.store(replace(found, outcome=replace(found.outcome, task=task)))
    return kept


def test_anchors_take_places_that_nothing_is_generated_for():
    assert [many(lambda t: True, n).open(4, version=1) for n in (0, 1, 4, 5, 20)] == [4, 3, 3, 2, 2]
    kept = many(lambda t: True, 20)
    whole = asyncio.run(kept.complete(batch_of(group(30, 0.0, 1.0), group(31, 0.0, 1.0)), 4))
    assert len(whole.anchors) == 8
    assert all(t.stored and t.anchor == 1.0 and t.reward == 1.0 for t in whole.anchors)
    assert len({t.completion_ids for t in whole.anchors}) == 8, "one of a task, and no two alike"
    assert [g.id for g in whole.to_train] == [30, 31, -1]
    assert kept.metrics()["success/anchored"] == 8.0


@pytest.mark.parametrize("groups", [1, 2, 3, 4])
def test_a_batch_has_no_more_rows_than_places_whatever_was_stored_since_it_was_opened(groups: int):
    kept = many(lambda t: True, 0)
    kept.replay = ReplayBuffer(ReplayConfig(fresh=0.25), seed=0)
    kept.replay.put(group(100 + i, 0.0, 1.0) for i in range(9))
    assert kept.open(4, version=1) == 1
    for task in range(20):
        found = replace(group(task, 0.0, 1.0), key=f"t{task}")
        kept.store(replace(found, outcome=replace(found.outcome, task=task)))
    collected = batch_of(*(group(30 + i, 0.0, 1.0) for i in range(groups)))
    whole = asyncio.run(kept.complete(collected, 4))
    assert 4 * len(whole.groups) + len(whole.anchors) == 16
    assert kept.open(4, version=2) == 1, "something new is always generated"
    assert 4 * len(asyncio.run(kept.complete(batch_of(group(50, 0.0, 1.0)), 4)).groups) == 8


def test_every_stored_success_has_its_turn_as_an_anchor_however_old():
    kept = many(lambda t: True, 20, weight=0.5)
    batches = [
        asyncio.run(kept.complete(batch_of(group(30, 0.0, 1.0), version=v), 4)) for v in (100, 101, 102)
    ]
    assert len({t.completion_ids for batch in batches for t in batch.anchors}) == 20
    assert {t.anchor for batch in batches for t in batch.anchors} == {0.5}


def test_a_poisoned_anchor_is_dropped_and_never_trained():
    kept = many(lambda trajectory: trajectory.completion_ids != (31,), 4)  # of task 3
    whole = asyncio.run(kept.complete(batch_of(group(30, 0.0, 1.0)), 4))
    assert len(whole.anchors) == 3
    assert (31,) not in {t.completion_ids for t in whole.anchors}
    assert kept.metrics()["success/dropped"] == 1.0


def test_both_buffers_come_back_from_their_files(tmp_path: Path):
    kept = reuse(lambda trajectory: True)
    kept.store(group(0, 0.0, 1.0))
    rescued(kept, group(1, 0.0, 0.0))
    state = kept.save(tmp_path)
    again = reuse(lambda trajectory: True)
    again.load(tmp_path, state, {"hard": 0})
    assert again.success is not None
    assert kept.success is not None
    assert again.success.entries == kept.success.entries
    assert again.metrics() == kept.metrics()


def test_tasks_with_a_stored_success_are_drawn_first_each_in_its_turn():
    tasks = [TaskInfo(key=f"t{i}", difficulty_prior=0.05) for i in range(20)]
    scheduler = build_scheduler({"kind": "uniform"}, tasks, 0)
    grader: Any = Grader(lambda trajectory: True)
    made = SuccessConfig(use="importance", share=0.5)
    kept = Reuse(None, made, runner=grader, scheduler=scheduler, seed=0, batch=4, group_size=4)
    for task in (3, 7, 9):
        kept.store(replace(group(task, 0.0, 1.0), key=f"t{task}"))
    assert kept.open(4, version=1) == 4
    first = scheduler.draw(4).tolist()
    assert len(set(first[:2]) & {3, 7, 9}) == 2
    for task in first:
        scheduler.observe(GroupOutcome(task=task, rewards_G=np.zeros(2)))
    kept.open(4, version=2)
    assert ({3, 7, 9} - set(first)) <= set(scheduler.draw(2).tolist())


def test_stored_successes_join_no_more_groups_than_their_share_of_the_batch():
    kept = reuse(lambda trajectory: True, share=0.25)  # of 8 groups: 2
    kept.store(group(0, 0.0, 1.0))
    joined = [rescued(kept, group(id, 0.0, 0.0)) for id in (1, 2, 3)]
    assert [g is not None for g in joined] == [True, True, False]
    asyncio.run(kept.complete(batch_of(joined[0] or group(9)), 8))
    assert rescued(kept, group(4, 0.0, 0.0)) is not None, "one of them was trained"
    assert rescued(kept, group(5, 0.0, 0.0), version=3) is not None, (
        "what waited too long is none of this batch"
    )


def test_a_group_with_a_stored_success_is_not_replayed_for_that_would_not_be_verified():
    scheduler = build_scheduler({"kind": "uniform"}, [TaskInfo(key="hard", difficulty_prior=0.05)], 0)
    grader: Any = Grader(lambda trajectory: True)
    kept = Reuse(
        ReplayConfig(),
        SuccessConfig(use="importance"),
        runner=grader,
        scheduler=scheduler,
        seed=0,
        batch=8,
        group_size=4,
    )
    kept.store(group(0, 0.0, 1.0))
    joined = rescued(kept, group(1, 0.0, 0.0))
    assert joined is not None
    asyncio.run(kept.complete(batch_of(joined, group(2, 0.0, 1.0)), 2))
    assert kept.replay is not None
    assert [g.id for g in kept.replay.groups] == [2]


def batch_of(*groups: Group, version: int = 1) -> StepBatch:
    return StepBatch(
        groups=groups,
        version=version,
        generated_groups=len(groups),
        generated_tokens=0,
        admissions={},
        reward_mean=None,
        invalid_rollouts=0,
        carried_groups=0,
        expired_groups=0,
        rungs=(),
        seconds=0.0,
    )
