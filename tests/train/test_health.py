"""What stale data is worth drives the learning rate; several alarms at once save the run and stop it."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from rich.console import Console
from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerControl, TrainerState, TrainingArguments
from trl import GRPOConfig

from snoozing_env.alarms import AlarmConfig, Signal
from snoozing_env.importance import EssConfig
from snoozing_env.report.html import write_report
from snoozing_env.report.runlog import FILE_NAME, AlarmRecord, EndRecord, StepRecord, read
from snoozing_env.train.checkpoints import MARK, STATE_DIR
from snoozing_env.train.grpo import TrainConfig, grpo_arguments
from snoozing_env.train.health import Health, RateByEss
from snoozing_env.train.run import RunOptions, train
from snoozing_env.train.sync import SnoozingGRPOTrainer
from tests.train.small import small_recipe
from tests.train.test_trainer import FixedFeed, G, group

ALARMS = AlarmConfig(patience=2, collapse_at=2)
SCALED = EssConfig(scale_learning_rate=True, smoothing=0.0, power=0.5)


def health(config: TrainConfig | None = None) -> tuple[Health, list[AlarmRecord]]:
    records: list[AlarmRecord] = []
    made = Health(config or TrainConfig(alarms=ALARMS), log=records.append, say=lambda text: None)
    return made, records


def test_one_bad_signal_is_an_alarm_and_two_at_once_are_a_collapse() -> None:
    watched, records = health()
    bad: dict[Signal, float | None] = {"clip_fraction": 0.9, "truncation": 0.1}
    watched.close_step(1, bad)
    assert records == [], "one step is not `patience`"
    watched.close_step(2, bad)
    watched.close_step(3, bad)
    assert [(r.step, r.signal) for r in records] == [(2, "clip_fraction")], (
        "logged when it starts, not at each step"
    )
    assert watched.collapse == ""
    for step in (4, 5):
        watched.close_step(step, bad | {"truncation": 0.9})
    assert [r.signal for r in records] == ["clip_fraction", "truncation"]
    assert "clip_fraction 0.9 past 0.3 for 5 steps" in watched.collapse
    assert "truncation" in watched.collapse


def test_a_run_that_may_not_stop_only_says_so() -> None:
    watched, records = health(TrainConfig(alarms=ALARMS.model_copy(update={"pause_on_collapse": False})))
    for step in range(1, 4):
        watched.close_step(step, {"clip_fraction": 0.9, "truncation": 0.9})
    assert len(records) == 2
    assert watched.collapse == ""


def test_a_worthless_batch_is_a_signal_too() -> None:
    watched, records = health()
    for step in (1, 2):
        watched.add([np.array([5.0]), np.array([-5.0]), np.array([-5.0]), np.array([-5.0])], [0, 1, 1, 2])
        watched.rate_factor()
        watched.close_step(step, {})
    assert [r.signal for r in records] == ["ess"]
    assert watched.fields()["ess_sequence"] == pytest.approx(0.25, abs=1e-3), "one of four counts"
    assert watched.fields()["ess_by_lag"] == {"0": 1.0, "1": pytest.approx(1.0), "2": 1.0}
    assert watched.fields()["ess_more"]["sequence, clamped"] > 0.9, "clamping hides it"
    assert watched.fields()["outside_clip"] == 1.0


def test_state_continues_streaks_and_running_ess_and_a_resume_after_a_collapse_has_its_patience_again() -> (
    None
):
    watched, _ = health(TrainConfig(alarms=ALARMS, ess=SCALED))
    watched.add([np.zeros(3)] * 4, [0] * 4)
    watched.rate_factor()
    watched.close_step(1, {"clip_fraction": 0.9, "truncation": 0.9})
    saved = json.loads(json.dumps(watched.state()))
    resumed, records = health(TrainConfig(alarms=ALARMS, ess=SCALED))
    resumed.restore(saved)
    assert resumed.ess.reference == 1.0
    resumed.close_step(2, {"clip_fraction": 0.9, "truncation": 0.9})
    assert len(records) == 2, "the second step in a row"
    assert resumed.collapse
    again, records = health()
    again.restore(json.loads(json.dumps(resumed.state())))
    again.close_step(3, {"clip_fraction": 0.9, "truncation": 0.9})
    assert records == []
    assert again.collapse == ""
    again.close_step(4, {"clip_fraction": 0.9, "truncation": 0.9})
    assert len(records) == 2
    assert again.collapse


def test_the_rate_is_scaled_for_one_step_and_put_back() -> None:
    watched, _ = health(TrainConfig(ess=SCALED))
    watched.add([np.zeros(2)] * 4, [0] * 4)
    assert watched.rate_factor() == 1.0, "fresh data set the reference"
    watched.add([np.array([5.0]), *[np.array([-5.0])] * 3], [1] * 4)
    weight = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([weight], lr=1.0)
    scale, nothing = RateByEss(watched), (TrainingArguments(output_dir="x"), TrainerState(), TrainerControl())
    scale.on_pre_optimizer_step(*nothing, optimizer=optimizer)
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.5, abs=1e-3), "(1/4 of the reference) ^ 1/2"
    scale.on_optimizer_step(*nothing, optimizer=optimizer)
    assert optimizer.param_groups[0]["lr"] == 1.0


def moved(policy: Path, output: Path, ess: EssConfig) -> float:
    """How far one step of AdamW on a stale group moves the policy."""
    model = AutoModelForCausalLM.from_pretrained(policy, dtype=torch.float32)
    before = [p.detach().clone() for p in model.parameters()]
    config = TrainConfig(
        steps=1, batch_groups=1, learning_rate=1e-3, device="cpu", algorithm="cispo", ess=ess
    )
    watched, _ = health(config)
    watched.ess.update(1.0)  # an earlier, fresh batch
    arguments = grpo_arguments(config, group_size=G, max_tokens=8, temperature=1.0, output=output, seed=0)
    SnoozingGRPOTrainer(
        model,
        GRPOConfig(**arguments | {"save_strategy": "no"}),
        AutoTokenizer.from_pretrained(policy, padding_side="left"),
        FixedFeed([group(policy, 0, [1, 0, 0, 0], shift=-0.5)]),
        batch_groups=1,
        config=config,
        health=watched,
        callbacks=[RateByEss(watched)],
    ).train()
    return math.sqrt(
        sum((p.detach() - b).pow(2).sum().item() for p, b in zip(model.parameters(), before, strict=True))
    )


def test_a_step_on_stale_data_is_shorter_by_the_root_of_its_effective_sample_size(
    policy: Path,
    tmp_path: Path,
) -> None:
    ratios = np.exp(0.5 * np.array([2, 3, 4, 2]))
    ess = ratios.sum() ** 2 / (4 * (ratios**2).sum())
    plain, scaled = (moved(policy, tmp_path, c) for c in (EssConfig(), SCALED))
    assert scaled / plain == pytest.approx(math.sqrt(ess), rel=1e-3) != pytest.approx(1.0, rel=1e-2)


def test_a_collapse_saves_reports_and_stops_the_run_and_says_why(tmp_path: Path) -> None:
    """Limits that healthy values are past: a gradient above nothing, a reward below a thousand times its best."""
    past = {"grad_norm_above": 1e-6, "reward_below": 1e3, "baseline": 1, "patience": 2}
    made = small_recipe(tmp_path, train={"steps": 12, "save_every": 10, "alarms": past})
    console = Console(file=io.StringIO())
    report = train(made, RunOptions(), console=console)
    records = read(tmp_path / FILE_NAME)
    end = next(r for r in records if isinstance(r, EndRecord))
    stopped = [r.step for r in records if isinstance(r, StepRecord)][-1]
    assert stopped == 3, "step 1 makes the baseline, steps 2 and 3 are past it"
    assert end.reason.startswith("collapsed at step 3: reward ")
    assert "grad_norm" in end.reason
    assert {r.signal for r in records if isinstance(r, AlarmRecord)} == {"reward", "grad_norm"}
    assert (tmp_path / f"checkpoint-{stopped}" / STATE_DIR / MARK).exists()
    assert not (tmp_path / "final").exists(), "nobody takes a collapsed policy for the result"
    assert "grad_norm" in report.read_text()
    assert "collapsed at step 3" in report.read_text()
    train(made, RunOptions(resume=True), console=console)
    steps = [r.step for r in read(tmp_path / FILE_NAME) if isinstance(r, StepRecord)]
    assert steps == [1, 2, 3, 4, 5], "resumed on purpose, it has its patience again"


def test_the_report_draws_the_effective_sample_size_by_lag(tmp_path: Path) -> None:
    lines = [
        {"event": "run", "name": "stale", "arm": "bounded", "seed": 0},
        *(
            {
                "event": "step",
                "step": i,
                "ess_sequence": 0.9 - i / 20,
                "ess_by_lag": {"0": 1.0, "2": 0.8 - i / 20},
            }
            for i in range(1, 8)
        ),
        {"event": "alarm", "step": 6, "signal": "ess", "value": 0.2, "limit": 0.3},
    ]
    (tmp_path / FILE_NAME).write_text("".join(json.dumps(line) + "\n" for line in lines))
    page = write_report([tmp_path], tmp_path / "report.html").read_text()
    assert "Effective sample size by lag" in page
    assert "lag 2" in page
    assert "ess 0.2 past 0.3 at step 6" in page
