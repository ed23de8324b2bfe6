"""What a lab policy is built from; two equal configs and the same examples give the same cached checkpoint."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field, model_validator
from pydantic_config import BaseConfig


class WarmupConfig(BaseConfig):
    """Supervised steps that give the policy something to sharpen: RL from random weights never meets a reward."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    steps: int = Field(default=700, ge=0)
    """Most optimizer steps; 0 leaves random weights."""
    enough_loss: float = Field(default=0.0, ge=0)
    """Stop once the loss is down to this, looked at every 50 steps over the last 20; 0 = take all the steps. For a skill
    that comes suddenly: when it does is a matter of luck, and soon after it there is nothing left for RL to learn."""
    batch: int = Field(default=128, ge=1)
    """Examples per step."""
    learning_rate: float = Field(default=5e-3, gt=0)
    """Peak of AdamW's rate; a linear rise, then a cosine fall."""
    rise_steps: int | None = Field(default=None, ge=1)
    """Steps of the rise; None = a tenth of them all."""
    final_rate: float = Field(default=0.1, gt=0, le=1)
    """Share of the peak at which the fall ends; 1 = no fall. A skill that comes suddenly and late, such as looking a key
    up, wants the full rate until it is there."""
    text_weight: float = Field(default=0.0, ge=0)
    """Weight of the mean loss over every token, the prompt's among them, beside that of the answer. To look a key up,
    the policy must first see which value stands after which key; the answer alone hardly says so, and a tenth of the
    loss of the whole text does."""
    careless: float = Field(default=0.0, ge=0, lt=1)
    """Share of demonstrations with a wrong character in the answer, drawn anew at every step of the last
    `careless_steps`. The policy first learns the skill and then the habit of slipping; RL has to unlearn the
    habit only, as with a pretrained model. A policy this small that starts RL half-way into learning to carry
    gains 5 points in 80 steps: RL does not teach it that."""
    careless_steps: int = Field(default=0, ge=0)
    """How many of the last steps are careless; slips from the first step on keep the skill from being learned."""
    careless_at: Literal["one", "all"] = "one"
    """How many characters of a careless answer are wrong. `one` leaves a policy that is right in a tenth of its answers
    at least; `all` one that knows them and hardly ever gives them, one time in a hundred with two digits."""
    careless_on: str = ""
    """Only prompts that contain this text get careless demonstrations; empty = all of them."""

    @model_validator(mode="after")
    def _careless_within(self) -> WarmupConfig:
        if self.careless_steps > self.steps:
            raise ValueError(f"careless_steps is {self.careless_steps}, more than all steps, {self.steps}")
        if self.careless_steps and self.enough_loss:
            raise ValueError(
                f"careless_steps is {self.careless_steps} and enough_loss {self.enough_loss}: a warm-up that may stop "
                "early has no known last steps; drop one of the two"
            )
        return self


class LabConfig(BaseConfig):
    """A tiny Qwen3 model. The defaults have 0.5 M parameters and a head size that vLLM's CPU attention knows."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    hidden_size: int = Field(default=128, ge=32)
    intermediate_size: int = Field(default=384, ge=32)
    layers: int = Field(default=2, ge=1)
    heads: int = Field(default=4, ge=1)
    """Query heads."""
    kv_heads: int = Field(default=4, ge=1)
    """Key and value heads; divides `heads`."""
    head_dim: int = 32
    """One of vLLM's CPU head sizes: 32, 64, 80, 96, 112, 128."""
    context: int = Field(default=256, ge=16)
    """Longest prompt plus completion, in characters."""
    tie_embeddings: bool = False
    """Share the input and output embedding; off, because vLLM's CPU build reloads a tied head wrongly."""
    initializer_range: float = Field(default=0.06, gt=0)
    """Standard deviation of the initial weights; at the usual 0.02 a model this narrow takes over twice the steps
    to learn to carry."""
    seed: int = 0
    """Seeds the weights and the order of the warm-up."""
    warmup: WarmupConfig = WarmupConfig()

    @model_validator(mode="after")
    def _shape_fits(self) -> LabConfig:
        if self.heads % self.kv_heads:
            raise ValueError(f"kv_heads is {self.kv_heads}; it must divide heads, which is {self.heads}")
        known = (32, 64, 80, 96, 112, 128)
        if self.head_dim not in known:
            raise ValueError(f"head_dim is {self.head_dim}; vLLM on CPU serves only {known}")
        return self
