"""TRL's GRPO trainer fed by our rollout loop, through `rollout_func` and a few small overrides.

    TRL step ─▶ _prepare_inputs ─▶ rollout_func ─▶ Feed.next_batch(step) ─▶ exactly B·G rows
                                        │ sync weights, evaluate, collect informative groups
    _generate_and_score_completions:  old log-probs := behaviour log-probs   (stale groups are corrected)
                                      advantages    := scaled for rows that carry nothing
    _compute_loss: measures how far the trainer is from the behaviour policy (TRL reports it only for its own vLLM)
    _save_checkpoint / _load_optimizer_and_scheduler: the feed's state travels with the weights
    training_step: torch's generator is seeded by the step's number

TRL corrects for stale data only when it owns vLLM (seen on 1.16), hence the second. The seed per step makes the order
in which a step's rows are summed a function of the run's seed and the step alone, whatever else drew from torch's
generator before: a resumed run then agrees to the last bit, also beside trackers and callbacks that draw.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from datasets import Dataset
from transformers import PreTrainedModel, PreTrainedTokenizerBase, TrainerCallback
from trl import GRPOConfig, GRPOTrainer

from snoozing_env.train.checkpoints import STATE_DIR
from snoozing_env.types import Group, Trajectory


class Feed(Protocol):
    """Where the trainer's rows come from; owns everything but weights and optimizer."""

    def next_batch(self, step: int, model: torch.nn.Module) -> Sequence[Group]:
        """At most B groups for optimizer step `step` (from 0), generated with `model`'s weights or older."""
        ...

    def save(self, directory: Path) -> None: ...

    def load(self, directory: Path) -> None: ...


@dataclass(slots=True)
class Rows:
    """TRL's rollout columns, one entry per rollout."""

    prompt_ids: list[list[int]]
    completion_ids: list[list[int]]
    logprobs: list[list[float]]
    env_mask: list[list[int]]
    outcome: list[float | None]
    """Reward; None = carries nothing (invalid or padding): TRL gives it no advantage and no share of the baseline."""


def rows_of(groups: Sequence[Group], *, batch: int, group_size: int, pad_id: int) -> Rows:
    """Exactly batch · group_size rows; missing groups of a partial batch become rows that carry nothing."""
    rows = Rows([], [], [], [], [])
    for group in groups:
        for trajectory in group.trajectories:
            _append(rows, trajectory)
    for _ in range((batch - len(groups)) * group_size):
        _append(rows, None, pad_id=pad_id)
    return rows


def _append(rows: Rows, trajectory: Trajectory | None, *, pad_id: int = 0) -> None:
    live = trajectory is not None and trajectory.valid
    rows.prompt_ids.append(list(trajectory.prompt_ids) if trajectory else [pad_id])
    rows.completion_ids.append(list(trajectory.completion_ids) if trajectory else [pad_id])
    rows.logprobs.append(list(trajectory.logprobs) if trajectory else [0.0])
    length = len(rows.completion_ids[-1])
    rows.env_mask.append(list(trajectory.mask) if trajectory and live else [0] * length)
    rows.outcome.append(trajectory.reward if trajectory and live else None)


def outcome_reward(
    prompts: list[Any], completions: list[Any], outcome: list[float | None], **_: Any
) -> list[float | None]:
    """The reward the environment gave; TRL only turns it into advantages."""
    return outcome


class SnoozingGRPOTrainer(GRPOTrainer):
    """`GRPOTrainer` whose data, rewards and log-probs come from a `Feed`."""

    def __init__(
        self,
        model: PreTrainedModel,
        args: GRPOConfig,
        tokenizer: PreTrainedTokenizerBase,
        feed: Feed,
        *,
        batch_groups: int,
        callbacks: Sequence[TrainerCallback] = (),
    ) -> None:
        self.feed = feed
        self._batch_groups = batch_groups
        self._row_scale = 1.0
        os.environ.setdefault(
            "TRL_EXPERIMENTAL_SILENCE", "1"
        )  # its notice that rollout_func may change; we pin trl
        placeholder = Dataset.from_dict({"prompt": [[{"role": "user", "content": ""}]] * batch_groups})
        super().__init__(
            model=model,
            args=args,
            reward_funcs=outcome_reward,
            train_dataset=placeholder,
            processing_class=tokenizer,
            rollout_func=self._rollout,
            callbacks=list(callbacks),
        )

    def _rollout(self, prompts: list[Any], trainer: GRPOTrainer) -> dict[str, Any]:
        groups = self.feed.next_batch(self.state.global_step, self.accelerator.unwrap_model(self.model))
        pad_id = int(self.processing_class.pad_token_id)
        rows = rows_of(groups, batch=self._batch_groups, group_size=self.num_generations, pad_id=pad_id)
        if len(rows.outcome) != len(prompts):
            raise RuntimeError(f"the feed made {len(rows.outcome)} rows, TRL asked for {len(prompts)}")
        live = sum(value is not None for value in rows.outcome)
        # Losses that average over sequences would count rows that carry nothing as zeros (F3: the right normaliser).
        self._row_scale = len(prompts) / max(live, 1) if self.args.loss_type in ("grpo", "dr_grpo") else 1.0
        return {name: getattr(rows, name) for name in Rows.__slots__}

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        output = super()._generate_and_score_completions(inputs)
        output["old_per_token_logps"] = output["sampling_per_token_logps"]
        output["advantages"] = output["advantages"] * self._row_scale
        return output

    def _get_per_token_logps_and_entropies(self, *args: Any, **kwargs: Any) -> Any:
        result = super()._get_per_token_logps_and_entropies(*args, **kwargs)
        self._latest_logps = result[0].detach()
        return result

    def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> torch.Tensor:
        loss = super()._compute_loss(model, inputs)
        mask = (inputs["completion_mask"] * inputs["tool_mask"]).bool()
        if mask.any():
            log_ratio = (self._latest_logps - inputs["old_per_token_logps"])[mask]
            self._log_step_metric("ratio/mean", log_ratio.exp().mean().item())
            self._log_step_metric("ratio/logprob_gap", log_ratio.abs().max().item())
        return loss

    def _log_step_metric(self, name: str, value: float) -> None:
        self._metrics["train" if self.model.training else "eval"][name].append(value)

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        super()._save_checkpoint(model, trial)
        if self.args.should_save:
            folder = Path(self._get_output_dir(trial=trial)) / f"checkpoint-{self.state.global_step}"
            self.feed.save(folder / STATE_DIR)

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        super()._load_optimizer_and_scheduler(checkpoint)
        if checkpoint is not None:
            self.feed.load(Path(checkpoint) / STATE_DIR)

    def training_step(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        if self._step % self.args.gradient_accumulation_steps == 0:
            words = np.random.SeedSequence(
                [self.args.seed, self.state.global_step, self.accelerator.process_index]
            )
            torch.manual_seed(int(words.generate_state(1)[0]))
        return super().training_step(*args, **kwargs)

    def create_model_card(self, *args: Any, **kwargs: Any) -> None:
        """No card per checkpoint: the run's report says more, and cards cost a network look-up."""
