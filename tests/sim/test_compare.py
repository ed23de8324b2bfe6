"""Grids of simulated runs: every combination once, and summaries that follow from the steps."""

import numpy as np
import pytest

from snoozing_env.config import parse_config
from snoozing_env.errors import ConfigError
from snoozing_env.schedulers import KINDS
from snoozing_env.sim.compare import SimulationConfig, dip, simulate_all
from snoozing_env.sim.run import StepMetrics, Trace

SMALL = {
    "presets": (),
    "learners": {
        "one": {"populations": [{"name": "t", "tasks": 80}]},
        "two": {"populations": [{"name": "t", "tasks": 80, "side": 1}]},
    },
    "loop": {"steps": 12, "batch": 6},
    "seeds": (0, 3),
}


def config(**more: object) -> SimulationConfig:
    return parse_config(SimulationConfig, {**SMALL, **more}, where="simulation")


def test_every_arm_meets_every_learner_and_seed_once() -> None:
    runs = list(simulate_all(config(schedulers={"off": {"snooze": {"mode": "off"}}}, kinds=("thompson",))))
    met = [(r.summary.learner, r.summary.scheduler, r.summary.seed) for r in runs]
    assert met == [(w, s, k) for w in ("one", "two") for s in ("off", "thompson") for k in (0, 3)]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_scheduler_runs_in_the_simulator(kind: str) -> None:
    for run in simulate_all(config(kinds=(kind,), seeds=(0,))):
        assert run.summary.ended == "finished"
        assert run.summary.trained == 12 * 6


def test_with_no_arm_named_the_posts_four_are_compared() -> None:
    assert list(config().arms) == ["plain", "permanent", "snooze 2", "snooze 5"]


def test_a_summary_is_the_sum_of_its_steps() -> None:
    for run in simulate_all(config(kinds=("uniform",), target=0.55)):
        steps, row = run.trace.steps, run.summary
        made = np.array([s.generated for s in steps])
        assert row.generated == made.sum()
        assert row.survival == pytest.approx(sum(s.survival * s.generated for s in steps) / made.sum())
        assert row.tokens_per_trained == pytest.approx(made.sum() * 8 * 256 / row.trained)
        assert row.final_rate == steps[-1].rate
        assert row.steps_to_target is not None
        assert steps[row.steps_to_target - 1].rate >= 0.55
        assert all(s.rate < 0.55 for s in steps[: row.steps_to_target - 1])
        assert row.groups_to_target == made[: row.steps_to_target].sum()


def test_shares_are_those_of_the_last_quarter_of_the_batches() -> None:
    two = {"populations": [{"name": "a", "tasks": 60}, {"name": "b", "tasks": 60}]}
    run = next(simulate_all(config(learners={"mixed": two})))
    late = [step.shares["a"] for step in run.trace.steps[-3:]]
    assert run.summary.shares["a"] == pytest.approx(np.mean(late))
    assert len(set(late)) > 1


def test_a_target_out_of_reach_is_no_number() -> None:
    row = next(simulate_all(config(target=1.0))).summary
    assert row.steps_to_target is None
    assert row.groups_to_target is None


def test_a_dip_is_measured_from_the_best_before_it() -> None:
    def step(rate: float) -> StepMetrics:
        return StepMetrics(
            step=1, generated=1, trained=1, survival=1, regret=0, asleep_share=0, woken=0, forgotten=0, shares={},
            sides={}, rate=rate, rates={}, side_rates={"+1": rate}, rung="refill",
        )  # fmt: skip

    steps = tuple(step(rate) for rate in (0.4, 0.9, 0.3, 0.95, 0.8))
    trace = Trace(first_rate=0.5, first_side_rates={"+1": 0.5}, steps=steps, ended="finished")
    assert dip(trace, "+1") == pytest.approx(0.6)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"kinds": ("tomson",)}, r"no kind 'tomson'\. Did you mean 'thompson'\?"),
        ({"presets": ("conflic",)}, r"no preset 'conflic'\. Did you mean 'conflict'\?"),
        ({"learners": {}}, r"nothing to learn: give presets, learners or outcomes"),
        ({"schedulers": {"a": {"snooze": {"mod": "off"}}}}, r"unknown key .*mod'\. Did you mean 'mode'\?"),
    ],
)
def test_a_mistake_in_a_comparison_is_answered(more: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        config(**more)
