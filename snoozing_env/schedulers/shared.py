"""What the configs of all kinds of scheduler share."""

from __future__ import annotations

from pydantic import Field

from snoozing_env.config import FrozenConfig
from snoozing_env.schedulers.conflict import ConflictConfig
from snoozing_env.schedulers.difficulty import DifficultyConfig
from snoozing_env.schedulers.mixture import MixtureConfig
from snoozing_env.schedulers.selector import Pool, Selector
from snoozing_env.schedulers.snooze import SnoozeConfig


class CurriculumConfig(FrozenConfig):
    """What every kind of scheduler shares."""

    snooze: SnoozeConfig = SnoozeConfig()
    """When a task sleeps: --scheduler.snooze.skip-passes N (default: 5.0), .mode, .spread, .datasets, .easy-share,
    .tolerance, .too-hard, .too-hard-cap."""
    difficulty: DifficultyConfig = DifficultyConfig()
    """How pass rates are estimated: --scheduler.difficulty.estimate (last, ema or beta), .alpha, .decay,
    .prior-strength."""
    mixture: MixtureConfig | None = None
    """Shares of datasets; None = wherever the rule finds tasks."""
    conflict: ConflictConfig = ConflictConfig()
    """Opposed behaviours to keep in balance: [scheduler.conflict] pairs = [["refuse", "comply"]] (default: none),
    .window, .vanished, .drop, .looks, .cap, .calm, .release, .confidence."""
    min_valid: int = Field(default=2, ge=1)
    """Groups with fewer valid rollouts teach nothing and are offered again (D1)."""
    max_retries: int = Field(default=2, ge=0)
    """Times in a row that such a group is offered again at once; after that it waits for its next pass."""

    @property
    def name(self) -> str:
        """The config's `kind`, under which its state is saved."""
        return str(type(self).model_fields["kind"].default)

    def selector(self, pool: Pool) -> Selector | None:
        """The rule that picks tasks; None = passes alone."""
        return None


class SelectedConfig(CurriculumConfig):
    """What every kind with a selector shares."""

    epsilon: float = Field(default=0.02, gt=0, le=1)
    """Share of each draw that comes from uniform passes, so that no rule starves a task (S11): each is drawn within
    1/epsilon passes of draws. The floor's groups are as informative as uniform's; in the chapter's simulation the
    band keeps .963 of its groups with hardly a floor, .961 at .02, .957 at .05."""
    half_life: float = Field(default=200.0, gt=0)
    """Weight updates after which an unvisited task's evidence counts half; inf = never (S4)."""
