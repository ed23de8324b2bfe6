"""The loss: which published algorithm, as TRL arguments.

    algorithm   advantage of a rollout            loss                                              computed by
    grpo        (r - mean) / std                  clipped ratio per token, mean of each sequence    TRL
    dapo        (r - mean) / std                  clipped ratio, clip-higher, mean over tokens      TRL
    dr_grpo     r - mean                          clipped ratio, constant normaliser                TRL
    cispo       (r - mean) / std                  capped ratio as a coefficient, mean over tokens   TRL
    max_rl      (r - mean) / mean                 clipped ratio per token, mean over tokens         TRL
    rloo        r - mean of the others            clipped ratio of the sequence                     losses.py
    dro         r - mean                          log-prob, squared log-ratio as penalty            losses.py
    oapl        r - b1 log mean exp(r / b1)       squared regression of the log-ratio               losses.py

All of them see the log-probs of the policy that sampled, so stale groups are corrected in each (in `dro` and `oapl` by
the regression itself). `correction` replaces the clipped ratio by a truncated or masked importance weight. Which to
take: `dapo` where lags stay small; `cispo` or a `sequence_mask` where the clip fraction grows; `oapl` for long lags;
`max_rl` where few rollouts of a group succeed. TRL's asynchronous trainer has one loss (clipped, mean over tokens) and
so serves `dapo` and `max_rl` only.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from snoozing_env.alarms import AlarmConfig
from snoozing_env.config import FrozenConfig
from snoozing_env.importance import EssConfig

Algorithm = Literal["grpo", "dapo", "dr_grpo", "rloo", "cispo", "dro", "oapl", "max_rl"]
Correction = Literal["ratio", "token_truncate", "token_mask", "sequence_truncate", "sequence_mask"]

CLIPPED: tuple[Algorithm, ...] = ("grpo", "dapo", "dr_grpo", "max_rl", "rloo")
"""Losses with a clipped ratio, which a `correction` can take the place of."""
ASYNCHRONOUS: tuple[Algorithm, ...] = ("dapo", "max_rl")
"""Losses that TRL's asynchronous trainer can compute."""
UPPER_CLIP: dict[Algorithm, float] = {"dapo": 0.28, "cispo": 5.0}
"""Published upper clips where they differ from the lower one: DAPO's clip-higher; the cap of ScaleRL's CISPO."""


class TrainConfig(FrozenConfig):
    """Optimizer, batch and algorithm."""

    steps: int = Field(default=100, ge=1)
    """Optimizer steps."""
    batch_groups: int = Field(default=16, ge=1)
    """B: informative groups per step."""
    algorithm: Algorithm = "dapo"
    """`dapo` (token-mean loss, clip-higher), `grpo` (sequence-mean loss), `dr_grpo` (constant length normaliser,
    advantages without the std), `rloo`, `cispo`, `dro`, `oapl` or `max_rl`."""
    trainer: Literal["grpo", "async_grpo"] = "grpo"
    """TRL's trainer underneath. Both train stale groups within `pacing.max_staleness`; `async_grpo` packs shared
    prefixes, so that a group's prompt is computed once."""
    correction: Correction = "ratio"
    """How stale rollouts are corrected in losses with a clipped ratio: by that `ratio` itself, or by an importance
    weight without gradient, capped (`truncate`) or zero outside its range (`mask`), of each token or of the sequence."""
    correction_max: float = Field(default=2.0, gt=0)
    """Largest importance weight, with a `correction`."""
    correction_min: float = Field(default=0.0, ge=0)
    """Smallest importance weight, with a `correction`; weights below are raised to it or masked."""
    dro_beta: float = Field(default=0.05, gt=0)
    """Weight of DRO's squared log-ratio of the sequence."""
    oapl_beta: float = Field(default=1e-3, gt=0)
    """b2 of OAPL: how far the log-ratio of a sequence moves for its advantage; smaller moves further."""
    oapl_value_beta: float = Field(default=1.0, gt=0)
    """b1 of OAPL: temperature of the group's value, between its mean (large) and its best reward (small)."""
    epsilon: float = Field(default=0.2, gt=0)
    """Lower clip range of the importance ratio."""
    epsilon_high: float | None = Field(default=None, gt=0)
    """Upper clip range; None = 0.28 for `dapo`, `epsilon` otherwise. For `cispo` the largest ratio itself, None = 5."""
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
    ess: EssConfig = EssConfig()
    """What a low effective sample size does to the learning rate."""
    alarms: AlarmConfig = AlarmConfig()
    """When the run says that something is wrong, and when it stops."""

    @model_validator(mode="after")
    def _check_correction(self) -> TrainConfig:
        if self.correction != "ratio" and self.algorithm not in CLIPPED:
            raise ValueError(
                f"correction {self.correction!r} replaces a clipped ratio, which {self.algorithm!r} has not; leave it at "
                f"'ratio' or use one of {', '.join(CLIPPED)}"
            )
        if self.correction_min >= self.correction_max:
            raise ValueError(
                f"correction_min {self.correction_min} is not below correction_max {self.correction_max}"
            )
        return self

    @model_validator(mode="after")
    def _check_trainer(self) -> TrainConfig:
        if self.trainer == "grpo":
            return self
        if self.algorithm not in ASYNCHRONOUS or self.correction != "ratio":
            raise ValueError(
                f"trainer 'async_grpo' computes one loss (clipped ratio, mean over tokens), not {self.algorithm!r} with "
                f"correction {self.correction!r}; use {' or '.join(ASYNCHRONOUS)} with 'ratio', or trainer 'grpo', which "
                "trains stale groups as well"
            )
        if self.beta:
            raise ValueError(f"trainer 'async_grpo' has no KL penalty, beta is {self.beta}; set it to 0")
        return self

    @model_validator(mode="after")
    def _check_clip(self) -> TrainConfig:
        if self.epsilon_high is not None and self.epsilon_high < self.epsilon:
            raise ValueError(
                f"epsilon_high {self.epsilon_high} is below epsilon {self.epsilon}; clip-higher needs it above"
            )
        return self

    @property
    def upper_clip(self) -> float:
        return self.epsilon_high or UPPER_CLIP.get(self.algorithm, self.epsilon)

    @property
    def clip_range(self) -> tuple[float, float]:
        """Importance ratios that the loss lets through."""
        if self.correction != "ratio":
            return self.correction_min or 1e-6, self.correction_max
        return (
            (1e-6, self.upper_clip) if self.algorithm == "cispo" else (1 - self.epsilon, 1 + self.upper_clip)
        )


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
        # Where the loss is ours, TRL's still gives the metrics of the clip.
        "loss_type": config.algorithm if config.algorithm in ("grpo", "dr_grpo", "cispo") else "dapo",
        "scale_rewards": "group" if config.algorithm in ("grpo", "dapo", "cispo") else "none",
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


_SYNCHRONOUS_ONLY = ("loss_type", "scale_rewards", "beta")


def async_grpo_arguments(arguments: dict[str, Any]) -> dict[str, Any]:
    """The same run as keyword arguments of `trl.experimental.async_grpo.AsyncGRPOConfig`.

    TRL's own bound is set out of the way: it drops what is too old after it was paid for, counts one step too few
    (bound 4 trains at 5, seen on 1.16), and ours holds before. `token_budget` would ask a vLLM server for its longest
    sequence; -1 packs a fixed number of rollouts.
    """
    kept = {name: value for name, value in arguments.items() if name not in _SYNCHRONOUS_ONLY}
    return {**kept, "max_staleness": 10**6, "token_budget": -1, "dtype": "float32"}
