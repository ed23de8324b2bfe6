"""TRL's asynchronous trainer over our loop: the bound is ours, nothing is dropped, a resume goes on."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from transformers import AutoTokenizer

from snoozing_env.pacing.ledger import FILE_NAME as LEDGER
from snoozing_env.pacing.ledger import audit, read_ledger
from snoozing_env.report.runlog import FILE_NAME, StepRecord, read
from snoozing_env.train.async_grpo import AsyncGRPOConfig, SnoozingAsyncGRPOTrainer, samples_of
from snoozing_env.train.checkpoints import MARK, STATE_DIR
from snoozing_env.train.grpo import TrainConfig, async_grpo_arguments, grpo_arguments
from snoozing_env.train.health import Health
from snoozing_env.train.recipe import Recipe
from snoozing_env.train.run import RunOptions, train
from snoozing_env.types import Group
from tests.train.small import small_recipe
from tests.train.test_trainer import FixedFeed, Logs, group
from tests.train.test_trainer import one_step as sync_step

BOUND = 2


def recipe(folder: Path, *, steps: int = 6, staleness: int = BOUND, **changes: object) -> Recipe:
    return small_recipe(
        folder,
        engine={"kind": "local", "own_weights": True},
        pacing={"max_staleness": staleness},
        train={"steps": steps, "save_every": 2, "trainer": "async_grpo", **changes},
    )


def steps_of(made: Recipe) -> list[StepRecord]:
    return [record for record in read(made.directory / FILE_NAME) if isinstance(record, StepRecord)]


def run(made: Recipe, *, resume: bool = False) -> None:
    train(made, RunOptions(resume=resume), console=Console(file=io.StringIO()))


def test_it_trains_stale_groups_within_our_bound_and_reports_what_they_are_worth(tmp_path: Path) -> None:
    made = recipe(tmp_path)
    run(made)
    steps = steps_of(made)
    assert [s.step for s in steps] == list(range(1, 7))
    assert 0 < max(s.lag_mean for s in steps) <= BOUND
    assert audit(read_ledger(made.directory / LEDGER), bound=BOUND) == []
    fresh = [s for s in steps if s.lag_mean == 0]
    stale = [s for s in steps if s.lag_mean > 0]
    assert fresh
    assert all(s.ratio_mean == pytest.approx(1.0, abs=1e-4) for s in fresh), (
        "torch's attention over packed rows gives the engine's log-probs"
    )
    assert any(abs(s.ratio_mean - 1.0) > 1e-4 for s in stale)
    assert all(0 < s.ess_sequence <= 1 for s in steps)
    assert set(stale[-1].ess_by_lag) <= {"0", "1", "2"}
    assert all(s.grad_norm > 0 for s in steps)


def test_it_runs_synchronously_too_and_a_resume_serves_the_weights_of_the_checkpoint(tmp_path: Path) -> None:
    """Without a batch fetched ahead, a bound of 0 neither waits for ever nor trains what is older."""
    run(recipe(tmp_path, steps=2, staleness=0))
    assert (tmp_path / "checkpoint-2" / STATE_DIR / MARK).exists()
    longer = recipe(tmp_path, steps=4, staleness=0)
    run(longer, resume=True)
    steps = steps_of(longer)
    assert [s.step for s in steps] == [1, 2, 3, 4]
    fresh = [s for s in steps if s.lag_mean == 0]
    assert any(s.step > 2 for s in fresh), "the others hold groups carried over from the step before"
    assert all(s.ratio_mean == pytest.approx(1.0, abs=1e-4) for s in fresh)


def test_a_resumed_asynchronous_run_loses_no_finished_group_and_trains_none_twice(tmp_path: Path) -> None:
    run(recipe(tmp_path, steps=4))
    longer = recipe(tmp_path, steps=8)
    run(longer, resume=True)
    events = read_ledger(longer.directory / LEDGER)
    assert [s.step for s in steps_of(longer)] == list(range(1, 9))
    assert sum(event["event"] == "resume" for event in events) == 1
    assert audit(events, bound=BOUND) == []


@pytest.mark.parametrize("algorithm", ["dapo", "max_rl"])
def test_a_partial_batch_in_micro_batches_takes_as_long_a_step_as_a_whole_one(
    tmp_path: Path,
    policy: Path,
    algorithm: str,
) -> None:
    """Places that no rollout takes fill whole micro-batches, and change nothing but the mean over micro-batches."""
    groups = [group(policy, 0, [1, 0, 0, 0]), group(policy, 1, [1, 1, 0, 1])]
    whole, partial, micro = (
        one_step(policy, groups, tmp_path, batch_groups=b, micro_batch=m, algorithm=algorithm)
        for b, m in ((2, None), (3, None), (3, 4))
    )
    assert partial["grad_norm"] == pytest.approx(whole["grad_norm"], rel=1e-4)
    assert micro["grad_norm"] > 0


def test_the_loss_is_the_clipped_surrogate_of_trls_other_trainer(tmp_path: Path, policy: Path) -> None:
    """The same groups, one of them stale past the clip, through both trainers."""
    groups = [group(policy, 0, [1, 0, 0, 0]), group(policy, 1, [1, 1, 0, 1], shift=-0.3)]
    ours = one_step(policy, groups, tmp_path, batch_groups=2)
    trls = sync_step(policy, groups, 2, tmp_path)
    assert ours["loss"] == pytest.approx(trls["loss"], rel=1e-3)
    assert ours["grad_norm"] == pytest.approx(trls["grad_norm"], rel=1e-3)
    assert ours["clip_ratio/region_mean"] == pytest.approx(trls["clip_ratio/region_mean"])
    assert ours["clip_ratio/region_mean"] > 0


def test_it_measures_what_a_stale_batch_is_worth_by_sequence_and_lag(tmp_path: Path, policy: Path) -> None:
    """Ratios are 1 in a fresh group and e^(.3 n) in a stale one, for rollouts of n tokens."""
    fresh = group(policy, 0, [1, 0, 0, 0])
    stale = group(policy, 1, [1, 1, 0, 1], shift=-0.3)
    outcome = replace(stale.outcome, version=-2)
    config = TrainConfig(batch_groups=2)
    health = Health(config, log=lambda record: None, say=lambda text: None)
    one_step(policy, [fresh, replace(stale, outcome=outcome)], tmp_path, batch_groups=2, health=health)
    health.rate_factor()
    lengths = np.array([2, 3, 4, 2])
    ratios = np.concatenate([np.ones(4), np.exp(0.3 * lengths)])
    assert health.report is not None
    assert health.report.sequence.kish == pytest.approx(ratios.sum() ** 2 / (8 * (ratios**2).sum()), rel=1e-3)
    assert health.report.by_age[0].kish == pytest.approx(1.0, rel=1e-6)
    assert health.report.by_age[2].kish == pytest.approx(
        ratios[4:].sum() ** 2 / (4 * (ratios[4:] ** 2).sum()), rel=1e-3
    )
    assert health.report.clipped_share == pytest.approx(0.5), "e^.3 = 1.35 is past DAPO's 1.28"


def test_an_invalid_rollout_trains_nothing(policy: Path) -> None:
    broken = group(policy, 0, [1, 0, 0, 1], valid=[True, True, True, False])
    config = TrainConfig(batch_groups=2)
    samples = samples_of([broken], config, group_size=4, pad_id=0, version_offset=3)
    assert len(samples) == 8
    assert [int(s.completion_mask.sum()) for s in samples] == [2, 3, 4, 0, 0, 0, 0, 0]
    assert [s.advantage for s in samples[:4]] == pytest.approx([2 / 3**0.5, -1 / 3**0.5, -1 / 3**0.5, 0.0])
    assert np.isnan(samples[3].metrics["reward"]), "no reward is invented for it"
    assert samples[0].model_version == 3


def test_an_engine_that_shares_the_trainers_weights_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"loads its own model, which engine.kind 'local' cannot share"):
        small_recipe(tmp_path, train={"trainer": "async_grpo"})


class SteppedFixedFeed(FixedFeed):
    """The same groups at every step; weights go nowhere."""

    def publish(self, version: int, weights: object) -> None: ...

    def collect(self, step: int, model: object) -> Sequence[Group]:
        return self.groups


def one_step(
    policy: Path, groups: Sequence[Group], output: Path, *, health: Health | None = None, **changes: Any
) -> dict[str, float]:
    """TRL's log of one optimizer step over the given groups."""
    config = TrainConfig.model_validate(
        {"steps": 1, "learning_rate": 1e-3, "device": "cpu", "trainer": "async_grpo", **changes}
    )
    arguments = grpo_arguments(config, group_size=4, max_tokens=8, temperature=1.0, output=output, seed=0)
    args = AsyncGRPOConfig(**async_grpo_arguments(arguments) | {"save_strategy": "no"})
    logs = Logs()
    tokenizer = AutoTokenizer.from_pretrained(policy, padding_side="left")
    feed = SteppedFixedFeed(groups)
    SnoozingAsyncGRPOTrainer(
        str(policy), args, tokenizer, feed, config=config, health=health, callbacks=[logs]
    ).train()
    return logs.rows[0]
