"""TRL's GRPO trainer fed by our rollout loop, through `rollout_func` and a few small overrides.

    TRL step ─▶ _prepare_inputs ─▶ rollout_func ─▶ Feed.next_batch(step) ─▶ exactly B·G rows
                                        │ sync weights, evaluate, collect informative groups
    _generate_and_score_completions:  old log-probs := behaviour log-probs   (stale groups are corrected)
                                      advantages    := the algorithm's, or TRL's scaled for rows that carry nothing
    _compute_loss: TRL's loss or ours over the same forward pass, and how far the trainer is from the behaviour policy
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
from typing import Any, Protocol

import numpy as np
import torch
from datasets import Dataset
from transformers import PreTrainedModel, PreTrainedTokenizerBase, TrainerCallback
from trl import GRPOConfig, GRPOTrainer

from snoozing_env.train.fed_trainer import FedTrainer, KeptFeed
from snoozing_env.train.grpo import TrainConfig
from snoozing_env.train.health import Health
from snoozing_env.train.losses import Batch, Terms, is_ours, own_advantages, own_loss
from snoozing_env.types import Group, Trajectory


class Feed(KeptFeed, Protocol):
    """Where the trainer's rows come from; owns everything but weights and optimizer."""

    def next_batch(self, step: int, model: torch.nn.Module) -> Sequence[Group]:
        """At most B groups for optimizer step `step` (from 0), generated with `model`'s weights or older."""
        ...


@dataclass(slots=True)
class Rows:
    """TRL's rollout columns, one entry per rollout."""

    prompt_ids: list[list[int]]
    completion_ids: list[list[int]]
    logprobs: list[list[float]]
    env_mask: list[list[int]]
    outcome: list[float | None]
    """Reward; None = carries nothing (invalid or padding): TRL gives it no advantage and no share of the baseline."""
    version: list[int]
    """Policy version of the first token."""
    anchor: list[float]
    """Advantage of a positive example without an importance ratio; 0 = the row is none."""
    replayed: list[bool]
    """Trained before."""


def rows_of(groups: Sequence[Group], *, batch: int, group_size: int, pad_id: int) -> Rows:
    """Exactly batch · group_size rows: whole groups, then anchors (fewer than a group, perhaps), then rows that carry
    nothing where the batch is partial."""
    rows = Rows([], [], [], [], [], [], [], [])
    for group in groups:
        for trajectory in group.trajectories:
            _append(rows, trajectory, replayed=group.replayed)
    for _ in range(batch * group_size - len(rows.outcome)):
        _append(rows, None, pad_id=pad_id)
    return rows


def _append(rows: Rows, trajectory: Trajectory | None, *, pad_id: int = 0, replayed: bool = False) -> None:
    live = trajectory is not None and trajectory.valid
    rows.prompt_ids.append(list(trajectory.prompt_ids) if trajectory else [pad_id])
    rows.completion_ids.append(list(trajectory.completion_ids) if trajectory else [pad_id])
    rows.logprobs.append(list(trajectory.logprobs) if trajectory else [0.0])
    length = len(rows.completion_ids[-1])
    rows.env_mask.append(list(trajectory.mask) if trajectory and live else [0] * length)
    rows.outcome.append(trajectory.reward if trajectory and live else None)
    rows.version.append(trajectory.version if trajectory else 0)
    rows.anchor.append(trajectory.anchor if trajectory else 0.0)
    rows.replayed.append(replayed)


def outcome_reward(
    prompts: list[Any], completions: list[Any], outcome: list[float | None], **_: Any
) -> list[float | None]:
    """The reward the environment gave; TRL only turns it into advantages."""
    return outcome


class SnoozingGRPOTrainer(FedTrainer, GRPOTrainer):
    """`GRPOTrainer` whose data, rewards and log-probs come from a `Feed`."""

    def __init__(
        self,
        model: PreTrainedModel,
        args: GRPOConfig,
        tokenizer: PreTrainedTokenizerBase,
        feed: Feed,
        *,
        batch_groups: int,
        config: TrainConfig | None = None,
        health: Health | None = None,
        callbacks: Sequence[TrainerCallback] = (),
    ) -> None:
        """`config` names the algorithm where it is not one of TRL's; `health` is shown every batch's ratios."""
        self.feed, self.config, self.health = feed, config or TrainConfig(), health
        self._batch_groups = batch_groups
        self._row_scale = 1.0
        self._rows = Rows([], [], [], [], [], [], [], [])
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
        self._rows, live = rows, sum(value is not None for value in rows.outcome)
        # Losses that average over sequences would count rows that carry nothing as zeros (F3: the right normaliser).
        averaged = self.args.loss_type in ("grpo", "dr_grpo") and not is_ours(self.config)
        self._row_scale = len(prompts) / max(live, 1) if averaged else 1.0
        return {name: getattr(rows, name) for name in Rows.__slots__}

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        output = super()._generate_and_score_completions(inputs)
        output["old_per_token_logps"] = output["sampling_per_token_logps"]
        output["advantages"] = output["advantages"] * self._row_scale
        own = own_advantages(self.config, self._rows.outcome, self.num_generations)
        if own is not None:
            output["advantages"] = torch.as_tensor(own).to(output["advantages"])
        # Columns, because TRL shuffles the rows of a batch before it splits them.
        output["lag"] = self.state.global_step - torch.tensor(self._rows.version)
        output["replayed"] = torch.tensor(self._rows.replayed)
        if any(self._rows.anchor):
            self._anchor(output)
        return output

    def _anchor(self, output: dict[str, Any]) -> None:
        """Give anchors their own advantage and measure them against the present policy: their ratio is 1 and their
        gradient that of a cross-entropy (B2)."""
        ids = torch.cat([output["prompt_ids"], output["completion_ids"]], dim=1)
        seen = torch.cat([output["prompt_mask"], output["completion_mask"]], dim=1)
        with torch.no_grad():
            now = super()._get_per_token_logps_and_entropies(
                self.model, ids, seen, output["completion_ids"].size(1), self.args.per_device_train_batch_size
            )[0]
        weights = torch.tensor(self._rows.anchor, device=now.device) * self._row_scale
        anchors = weights > 0
        output["advantages"] = torch.where(anchors, weights.to(output["advantages"]), output["advantages"])
        output["old_per_token_logps"] = torch.where(
            anchors[:, None], now, output["old_per_token_logps"].to(now)
        )
        output["lag"] = torch.where(anchors.cpu(), 0, output["lag"])

    def _get_per_token_logps_and_entropies(self, *args: Any, **kwargs: Any) -> Any:
        result = super()._get_per_token_logps_and_entropies(*args, **kwargs)
        self._latest_logps = result[0]
        return result

    def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> torch.Tensor:
        loss = super()._compute_loss(model, inputs)
        mask = inputs["completion_mask"] * inputs["tool_mask"]
        if is_ours(self.config):
            loss = self._own_loss(inputs, mask)
        self._measure(inputs, mask.bool())
        return loss

    def _own_loss(self, inputs: dict[str, Any], mask: torch.Tensor) -> torch.Tensor:
        """A loss that TRL does not have, over the log-probs of TRL's forward pass."""
        terms = Terms(
            logps=self._latest_logps,
            behaviour=inputs["old_per_token_logps"],
            advantages=inputs["advantages"],
            mask=mask.to(self._latest_logps.dtype),
        )
        batch = Batch(
            rows=sum(value is not None for value in self._rows.outcome),
            tokens=float(inputs["num_items_in_batch"]),
            max_tokens=self.max_completion_length,
        )
        return own_loss(self.config, terms, batch)

    def _measure(self, inputs: dict[str, Any], mask: torch.Tensor) -> None:
        if not mask.any():
            return
        log_ratio = self._latest_logps.detach() - inputs["old_per_token_logps"]
        self._log_step_metric("ratio/mean", log_ratio[mask].exp().mean().item())
        self._log_step_metric("ratio/logprob_gap", log_ratio[mask].abs().max().item())
        if self.health is not None:
            live = [i for i in range(len(mask)) if mask[i].any()]
            ratios = [log_ratio[i][mask[i]].double().cpu().numpy() for i in live]
            self.health.add(
                ratios,
                [int(inputs["lag"][i]) for i in live],
                replayed=[bool(inputs["replayed"][i]) for i in live],
                advantages=[float(inputs["advantages"][i]) for i in live],
            )

    def _log_step_metric(self, name: str, value: float) -> None:
        self._metrics["train" if self.model.training else "eval"][name].append(value)

    def training_step(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        if self._step % self.args.gradient_accumulation_steps == 0:
            words = np.random.SeedSequence(
                [self.args.seed, self.state.global_step, self.accelerator.process_index]
            )
            torch.manual_seed(int(words.generate_state(1)[0]))
        return super().training_step(*args, **kwargs)
