"""What a grader says about one reply."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Verdict:
    """A grader's answer; "unknown" is not "wrong"."""

    correct: bool | None
    """None = unknown: the *grader* failed, so the rollout says nothing about the policy (E3)."""
    reason: str
    """Why, in words a person can check."""
    hang: bool = False
    """True where grading ran into its deadline because of the reply."""


class GraderError(RuntimeError):
    """The grader failed; raised while scoring, so that the rollout is invalid and never counts as wrong (E3)."""
