"""The snooze factors of a task set's config: the same rules for every environment."""

from __future__ import annotations

import math

import verifiers.v1 as vf
from pydantic import Field, field_serializer, field_validator


class FactorOptions(vf.TasksetConfig):
    """Base of a task set's config; subclasses say in their own words what None and the names mean."""

    snooze_factor: float | None = None
    """Passes to skip after a too-easy group, for every task; None = the environment's or the scheduler's own."""
    snooze_factors: dict[str, float] = Field(default_factory=dict)
    """The same by name; wins over `snooze_factor`."""

    @field_validator("snooze_factors")
    @classmethod
    def _factors_count_passes(cls, factors: dict[str, float]) -> dict[str, float]:
        if wrong := {name: factor for name, factor in factors.items() if not factor >= 0}:
            raise ValueError(f"snooze factors count passes to skip and are 0 or more, got {wrong}")
        return factors

    @field_serializer("snooze_factor", when_used="json")
    def _one_as_text(self, factor: float | None) -> float | str | None:
        return _finite(factor)

    @field_serializer("snooze_factors", when_used="json")
    def _each_as_text(self, factors: dict[str, float]) -> dict[str, float | str | None]:
        return {name: _finite(factor) for name, factor in factors.items()}


def _finite(factor: float | None) -> float | str | None:
    """JSON has no infinity: a saved run's "for good" must not come back as null."""
    return "Infinity" if factor is not None and math.isinf(factor) else factor
