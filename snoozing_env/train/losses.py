"""Losses and corrections that TRL's GRPO trainer lacks, over log-probs that carry the gradient (A10).

Axes: n sequences (rows of a micro-batch) · T tokens. A ratio is π_now / π_behaviour.

    rloo    -min(ρ A, clip(ρ) A)            ρ the ratio of the whole sequence (Ahmadian et al. 2024, as TRL's RLOO)
    dro     -A log π + ½ β (log ρ)²         Richemond et al. 2024, Kimi k1.5; β in `dro_beta`
    oapl    ½ β (log ρ - A* / β)²           Ritter et al. 2026; A* = r - V*, β in `oapl_beta`
    weights -w A log π                      w = ratio capped or masked, without gradient (truncated importance sampling)

OAPL is the published square divided by 2 β, so that its gradient at ρ = 1 is -A* ∇ log π like everyone else's and
`max_grad_norm` means the same. Its gradient (β log ρ - A*) ∇ log π is DRO's with another baseline: the group's soft
value in place of its mean.

Normalisers count what is live in the whole batch: rows that only fill a partial batch change nothing (F3).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from snoozing_env.advantages import group_advantages, leave_one_out, max_rl_advantages, optimal_advantages
from snoozing_env.train.grpo import Correction, TrainConfig
from snoozing_env.types import Floats

_CAP = 20.0
"""Largest |log ratio| of a sequence that is exponentiated; far past every clip."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """One micro-batch, as a loss sees it."""

    logps: torch.Tensor
    """[n, T] log-probs under the policy in training; carries the gradient."""
    behaviour: torch.Tensor
    """[n, T] log-probs under the policy that sampled."""
    advantages: torch.Tensor
    """[n]"""
    mask: torch.Tensor
    """[n, T] 1 where the policy sampled the token."""

    @property
    def log_ratio(self) -> torch.Tensor:
        """[n, T] zero where masked."""
        return (self.logps - self.behaviour) * self.mask


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Sizes of the whole batch that a micro-batch is part of."""

    rows: int
    """Rows that carry something."""
    tokens: float
    """Sampled tokens."""
    max_tokens: int
    """Longest completion allowed."""


def is_ours(config: TrainConfig) -> bool:
    """Whether the loss comes from here and not from TRL."""
    return config.algorithm in ("rloo", "dro", "oapl") or config.correction != "ratio"


def own_advantages(config: TrainConfig, rewards: Sequence[float | None], group_size: int) -> Floats | None:
    """[rows] advantages of a batch whose rows are whole groups in order, 0 for rows without a reward.

    None where TRL's are the algorithm's.
    """
    if config.algorithm not in ("rloo", "dro", "oapl", "max_rl"):
        return None
    result = np.zeros(len(rewards))
    for start in range(0, len(rewards), group_size):
        live = [i for i in range(start, start + group_size) if rewards[i] is not None]
        if live:
            result[live] = advantages_of(config, np.array([rewards[i] for i in live], np.float64))
    return result


def advantages_of(config: TrainConfig, rewards_G: Floats) -> Floats:
    """[G] advantages of the valid rollouts of a group."""
    match config.algorithm:
        case "rloo":
            return leave_one_out(rewards_G)
        case "max_rl":
            return max_rl_advantages(rewards_G)
        case "oapl":
            return optimal_advantages(rewards_G, temperature=config.oapl_value_beta)
        case "dro" | "dr_grpo":
            return rewards_G - rewards_G.mean()
        case "grpo" | "dapo" | "cispo":
            return group_advantages(rewards_G)


def own_loss(config: TrainConfig, terms: Terms, batch: Batch) -> torch.Tensor:
    """[] this micro-batch's share of the loss; the shares of a batch add up."""
    if config.correction != "ratio":
        return _normalised(config, weighted(config, terms), terms.mask, batch)
    match config.algorithm:
        case "dro":
            loss_n = dro(terms, beta=config.dro_beta)
        case "oapl":
            loss_n = oapl(terms, beta=config.oapl_beta)
        case _:
            loss_n = sequence_clipped(terms, low=config.epsilon, high=config.upper_clip)
    return loss_n.sum() / max(batch.rows, 1)


def sequence_clipped(terms: Terms, *, low: float, high: float) -> torch.Tensor:
    """[n] PPO's clipped objective with one ratio per sequence, negated."""
    ratio_n = terms.log_ratio.sum(-1).clamp(-_CAP, _CAP).exp()
    clipped_n = ratio_n.clamp(1 - low, 1 + high)
    return -torch.min(ratio_n * terms.advantages, clipped_n * terms.advantages)


def dro(terms: Terms, *, beta: float) -> torch.Tensor:
    """[n] policy gradient with a quadratic penalty on the sequence's log-ratio."""
    log_prob_n = (terms.logps * terms.mask).sum(-1)
    return -terms.advantages * log_prob_n + 0.5 * beta * terms.log_ratio.sum(-1) ** 2


def oapl(terms: Terms, *, beta: float) -> torch.Tensor:
    """[n] regression of the sequence's log-ratio on its optimal advantage."""
    return 0.5 * beta * (terms.log_ratio.sum(-1) - terms.advantages / beta) ** 2


def importance_weights(
    terms: Terms, correction: Correction, *, smallest: float, largest: float
) -> torch.Tensor:
    """[n, T] weights without gradient; a sequence's weight stands at each of its tokens.

    `truncate` brings ratios into the range (Ionides 2008), `mask` zeroes those outside it.
    """
    log_ratio = terms.log_ratio.detach()
    if correction.startswith("sequence"):
        log_ratio = log_ratio.sum(-1, keepdim=True).expand_as(log_ratio)
    ratio = log_ratio.clamp(-_CAP, _CAP).exp()
    if correction.endswith("truncate"):
        return ratio.clamp(smallest, largest)
    return ratio * ((ratio >= smallest) & (ratio <= largest))


def weighted(config: TrainConfig, terms: Terms) -> torch.Tensor:
    """[n, T] -w A, with the gradient -w A ∇ log π."""
    weights = importance_weights(
        terms, config.correction, smallest=config.correction_min, largest=config.correction_max
    )
    unit = (terms.logps - terms.logps.detach()).exp()
    return -weights * terms.advantages[:, None] * unit


def _normalised(config: TrainConfig, loss: torch.Tensor, mask: torch.Tensor, batch: Batch) -> torch.Tensor:
    """The mean that the algorithm takes: over tokens, sequences, or a constant length."""
    per_sequence = (loss * mask).sum(-1)
    match config.algorithm:
        case "grpo":
            return (per_sequence / mask.sum(-1).clamp(min=1)).sum() / max(batch.rows, 1)
        case "rloo":
            return per_sequence.sum() / max(batch.rows, 1)
        case "dr_grpo":
            return per_sequence.sum() / (max(batch.rows, 1) * batch.max_tokens)
        case _:
            return per_sequence.sum() / max(batch.tokens, 1.0)
