"""The loss: which published algorithm, as TRL arguments."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from snoozing_env.config import FrozenConfig

Algorithm = Literal["grpo", "dapo", "dr_grpo"]


class TrainConfig(FrozenConfig):
    """Optimizer, batch and algorithm."""

    steps: int = Field(default=100, ge=1)
    """Optimizer steps."""
    batch_groups: int = Field(default=16, ge=1)
    """B: informative groups per step."""
    algorithm: Algorithm = "dapo"
    """`grpo` (sequence-mean loss, group-std advantages), `dapo` (token-mean loss, clip-higher, no KL) or `dr_grpo`
    (constant length normaliser, advantages without the std)."""
    epsilon: float = Field(default=0.2, gt=0)
    """Lower clip range of the importance ratio."""
    epsilon_high: float | None = Field(default=None, gt=0)
    """Upper clip range; None = 0.28 for `dapo`, `epsilon` otherwise."""
    beta: float = Field(default=0.0, ge=0)
    """KL penalty against the initial policy."""
    learning_rate: float = Field(default=1e-6, gt=0)
    """Peak learning rate of AdamW."""
    schedule: Literal["constant", "constant_with_warmup", "linear", "cosine"] = "constant"
    warmup_steps: int = Field(default=0, ge=0)
    weight_decay: float = Field(default=0.0, ge=0)
    max_grad_norm: float = Field(default=1.0, gt=0)
    micro_batch: int | None = Field(default=None, ge=1)
    """Rollouts per forward pass; None = the whole batch at once."""
    save_every: int = Field(default=20, ge=1)
    """Steps between two checkpoints."""
    keep_checkpoints: int = Field(default=2, ge=2)
    """Two at least, so that a kill while saving leaves a whole one."""
    device: Literal["auto", "cpu"] = "auto"
    bf16: bool = False
    """Mixed precision on GPUs; stays off on CPU, where the engine must agree with the trainer in fp32."""
    gradient_checkpointing: bool = False
    threads: int = Field(default=1, ge=1)
    """Torch threads; more than one beside another busy process is slower, not faster."""
    report_to: tuple[str, ...] = ()
    """Trackers of transformers, e.g. ("wandb",); the run log is always written."""

    @model_validator(mode="after")
    def _check_clip(self) -> TrainConfig:
        if self.epsilon_high is not None and self.epsilon_high < self.epsilon:
            raise ValueError(
                f"epsilon_high {self.epsilon_high} is below epsilon {self.epsilon}; clip-higher needs it above"
            )
        return self

    @property
    def upper_clip(self) -> float:
        return self.epsilon_high or (0.28 if self.algorithm == "dapo" else self.epsilon)


def grpo_arguments(
    config: TrainConfig, *, group_size: int, max_tokens: int, temperature: float, output: Path, seed: int
) -> dict[str, Any]:
    """Keyword arguments of `trl.GRPOConfig` for one informative batch per optimizer step.

    Raises:
        ValueError: the batch does not split into micro-batches.
    """
    rows = config.batch_groups * group_size
    micro = config.micro_batch or rows
    if rows % micro:
        raise ValueError(
            f"batch_groups x group_size = {rows} rollouts do not split into micro-batches of {micro}; use a divisor"
        )
    return {
        "output_dir": str(output),
        "seed": seed,
        "per_device_train_batch_size": micro,
        "gradient_accumulation_steps": rows // micro,
        "num_generations": group_size,
        "max_completion_length": max_tokens,
        "temperature": temperature,
        "loss_type": config.algorithm,
        "scale_rewards": "none" if config.algorithm == "dr_grpo" else "group",
        "epsilon": config.epsilon,
        "epsilon_high": config.upper_clip,
        "beta": config.beta,
        "learning_rate": config.learning_rate,
        "lr_scheduler_type": config.schedule,
        "warmup_steps": config.warmup_steps,
        "weight_decay": config.weight_decay,
        "max_grad_norm": config.max_grad_norm,
        "max_steps": config.steps,
        "logging_steps": 1,
        "save_strategy": "steps",
        "save_steps": config.save_every,
        "save_total_limit": config.keep_checkpoints,
        "ignore_data_skip": True,
        "bf16": config.bf16,
        "use_cpu": config.device == "cpu",
        "gradient_checkpointing": config.gradient_checkpointing,
        "dataloader_pin_memory": False,
        "disable_tqdm": True,
        "report_to": list(config.report_to) or "none",
    }
