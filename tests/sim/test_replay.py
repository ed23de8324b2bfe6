"""Replayed logs: the recorded policy at each version, whatever is trained."""

import json
from pathlib import Path

import numpy as np
import pytest

from snoozing_env import build_scheduler
from snoozing_env.errors import CatalogueError
from snoozing_env.outcome_log import read_outcomes
from snoozing_env.sim.replay import Replay
from snoozing_env.sim.run import LoopConfig, simulate

LOG: list[dict[str, object]] = [
    {"task": "a", "version": 5, "rewards": [1, 1, 1, 1], "dataset": "x", "side": 1},
    {"task": "b", "version": 0, "pass_rate": 0.25, "dataset": "y", "cluster": 7},
    {"task": "a", "version": 2, "rewards": [0, 0.5, 1, 0.5]},
    {"task": "b", "version": 3, "pass_rate": 1.0},
]


def write(path: Path, lines: list[dict[str, object]] | str) -> Path:
    text = lines if isinstance(lines, str) else "\n".join(json.dumps(line) for line in lines)
    path.write_text(text, encoding="utf-8")
    return path


def replay(tmp_path: Path, seed: int = 0) -> Replay:
    return Replay(read_outcomes(write(tmp_path / "log.jsonl", LOG)), seed)


def test_the_latest_line_that_has_happened_counts_and_the_first_before_it(tmp_path: Path) -> None:
    world, seen = replay(tmp_path), []
    for _ in range(7):
        seen.append(world.rates_N().tolist())
        world.train(np.array([0]), [np.array([0.0, 1.0])])
    a, b = [0.5] * 5 + [1.0] * 2, [0.25] * 3 + [1.0] * 4
    assert seen == [list(pair) for pair in zip(a, b, strict=True)]


def test_rollouts_repeat_a_groups_own_rewards_or_its_rate(tmp_path: Path) -> None:
    rewards = replay(tmp_path).sample(np.array([0, 1]), 4000)
    assert set(rewards[0]) == {0.0, 0.5, 1.0}
    assert set(rewards[1]) == {0.0, 1.0}
    assert rewards.mean(axis=1) == pytest.approx([0.5, 0.25], abs=0.03)


def test_tasks_carry_what_their_first_line_says(tmp_path: Path) -> None:
    world = replay(tmp_path)
    assert [(t.key, t.dataset, t.cluster) for t in world.tasks] == [("a", "x", None), ("b", "y", "7")]
    assert world.side_N.tolist() == [1.0, 0.0]


def test_the_seed_fixes_a_replay(tmp_path: Path) -> None:
    tasks = np.array([0, 1])
    draws = [replay(tmp_path, seed).sample(tasks, 50) for seed in (1, 1, 2)]
    np.testing.assert_array_equal(draws[0], draws[1])
    assert (draws[0] != draws[2]).any()


def test_snoozing_costs_less_than_plain_sampling_on_a_log_that_saturates(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    lines: list[dict[str, object]] = [
        {"task": str(i), "version": v, "pass_rate": float(min(1.0, start + v / 40))}
        for i, start in enumerate(rng.random(300))
        for v in (0, 10, 20, 30)
    ]
    outcomes = read_outcomes(write(tmp_path / "log.jsonl", lines))

    def generated(snooze: dict[str, object]) -> int:
        world = Replay(outcomes, 0)
        scheduler = build_scheduler({"snooze": snooze}, world.tasks, 0)
        return sum(s.generated for s in simulate(world, scheduler, LoopConfig(steps=30, batch=16)).steps)

    assert generated({"skip_passes": 5}) < 0.8 * generated({"mode": "off"})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"log\.jsonl has no line with a verdict; log at least one group"),
        ("{", r"line 1 is not JSON"),
        ("\n[1]", r"line 2 holds list; wanted one JSON object per line"),
        ('{"task": "a", "reward": [1]}', r"unknown key 'reward'\. Did you mean 'rewards'\?"),
        ('{"task": 3, "pass_rate": 1}', r"task 3 and version 0; wanted a text key and a whole number"),
        ('{"task": "a", "version": 1.5, "pass_rate": 1}', r"version 1\.5; wanted"),
        ('{"task": "a"}', r"needs either the rewards of a group or its pass_rate"),
        ('{"task": "a", "rewards": [1], "pass_rate": 1}', r"needs either the rewards"),
        ('{"task": "a", "rewards": [1, NaN]}', r"rewards holds nan; wanted numbers in \[0, 1\]"),
        ('{"task": "a", "pass_rate": 1.2}', r"pass_rate holds 1\.2; wanted numbers in \[0, 1\]"),
        ('{"task": "a", "pass_rate": 1, "side": 2}', r"side 2; wanted 1, -1 or 0"),
        (
            '{"task": "a", "rewards": [1, 0], "valid": [1]}',
            r"2 rewards and 1 marks in valid; wanted one each",
        ),
        ('{"task": "a", "rewards": [1], "step": "x"}', r"step 'x'; wanted a whole number"),
        ('{"task": "a", "rewards": [1], "valid": [0]}', r"no line with a verdict"),
    ],
)
def test_a_line_that_is_no_outcome_is_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(CatalogueError, match=message):
        read_outcomes(write(tmp_path / "log.jsonl", text))


def test_a_missing_log_is_named(tmp_path: Path) -> None:
    with pytest.raises(CatalogueError, match=r"cannot read the outcome log .*gone\.jsonl: No such file"):
        read_outcomes(tmp_path / "gone.jsonl")
