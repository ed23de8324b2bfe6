"""A run logs every finished group once, whatever kills it, and the simulator replays the log."""

import json
from collections import Counter
from pathlib import Path

import pytest

from snoozing_env import build_scheduler
from snoozing_env.outcome_log import FILE_NAME, read_outcomes
from snoozing_env.report.runlog import FILE_NAME as RUN_LOG
from snoozing_env.report.runlog import StepRecord, read
from snoozing_env.sim.replay import Replay
from snoozing_env.sim.run import LoopConfig, simulate
from snoozing_env.train.run import RunOptions, train
from tests.train.killing import run_to_the_end, run_with_kills
from tests.train.small import small_recipe

STEPS = {"train": {"steps": 4, "save_every": 2}}


def lines(run: Path) -> list[dict[str, object]]:
    """The log without what no two runs share: wall seconds."""
    parsed = [json.loads(line) for line in (run / FILE_NAME).read_text(encoding="utf-8").splitlines()]
    return [{name: value for name, value in line.items() if name != "duration_s"} for line in parsed]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("runs") / "small"
    train(small_recipe(run, **STEPS), RunOptions())
    return run


def test_every_generated_group_is_a_line_with_its_step(finished: Path) -> None:
    generated = {r.step: r.generated_groups for r in read(finished / RUN_LOG) if isinstance(r, StepRecord)}
    assert Counter(line["step"] for line in lines(finished)) == generated
    tokens = sum(int(str(line["tokens"])) for line in lines(finished))
    assert tokens == sum(
        r.generated_tokens or 0 for r in read(finished / RUN_LOG) if isinstance(r, StepRecord)
    )


def test_the_simulator_replays_a_runs_directory(finished: Path) -> None:
    outcomes = read_outcomes(finished)
    world = Replay(outcomes, 0)
    assert {task.dataset for task in world.tasks} == {"arithmetic"}
    for task, rate in zip(world.tasks, world.rates_N(), strict=True):
        logged = [o for o in outcomes if o.task == task.key]
        at_first = [o for o in logged if o.version == 0] or logged[:1]
        assert rate == at_first[-1].pass_rate
    trace = simulate(world, build_scheduler({}, world.tasks, 0), LoopConfig(steps=2, batch=2))
    assert sum(step.generated for step in trace.steps) > 0


def test_a_killed_run_logs_what_an_undisturbed_one_does(tmp_path: Path) -> None:
    whole, killed = (small_recipe(tmp_path / name) for name in ("whole", "killed"))
    run_to_the_end(whole)
    assert len(list(run_with_kills(killed, kills=2, seed=3))) == 2
    expected = lines(whole.directory)
    assert len(expected) > 40
    assert lines(killed.directory) == expected


def test_a_resume_cuts_what_came_after_the_checkpoint_and_a_torn_line(finished: Path) -> None:
    before = lines(finished)
    with (finished / FILE_NAME).open("a", encoding="utf-8") as file:
        file.write('{"step":5,"task":"never","version":4,"rewards":[1,0]}\n{"step":5,"ta')
    train(small_recipe(finished, train={"steps": 5, "save_every": 2}), RunOptions(resume=True))
    after = lines(finished)
    assert after[: len(before)] == before
    assert {line["step"] for line in after[len(before) :]} == {5}
    assert all(line["task"] != "never" for line in after)
