"""From a task index to a finished group, and from groups to a step's batch."""

import asyncio
from collections.abc import Callable

import numpy as np
import pytest
from plain_echo import EchoConfig, EchoData, EchoTask, Shell

from snoozing_env import (
    CatalogueError,
    ConfigError,
    EngineError,
    OutcomeError,
    SaturationError,
    build_scheduler,
)
from snoozing_env.buffers.fresh import FreshBuffer, FreshConfig
from snoozing_env.gates import GateConfig, Ladder, LadderConfig
from snoozing_env.rollout.catalogue import Catalogue, EnvironmentConfig, load_catalogue
from snoozing_env.rollout.evaluation import EvaluationConfig, check_held_out, evaluate
from snoozing_env.rollout.loop import StepBatch, SyncLoop
from snoozing_env.rollout.runner import GroupRunner, RolloutConfig
from snoozing_env.rollout.trace import needs_harness
from tests.rollout.scripted import ScriptedEngine

Load = Callable[..., Catalogue]


def right(prompt: str, k: int) -> str:
    return prompt.removeprefix("Say ")


def sometimes(prompt: str, k: int) -> str:
    return right(prompt, k) if k % 2 else "mauve"


def runner(catalogue: Catalogue, engine: ScriptedEngine, **config: object) -> GroupRunner:
    return GroupRunner(catalogue, engine, RolloutConfig(group_size=4, **config), seed=0)


def loop(
    catalogue: Catalogue, engine: ScriptedEngine, ladder: LadderConfig | None = None, **scheduler: object
) -> SyncLoop:
    return SyncLoop(
        runner(catalogue, engine),
        build_scheduler(scheduler, catalogue.infos, 0),
        FreshBuffer(FreshConfig()),
        gate=GateConfig(),
        ladder=Ladder(ladder or LadderConfig()),
    )


def collect(rollouts: SyncLoop, batch: int, version: int = 0) -> StepBatch:
    rollouts.runner.engine.set_version(version)
    return asyncio.run(rollouts.collect(batch, version=version))


def test_a_task_set_that_knows_nothing_of_this_project_rolls_out(echo: Load) -> None:
    catalogue, engine = echo(), ScriptedEngine(sometimes)
    engine.set_version(3)
    group = asyncio.run(runner(catalogue, engine).run(1, group_id=5))
    assert group.outcome.rewards_G.tolist() == [0, 1, 0, 1]
    assert group.key == catalogue.infos[1].key
    assert [t.text for t in group.trajectories] == ["mauve", "green", "mauve", "green"]
    assert bytes(group.trajectories[1].completion_ids) == b"green"
    assert group.trajectories[1].logprobs == (-0.5,) * 5
    assert (group.outcome.version, group.outcome.tokens, group.outcome.task) == (3, 20, 1)
    assert catalogue.infos[1].dataset == ""
    assert catalogue.infos[1].text == "Say green"


def test_sampling_noise_belongs_to_the_dispatch_number(echo: Load) -> None:
    engine = ScriptedEngine(right)
    groups = runner(echo(), engine)
    for identity in (0, 1, 0):
        asyncio.run(groups.run(0, group_id=identity))
    assert engine.seeds[0] == engine.seeds[2] != engine.seeds[1]


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("boom", "TaskError: .*ZeroDivisionError: the grader fell over"),
        ("slow", r"no verdict within 0\.05 s"),
    ],
)
def test_a_grader_without_a_verdict_makes_an_invalid_rollout_and_never_a_zero(
    echo: Load, reply: str, reason: str
) -> None:
    engine = ScriptedEngine(lambda prompt, k: reply if k == 0 else right(prompt, k))
    group = asyncio.run(runner(echo(), engine, deadline_s=0.05).run(0, group_id=0))
    assert group.outcome.valid_G is not None
    assert group.outcome.valid_G.tolist() == [False, True, True, True]
    assert group.outcome.valid_rewards.tolist() == [1, 1, 1]
    assert group.trajectories[0].error
    with pytest.raises(AssertionError, match=reason):
        raise AssertionError(group.trajectories[0].error)


def test_a_nan_reward_stops_the_run_with_the_tasks_key(echo: Load) -> None:
    catalogue = echo()
    rollouts = loop(catalogue, ScriptedEngine(lambda p, k: "nan" if k else right(p, k)))
    with pytest.raises(OutcomeError, match=r"task '[0-9a-f]{64}': reward nan is not in \[0, 1\]"):
        collect(rollouts, 2)


def test_a_dead_engine_ends_the_step_with_its_message(echo: Load) -> None:
    engine = ScriptedEngine(right)
    engine.down = True
    with pytest.raises(EngineError, match="no vLLM server answers"):
        collect(loop(echo(), engine), 2)


def test_a_step_refills_until_its_batch_is_informative_and_carries_the_surplus(echo: Load) -> None:
    words = [f"w{i}" for i in range(40)]
    engine = ScriptedEngine(lambda p, k: sometimes(p, k) if int(p[5:]) % 2 else right(p, k))
    rollouts = loop(echo(words=words), engine)
    batches = [collect(rollouts, 4, version=v) for v in range(6)]
    assert all(len(b.groups) == 4 for b in batches)
    assert all(int(g.prompt[5:]) % 2 for b in batches for g in b.groups), (
        "dead groups never reach the gradient"
    )
    identities = [g.id for b in batches for g in b.groups]
    assert identities == sorted(set(identities)), "oldest first, none trained twice"
    generated = sum(b.generated_groups for b in batches)
    informative = sum(b.admissions.get("admitted", 0) for b in batches)
    assert informative == 24 + len(rollouts.buffer) + rollouts.buffer.expired
    metrics = rollouts.scheduler.metrics()
    assert metrics["observed_groups"] == generated, "every finished group is observed"
    assert metrics["busy"] == 0
    assert metrics["snoozed"] > 0


def test_a_saturated_pool_wakes_sleepers_then_trains_on_less_then_stops_with_a_report(echo: Load) -> None:
    words = [f"w{i}" for i in range(8)]
    ladder = LadderConfig(widen_after=1, wake_after=2, partial_after=4, dead_steps=2)
    one = ScriptedEngine(lambda p, k: sometimes(p, k) if p.endswith("w3") else right(p, k))
    batch = collect(loop(echo(words=words), one, ladder), 4)
    assert [g.prompt for g in batch.groups[:1]] == ["Say w3"]
    assert len(batch.groups) < 4
    assert batch.rungs[-2:] == ("wake", "partial")
    with pytest.raises(
        SaturationError, match=r"no informative group among the last 32 generated: 32 all correct\. 100%"
    ):
        collect(loop(echo(words=words), ScriptedEngine(right), ladder), 4)


def test_evaluation_counts_every_task_and_leaves_unknown_verdicts_out(echo: Load) -> None:
    words = ["a", "b", "c", "boom"]
    engine = ScriptedEngine(
        lambda p, k: "boom" if p.endswith("boom") else (right(p, k) if p.endswith("a") else "no")
    )
    result = asyncio.run(evaluate(runner(echo(words=words), engine), EvaluationConfig(samples=2)))
    assert result.accuracy == pytest.approx(1 / 3)
    assert (result.n_tasks, result.n_samples) == (3, 6)
    assert result.low < result.accuracy < result.high
    assert result.samples()[0] == {"prompt": "Say a", "completion": "a", "gold": "", "reward": 1.0}
    with pytest.raises(
        CatalogueError, match=r"no rollout of the 4 held-out tasks got a verdict; .*fell over"
    ):
        asyncio.run(
            evaluate(runner(echo(words=words), ScriptedEngine(lambda p, k: "boom")), EvaluationConfig())
        )


def test_evaluation_tells_the_sides_of_a_conflict_apart(echo: Load) -> None:
    config = EnvironmentConfig(
        id="snooze-groundedqa", taskset={"style": "bare", "size": 10, "unanswerable_share": 0.5}
    )
    result = asyncio.run(
        evaluate(runner(load_catalogue(config), ScriptedEngine(lambda p, k: "?")), EvaluationConfig())
    )
    assert result.by_side == {"abstain": 1.0, "answer": pytest.approx(0.05)}
    plain = asyncio.run(evaluate(runner(echo(), ScriptedEngine(right)), EvaluationConfig()))
    assert plain.by_side == {}


def test_training_on_held_out_tasks_is_refused(echo: Load) -> None:
    with pytest.raises(CatalogueError, match=r"2 of the 2 held-out tasks are also trained on"):
        check_held_out(echo(), echo(words=["red", "blue"]))


def test_an_environment_that_is_not_there_or_an_option_it_does_not_know_is_answered_with_the_nearest(
    echo: Load,
) -> None:
    with pytest.raises(
        ConfigError, match=r"environment 'snooze-mth' is not installed\. Did you mean 'snooze-math'\?"
    ):
        load_catalogue(EnvironmentConfig(id="snooze-mth"))
    with pytest.raises(
        ConfigError, match=r"environment 'plain-echo': unknown key '.*wrods'\. Did you mean 'words'\?"
    ):
        echo(wrods=["a"])


def test_tasks_of_the_same_content_are_duplicates_wherever_they_stand(echo: Load) -> None:
    with pytest.raises(CatalogueError, match=r"tasks 0 and 4 share the key"):
        echo(twice=True)


def test_a_foreign_tasks_key_does_not_depend_on_its_position(echo: Load) -> None:
    keys = {info.text: info.key for info in echo().infos}
    assert {info.text: info.key for info in echo(words=["black", "red"]).infos}.items() <= keys.items()


def test_only_tasks_without_runtime_tools_or_stops_take_the_direct_path(echo: Load) -> None:
    env = echo().env
    data = EchoData(prompt="Say a", word="a")
    assert needs_harness(env, EchoTask(data), None) == ""
    assert "names harness" in needs_harness(env, EchoTask(data), "bash")
    assert "runtime" in needs_harness(env, Shell(data), None)
    assert "user opens" in needs_harness(env, EchoTask(EchoData(word="a")), None)
    assert EchoConfig().words[0] == "red"


def test_rewards_of_another_range_are_mapped_to_the_schedulers(echo: Load) -> None:
    config = EnvironmentConfig(id="plain-echo", reward_range=(-1.0, 1.0))
    group = asyncio.run(runner(load_catalogue(config), ScriptedEngine(sometimes)).run(0, group_id=0))
    assert group.outcome.rewards_G.tolist() == [0.5, 1.0, 0.5, 1.0]
    assert np.array([t.reward for t in group.trajectories]).tolist() == [0.0, 1.0, 0.0, 1.0]
