"""GRPO's arithmetic in numpy: advantages of a group and the clipped surrogate with its gradient, for checks and reports.

The trainer library computes its own; these are the formulas to hold it against (data-side chapter, exercise 6).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from snoozing_env.types import Floats


def group_advantages(rewards_G: Floats, *, normalise: bool = True, tolerance: float = 1e-6) -> Floats:
    """[G] rewards minus their mean, over their standard deviation (n - 1) where `normalise` (GRPO; Dr. GRPO does not).

    All zero where the rewards are within `tolerance` of each other: such a group has no gradient (F1).
    """
    rewards = np.asarray(rewards_G, np.float64)
    if rewards.ndim != 1 or rewards.size == 0:
        raise ValueError(f"got rewards of shape {rewards.shape}; wanted a non-empty [G] array")
    centred = rewards - rewards.mean()
    if rewards.max() - rewards.min() <= tolerance:
        return np.zeros_like(centred)
    return centred / rewards.std(ddof=1) if normalise else centred


def leave_one_out(rewards_G: Floats) -> Floats:
    """[G] rewards minus the mean of the other rollouts (RLOO, arXiv 2402.14740); zero for a single rollout."""
    n = rewards_G.size
    return (rewards_G - rewards_G.mean()) * (n / (n - 1)) if n > 1 else np.zeros_like(rewards_G)


def max_rl_advantages(rewards_G: Floats) -> Floats:
    """[G] rewards minus their mean, over their mean: 1/p weighs hard tasks up (MaxRL, arXiv 2602.02710).

    Zero where nothing succeeded.
    """
    mean = float(rewards_G.mean())
    return (rewards_G - mean) / mean if mean > 0 else np.zeros_like(rewards_G)


def optimal_advantages(rewards_G: Floats, *, temperature: float) -> Floats:
    """[G] rewards minus the group's soft value b log mean exp(r / b) (OAPL, arXiv 2602.19362)."""
    top = float(rewards_G.max())
    return rewards_G - top - temperature * np.log(np.exp((rewards_G - top) / temperature).mean())


class Surrogate(NamedTuple):
    """The clipped objective of T tokens, to be maximised."""

    ratio_T: Floats
    """[T] π_θ / π_old."""
    value_T: Floats
    """[T] min(ratio · A, clip(ratio) · A)."""
    gradient_T: Floats
    """[T] derivative of the value with respect to log π_θ: ratio · A, or exactly 0 where the clip holds it."""


def clipped_surrogate(
    logprob_T: Floats, old_logprob_T: Floats, advantage_T: Floats, *, low: float = 0.2, high: float = 0.2
) -> Surrogate:
    """PPO's clipped objective per token (Schulman et al. 2017, equation 7); `high` > `low` is DAPO's clip-higher.

    A token whose ratio has passed the clip on the side its advantage pushes to contributes no gradient: what is stale
    enough is dead weight, which is why trajectories have a half-life and stored prompts have none.
    """
    new, old, advantage = (np.asarray(x, np.float64) for x in (logprob_T, old_logprob_T, advantage_T))
    if not new.shape == old.shape == advantage.shape:
        raise ValueError(
            f"got shapes {new.shape}, {old.shape} and {advantage.shape}; wanted one log-prob of each policy and one "
            "advantage per token"
        )
    ratio = np.exp(new - old)
    value = np.minimum(ratio * advantage, np.clip(ratio, 1 - low, 1 + high) * advantage)
    held = np.where(advantage > 0, ratio > 1 + high, ratio < 1 - low)
    return Surrogate(ratio, value, np.where(held, 0.0, ratio * advantage))
