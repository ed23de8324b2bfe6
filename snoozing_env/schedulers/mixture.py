"""Shares of datasets: by draw, or of the final batch, exact to the group (M1, M2, M3).

draws    ideal = share · n + what is owed ─▶ largest remainder ─▶ groups per dataset; a dataset that has nothing
         to give lends its places to the others and is repaid once it can give again
batch    `batch_shares(B)` is what each dataset contributes to a trained batch; the loop refills what filtering took
         with `draw(n, missing=...)`, from the same dataset, so filtering cannot tilt the mixture; `settle` says what
         came of it, and who had to lend places is repaid by half its share again in each later batch
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from pydantic import Field, PositiveFloat, field_validator

from snoozing_env.config import FrozenConfig
from snoozing_env.errors import ConfigError, did_you_mean
from snoozing_env.types import Floats, Ints


class MixtureConfig(FrozenConfig):
    """How much of each dataset is drawn and trained on."""

    weights: dict[str, PositiveFloat] = Field(default_factory=dict)
    """Relative weight per dataset. Datasets that are not named weigh as many tasks as they have, so name all or none."""
    shares_of: Literal["draws", "batch"] = "draws"
    """`draws`: the shares hold before filtering, and a filtered group is replaced by a new draw with the same weights;
    a dataset that is filtered more then shrinks in the batch (seed S0, figure 3). `batch`: the shares of every trained
    batch are exact, and a filtered group is replaced from its own dataset."""
    floors: dict[str, float] = Field(default_factory=dict)
    """Least share per dataset, whatever the weights say."""
    count_asleep: bool = True
    """Whether sleeping tasks count in the weight of a dataset that is not named."""
    owe_at_most: int = Field(default=64, ge=0)
    """Groups a dataset is repaid at most for draws or batches in which it had nothing to give; 0 = never repaid, the
    others keep its places."""
    lend_after: float = Field(default=16.0, gt=0)
    """`batch` only: groups that may be generated for each of a dataset's places in a batch; after that, or at once
    when all its tasks sleep, the others get the places still open. Half of ladder.partial_after at most."""

    @field_validator("floors")
    @classmethod
    def _room_for_all(cls, floors: dict[str, float]) -> dict[str, float]:
        if any(not 0 <= f <= 1 for f in floors.values()) or sum(floors.values()) > 1:
            raise ValueError(f"floors {floors}: shares between 0 and 1 that sum to at most 1 are wanted")
        return floors


class Mixture:
    """Splits n groups among D datasets."""

    def __init__(self, config: MixtureConfig, names: Sequence[str], size_D: Ints) -> None:
        for name in (*config.weights, *config.floors):
            if name not in names:
                raise ConfigError(
                    f"scheduler.mixture names the dataset {name!r}, which no task is of.{did_you_mean(name, names)} "
                    f"Datasets: {', '.join(sorted(names))}."
                )
        self.config, self.names = config, tuple(names)
        self._size_D = size_D
        self._floor_D = np.array([config.floors.get(name, 0.0) for name in names])
        self._owed_D = np.zeros(len(names))
        """Groups each dataset is behind (+) or ahead (-) of its share of draws."""
        self._batch_owed_D = np.zeros(len(names))
        """The same for trained batches; within one group of zero where nobody has lent a place."""
        self._barren_D = np.zeros(len(names), np.bool_)
        """Asked in vain at great cost in the last batch: until it gives again, it is asked for one group a batch."""

    def shares(self, awake_D: Ints) -> Floats:
        """[D] wanted shares, floors included; they sum to 1."""
        size_D = self._size_D if self.config.count_asleep else np.maximum(awake_D, 1)
        weight_D = np.array(
            [self.config.weights.get(name, float(n)) for name, n in zip(self.names, size_D, strict=True)]
        )
        share_D = weight_D / weight_D.sum()
        held = np.zeros(len(share_D), np.bool_)
        while (
            low := ~held & (share_D < self._floor_D)
        ).any():  # a raised floor can push another share under its own
            held |= low
            rest = 1.0 - self._floor_D[held].sum()
            free_D = np.where(held, 0.0, weight_D)
            share_D = np.where(held, self._floor_D, rest * free_D / max(free_D.sum(), 1e-300))
        return share_D / share_D.sum()

    def plan(self, n: int, *, drawn_D: Ints, open_D: Ints, awake_D: Ints) -> Ints:
        """[D] groups to choose per dataset so that, with those already drawn for this draw, n come out.

        Fewer only where all open tasks together are fewer.
        """
        ideal_D = self.shares(awake_D) * n + self._owed_D
        plan_D = fill(n - int(drawn_D.sum()), ideal_D - drawn_D, open_D)
        most = float(self.config.owe_at_most)
        behind_D = ideal_D - drawn_D - plan_D
        # Rounding is always carried, or three datasets of equal weight would not get equal shares of draws of one.
        self._owed_D = np.clip(behind_D, -max(most, 1.0), max(most, 1.0))
        return plan_D

    def batch_shares(self, batch: int, awake_D: Ints) -> dict[str, int]:
        """Groups per dataset in the next trained batch: largest remainder, the rounding carried to later batches.

        They sum to less than `batch` only where datasets are barren; what is left may be anybody's.
        """
        due_D = self.shares(awake_D) * batch
        # At its own pace: a batch that repaid a long absence at once would hold nothing else.
        pace_D = np.maximum(due_D / 2, 1.0)
        ideal_D = due_D + np.clip(self._batch_owed_D, -pace_D, pace_D)
        share_D = fill(batch, ideal_D, np.where(self._barren_D, 1, batch))
        self._owe_batches(due_D - share_D)
        return dict(zip(self.names, share_D.tolist(), strict=True))

    def settle(self, asked: Mapping[str, int], trained: Mapping[str, int], barren: Collection[str]) -> None:
        """What became of `batch_shares`: groups trained by dataset, and who cost too much for a place (M2)."""
        asked_D, trained_D = (np.array([m.get(n, 0) for n in self.names]) for m in (asked, trained))
        self._owe_batches(asked_D - trained_D)
        was_barren_D = np.array([name in barren for name in self.names])
        self._barren_D = (trained_D == 0) & (was_barren_D | (self._barren_D & (asked_D == 0)))

    def _owe_batches(self, more_D: Floats | Ints) -> None:
        most = max(float(self.config.owe_at_most), 1.0)
        self._batch_owed_D = np.clip(self._batch_owed_D + more_D, -most, most)

    def lacking(self, wanted: Mapping[str, int]) -> Floats:
        """[D] shares of what a batch still lacks; zero where nothing is wanted."""
        lack_D = np.array([float(wanted.get(name, 0)) for name in self.names])
        return lack_D / max(lack_D.sum(), 1.0)

    def missing(self, n: int, wanted: Mapping[str, int], *, drawn_D: Ints, open_D: Ints) -> Ints:
        """[D] n groups in proportion to what each dataset still lacks in a batch; none takes another's."""
        ideal_D = self.lacking(wanted) * n - drawn_D
        room_D = np.minimum(open_D, np.ceil(np.maximum(ideal_D, 0.0))).astype(np.int64)
        return fill(n - int(drawn_D.sum()), ideal_D, room_D)

    def state(self) -> dict[str, Any]:
        """What each dataset is owed in draws and in batches, and whether it is barren, by name."""
        columns = (self._owed_D, self._batch_owed_D, self._barren_D)
        rows = zip(self.names, *(column.tolist() for column in columns), strict=True)
        return {name: list(owed) for name, *owed in rows}

    def restore(self, state: Mapping[str, Any]) -> None:
        for i, name in enumerate(self.names):
            self._owed_D[i], self._batch_owed_D[i], self._barren_D[i] = state.get(name, (0.0, 0.0, False))


def fill(n: int, ideal_D: Floats, room_D: Ints) -> Ints:
    """[D] whole numbers near `ideal_D`, at most `room_D`, that sum to n (or to the room, if that is less).

    Largest remainder; what a full dataset cannot take goes to those with room, the one furthest behind first.
    """
    n = min(n, int(room_D.sum()))
    share_D = np.clip(np.floor(ideal_D), 0, room_D).astype(np.int64)
    while (left := n - int(share_D.sum())) != 0:
        behind_D = ideal_D - share_D
        if left > 0:
            behind_D[share_D >= room_D] = -np.inf
            share_D[np.argmax(behind_D)] += 1
        else:
            behind_D[share_D == 0] = np.inf
            share_D[np.argmin(behind_D)] -= 1
    return share_D
