"""What crosses a layer, as frozen data.

Axis legend, used in every name of this package:

    N tasks · B groups in a batch · G rollouts of one task (a group) · T tokens · D datasets

`rewards_G` is a [G] array, `probs_N` one value per task. `p` is a pass rate, `version` counts
weight updates of the policy and is the only clock a scheduler knows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

FinishReason = Literal["stop", "length", "error"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskInfo:
    """What a scheduler may know of a task before anything was rolled out.

    `key` is content, never position: state survives a reordered or extended task set (D6).
    """

    key: str
    dataset: str = ""
    difficulty_prior: float | None = None
    """Expected *pass rate* in [0, 1] before any rollout, None = unknown."""
    snooze_factor: float | None = None
    """Passes to skip after a too-easy group; 0 = never snooze, inf = permanent, None = dataset's or global (Z6)."""
    cluster: str | None = None
    text: str = ""
    side: str | None = None
    """One-sided behaviour that the task rewards ("refuse", "comply"), for the conflict monitor (M4)."""
    duration_s: float | None = None
    """Seconds that a group is expected to take before any was measured, None = like the others (A3)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupOutcome:
    """What a scheduler learns from one finished group (D1)."""

    task: int
    """Catalogue index in [0, N)."""
    rewards_G: Floats
    """[G] rewards in [0, 1]; meaningful only where valid_G."""
    valid_G: Bools | None = None
    """[G] False where infrastructure failed, the rollout was cancelled or the verdict is unknown. None = all valid."""
    truncated_G: Bools | None = None
    """[G] True where the completion hit its token limit. None = none did."""
    version: int = 0
    """Policy version that sampled the first token."""
    last_version: int | None = None
    """Policy version that sampled the last token; None = the same."""
    duration_s: float = 0.0
    """Wall seconds from dispatch to the last verdict."""
    tokens: int = 0
    """Generated tokens over the whole group."""

    def __post_init__(self) -> None:
        rewards = np.asarray(self.rewards_G, dtype=np.float64)
        valid = (
            np.ones(rewards.shape, np.bool_) if self.valid_G is None else np.asarray(self.valid_G, np.bool_)
        )
        if rewards.ndim != 1 or rewards.size == 0:
            raise ValueError(f"rewards_G must be a non-empty [G] array, got shape {rewards.shape}")
        if valid.shape != rewards.shape:
            raise ValueError(
                f"valid_G has shape {valid.shape}, rewards_G {rewards.shape}; they share the G axis"
            )
        object.__setattr__(self, "rewards_G", rewards)
        object.__setattr__(self, "valid_G", valid)

    @property
    def valid_rewards(self) -> Floats:
        """[≤G] rewards of the valid rollouts only."""
        return self.rewards_G[self.valid_G]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trajectory:
    """One rollout as the trainer needs it: exact token ids and the behaviour policy's log-probs."""

    prompt_ids: tuple[int, ...]
    completion_ids: tuple[int, ...]
    """At least one token."""
    logprobs: tuple[float, ...]
    """[T] log-probabilities under the policy that sampled them, at the sampling temperature; 0.0 where mask is 0."""
    mask: tuple[int, ...]
    """[T] 1 where the policy sampled the token, 0 where the environment wrote it."""
    reward: float
    valid: bool = True
    truncated: bool = False
    version: int = 0
    """Policy version of the first sampled token."""
    last_version: int = 0
    stored: bool = False
    """A stored success in a failed rollout's place, or an anchor; not a rollout of this group (B2)."""
    anchor: float = 0.0
    """Advantage of a stored success that is a positive example: trained by cross-entropy, without an importance ratio
    (B2). 0 = it has a ratio, and its group's advantage."""
    text: str = ""
    """The completion as the grader saw it."""
    error: str = ""
    """Type and message of the failure when not valid; never a secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """G rollouts of one task, with what the scheduler is told about them."""

    id: int
    """Dispatch number, unique in a run; seeds the group's sampling noise."""
    key: str
    """The task's durable key."""
    outcome: GroupOutcome
    trajectories: tuple[Trajectory, ...]
    prompt: str = ""
    gold: str = ""
    replayed: bool = False
    """Trained before, and handed out again by the replay buffer (B1)."""

    @property
    def tokens(self) -> int:
        return self.outcome.tokens

    @property
    def own_outcome(self) -> GroupOutcome:
        """What its own rollouts came to: a stored success counts as the failure whose place it took, so that nobody
        learns from it that the policy solved the task (B2)."""
        stored_G = np.array([t.stored for t in self.trajectories])
        if not stored_G.any():
            return self.outcome
        return replace(self.outcome, rewards_G=np.where(stored_G, 0.0, self.outcome.rewards_G))
