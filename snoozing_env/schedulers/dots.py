"""`dots`: difficulty-targeted online selection, predicted from the tasks' texts (S7; Sun et al., 2026).

refresh   every R weight updates: K random tasks, drawn like any other and so trained on, are the reference
predict   once they are judged: every task's difficulty from the references with similar texts (`prediction.py`)
draw      without replacement ∝ exp(−|d̂ − target| / τ), as the n largest of logit + Gumbel noise

While references are still being judged, the last prediction stands; before the first one draws are random, and
all of them are references. A reference whose group never came back is replaced after a while, so no lost rollout
holds up a refresh.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from snoozing_env.config import FrozenConfig
from snoozing_env.embeddings import EmbeddingConfig, HashedConfig, embed
from snoozing_env.errors import CatalogueError
from snoozing_env.schedulers.difficulty import Columns
from snoozing_env.schedulers.outcomes import OutcomeTable
from snoozing_env.schedulers.prediction import forecast
from snoozing_env.schedulers.reversion import Floats32
from snoozing_env.schedulers.selector import Pool, RankingSelector, Selector, one_by_one, sample
from snoozing_env.schedulers.shared import SelectedConfig
from snoozing_env.types import Bools, Ints

NOT_A_REFERENCE, DRAWN = np.float32(-1), np.float32(-2)
"""In place of a reference's difficulty: the task is none, or its group is still out."""
UNKNOWN = np.float32(-1)
"""In place of a prediction: there was none yet."""
LATER = np.float32(1e5)
"""Added to the key of a task that had its turn since the last prediction; keys are under 1/τ otherwise."""
JUDGED_SHARE = 0.9
"""Of the reference that is waited for: the slowest groups are not worth a stale prediction."""


class DotsOptions(FrozenConfig):
    """The reference, the prediction and the target."""

    kind: Literal["dots"] = "dots"
    embedding: EmbeddingConfig = HashedConfig()
    """How a text becomes a vector: --scheduler.embedding.kind (hashed, sentence-transformers or endpoint)."""
    reference: int = Field(default=256, ge=1)
    """K: tasks rolled out at random per refresh; at most a quarter of the pool."""
    refresh_updates: int = Field(default=16, ge=1)
    """R: weight updates from one refresh to the next. At 64 groups a batch, 256 references are a quarter of 16 batches."""
    refresh_groups: int = Field(default=4096, ge=1)
    """Drawn groups after which the reference is refreshed whatever the version: a trainer that reports none has no
    other clock."""
    rule: Literal["attention", "ridge"] = "attention"
    """The paper's similarity-weighted mean, or a linear map learned on the references."""
    temperature: float | None = Field(default=None, gt=0)
    """Of the attention over cosine similarities; None = the one with the least leave-one-out error, at each refresh."""
    calibrate: bool = True
    """Platt-scale predictions on the references."""
    target: float = Field(default=0.5, ge=0, le=1)
    """Wanted difficulty: 1 - pass rate."""
    tau: float = Field(default=1e-3, ge=1e-5)
    """τ of the draw; 1e-3 is all but greedy."""
    own_prior: float = Field(default=float("inf"), gt=0)
    """Rollouts that a prediction counts as beside the task's own, faded ones; inf = the prediction alone, as in the
    paper."""
    repeat: bool = False
    """Whether a task may have another turn before the next prediction while others have had none."""

    def selector(self, pool: Pool) -> Selector:
        return Dots(self, pool)


class DotsConfig(DotsOptions, SelectedConfig):
    """Predicted difficulty nearest to one half."""

    kind: Literal["dots"] = "dots"


class Dots(RankingSelector):
    def __init__(self, options: DotsOptions, pool: Pool) -> None:
        super().__init__(pool)
        self.options = options
        n = len(pool.tasks)
        self.vectors_NH = embed(options.embedding, _texts(pool))
        self.size = min(options.reference, max(1, n // 4))
        """K, as far as the pool has it."""
        self.predicted_N = np.full(n, UNKNOWN, np.float32)
        """Predicted difficulty."""
        self.reference_N = np.full(n, NOT_A_REFERENCE, np.float32)
        """Measured difficulty of the references of the running refresh."""
        self.had_turn_N = np.zeros(n, np.bool_)
        """Drawn since the last prediction."""
        self._collecting, self._predicts = True, False
        self._wanted = self.size
        """References that are still to be drawn."""
        self._judged = 0
        self._at = 0
        """Policy version at which the running or last refresh began."""
        self._since = 0
        """Groups drawn since it began, or since lost references were replaced."""
        self.refreshes = 0
        self._correlation = self._slope = 0.0

    # -- drawing ----------------------------------------------------------------------------------------

    def choose(self, n: int, open_N: Bools) -> Ints:
        self._advance()
        wanted = n if not self._predicts else min(n, self._wanted) if self._collecting else 0
        if wanted <= 0:
            return super().choose(n, open_N)
        fresh = np.flatnonzero(open_N & (self.reference_N == NOT_A_REFERENCE))
        reference = sample(fresh, wanted, self.pool.rng)
        if len(fresh) <= wanted:
            self._wanted = min(self._wanted, len(reference))  # nothing else is open: go on with what there is
        self._wanted -= len(reference)
        self.reference_N[reference] = DRAWN
        rest_N = open_N.copy()
        rest_N[reference] = False
        return np.concatenate([reference, super().choose(n - len(reference), rest_N)])

    def choose_each(self, plan_D: Ints, open_N: Bools, dataset_N: NDArray[np.int32]) -> Ints:
        self._advance()
        if self._predicts and not (self._collecting and self._wanted > 0):
            return super().choose_each(plan_D, open_N, dataset_N)
        return one_by_one(self, plan_D, open_N, dataset_N)

    def keys(self, part: slice) -> Floats32:
        """Gumbel top-k: −(logit + noise), the noise as −log of an exponential."""
        o = self.options
        far = np.abs(self.difficulty(part) - np.float32(o.target)) * np.float32(1 / o.tau)
        race = self.pool.rng.standard_exponential(len(far), dtype=np.float32)
        key = far + np.log(race + np.float32(1e-30))
        return key if o.repeat else key + LATER * self.had_turn_N[part]

    def difficulty(self, part: slice) -> Floats32:
        """The prediction; with a finite `own_prior`, blended with the task's own faded rollouts."""
        predicted, strength = self.predicted_N[part], np.float32(self.options.own_prior)
        if np.isinf(strength):
            return predicted
        prior = self.pool.difficulty
        s, f = self.pool.reversion.counts(part)
        s, f = s - prior.floor_s_N[part], f - prior.floor_f_N[part]
        return (strength * predicted + f) / (strength + s + f)

    def drew(self, task_B: Ints) -> None:
        self.had_turn_N[task_B] = True
        self._since += len(task_B)

    # -- learning ---------------------------------------------------------------------------------------

    def observe(self, table: OutcomeTable, *, easy_B: Bools) -> None:
        ours = self.reference_N[table.task_B] == DRAWN
        rate = table.sum_B[ours] / table.valid_B[ours]
        self.reference_N[table.task_B[ours]] = np.clip(1 - rate, 0, 1)
        self._judged += int(ours.sum())

    def _advance(self) -> None:
        """Begin, end or mend a refresh, whichever is due."""
        o, now = self.options, self.pool.reversion.now
        if not self._collecting:
            if now - self._at >= o.refresh_updates or self._since >= o.refresh_groups:
                self._begin(now)
        elif self._judged >= JUDGED_SHARE * self.size:
            self.refresh()
        elif self._wanted <= 0 and self._since >= 2 * self.size:
            self._wanted = self.size - self._judged
            self._since = 0

    def _begin(self, now: int) -> None:
        self.reference_N[:] = NOT_A_REFERENCE
        self._collecting, self._wanted, self._judged = True, self.size, 0
        self._at, self._since = now, 0

    def refresh(self) -> None:
        """Predict every task from the references judged so far."""
        reference_K = np.flatnonzero(self.reference_N >= 0)
        found = forecast(
            self.vectors_NH,
            reference_K,
            self.reference_N[reference_K].astype(np.float64),
            rule=self.options.rule,
            temperature=self.options.temperature,
            calibrated=self.options.calibrate,
        )
        self.predicted_N[:] = found.difficulty_N
        self.had_turn_N[:] = False
        self._collecting, self._predicts = False, True
        self.refreshes += 1
        self._correlation, self._slope = found.correlation, found.slope

    # -- state ------------------------------------------------------------------------------------------

    def columns(self) -> Columns:
        """9 bytes a task; vectors are computed again, or read from their cache."""
        return {
            "dots_predicted": self.predicted_N,
            "dots_reference": self.reference_N,
            "dots_had_turn": self.had_turn_N,
        }

    def state(self) -> dict[str, Any]:
        return {
            "collecting": self._collecting,
            "predicts": self._predicts,
            "wanted": self._wanted,
            "at": self._at,
            "since": self._since,
            "refreshes": self.refreshes,
            "correlation": self._correlation,
            "slope": self._slope,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        self._collecting, self._predicts = bool(state["collecting"]), bool(state["predicts"])
        self._wanted, self._at, self._since = int(state["wanted"]), int(state["at"]), int(state["since"])
        self.refreshes = int(state["refreshes"])
        self._correlation, self._slope = float(state["correlation"]), float(state["slope"])
        self._judged = int((self.reference_N >= 0).sum())
        new_N = self.predicted_N < 0
        if self._predicts and new_N.any():  # tasks that joined with this run
            self.predicted_N[new_N] = (
                self.predicted_N[~new_N].mean() if not new_N.all() else self.options.target
            )

    def metrics(self) -> dict[str, float]:
        return {
            "dots_refreshes": float(self.refreshes),
            "dots_correlation": self._correlation,
            "dots_slope": self._slope,
            "dots_references": float(self._judged),
            "dots_predicted_mean": float(self.predicted_N.mean()) if self._predicts else self.options.target,
        }


def _texts(pool: Pool) -> list[str]:
    """[N] what difficulty is predicted from.

    Raises:
        CatalogueError: tasks without text.
    """
    texts = [task.text for task in pool.tasks]
    bare = [task.key for task in pool.tasks if not task.text.strip()]
    if bare:
        raise CatalogueError(
            f"scheduler.kind 'dots' predicts difficulty from the tasks' texts, and {len(bare)} of {len(texts)} have none "
            f"(the first: {bare[0]!r}); pass TaskInfo(text=...), or take a kind that needs no text, such as 'thompson'"
        )
    return texts
