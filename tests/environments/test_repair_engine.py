"""snooze-repair through the rollout layer: an engine that samples tool calls token by token, groups that come back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from snooze_repair import gold_turns
from snooze_repair.scripted import SUBMIT, Call, shell

from snoozing_env.rollout.catalogue import Catalogue, EnvironmentConfig, load_catalogue
from snoozing_env.rollout.runner import GroupRunner, RolloutConfig
from snoozing_env.types import Group
from tests.environments.repair_engine import ScriptedToolEngine

Script = Callable[[str], Sequence[Sequence[Call]]]


def catalogue(**options: Any) -> Catalogue:
    task = {"sandbox": {"backend": "local", "boxes": 2, "spares": 0}}
    return load_catalogue(EnvironmentConfig(id="snooze-repair", taskset={"size": 2, "task": task, **options}))


def rolled(folder: Path, script: Script, *, context: int = 1 << 20, n: int = 2) -> Group:
    """One group of the catalogue's first task."""

    async def run() -> Group:
        engine = ScriptedToolEngine(folder, script, context=context)
        engine.set_version(3)
        runner = GroupRunner(catalogue(), engine, RolloutConfig(group_size=n, max_tokens=4096), seed=1)
        try:
            return await runner.run(0, group_id=0)
        finally:
            await runner.close()
            await engine.close()

    return asyncio.run(run())


def test_the_catalogue_reads_priors_durations_and_clusters() -> None:
    loaded = catalogue(size=5)
    for task, info in zip(loaded.tasks, loaded.infos, strict=True):
        assert info.difficulty_prior == task.data.difficulty_prior
        assert info.duration_s == task.data.duration_s
        assert (info.cluster, info.snooze_factor) == (task.data.cluster, 8.0)
    assert set(loaded.domains) <= {f"level {level}" for level in range(1, 6)}


def test_a_group_of_scripted_repairs_is_valid_and_earns_one(tmp_path: Path) -> None:
    bug = catalogue().tasks[0].bug
    group = rolled(tmp_path, lambda _: gold_turns(bug))
    assert [t.error for t in group.trajectories] == ["", ""]
    assert group.outcome.rewards_G.tolist() == [1.0, 1.0]
    assert (group.outcome.version, group.outcome.last_version) == (3, 3)


def test_every_turn_is_in_the_sample_and_what_tools_said_is_masked(tmp_path: Path) -> None:
    turns = [[shell("echo ping-pong")], [shell("true")], [SUBMIT]]
    group = rolled(tmp_path, lambda _: turns, n=1)
    [one] = group.trajectories
    tokenizer = ScriptedToolEngine(tmp_path / "again", lambda _: turns)._tokenizer
    ids, mask = np.array(one.completion_ids), np.array(one.mask)
    said, heard = tokenizer.decode(ids[mask == 1]), tokenizer.decode(ids[mask == 0])
    assert said.count("<tool_call>") == 3
    assert "<tool_response>ping-pong" in heard
    assert "<tool_response>" not in said
    assert (one.valid, one.reward) == (True, 0.0)


def test_a_conversation_that_outgrows_the_context_is_a_zero_of_the_policy(tmp_path: Path) -> None:
    turns = [[shell("seq 1 2000")]] * 9
    group = rolled(tmp_path, lambda _: turns, context=9000, n=1)
    [one] = group.trajectories
    assert (one.valid, one.reward, one.error) == (True, 0.0, "")
