"""The prior sidecar: how hard each task proved to be for one or several baseline models (D4), keyed by content.

One parquet row per task: prior mean, standard error, rollouts behind it, bucket, the two verdicts, and the rate of
each model (NaN where it has no valid rollout).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from snoozing_env.errors import StateError
from snoozing_env.schedulers.parquet import dump, parse
from snoozing_env.types import Bools, Floats, Ints

EDGES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
"""Bucket edges (D4); a bucket holds its lower edge, the last one both."""
RATE = "rate:"
COLUMNS = ("prior", "se", "k", "bucket", "postponed", "removable")


@dataclass(frozen=True, slots=True, kw_only=True)
class Priors:
    """Measured difficulty of N tasks."""

    keys: tuple[str, ...]
    """[N] durable task keys."""
    prior_N: Floats
    """Expected pass rate: the mean over models of their mean reward."""
    se_N: Floats
    """Its standard error; 0 where every rollout agreed, which says that k was too small to tell, not that it is exact."""
    k_N: Ints
    """Valid rollouts behind it, over all models."""
    bucket_N: Ints
    """Index of the bucket between EDGES."""
    postponed_N: Bools
    """No model ever earned anything: too hard for now, or broken (S0)."""
    removable_N: Bools
    """Every rollout of every model earned full marks: nothing to learn, unless it is forgotten (S0)."""
    rates: Mapping[str, Floats]
    """Model → [N] mean reward, NaN where it has no valid rollout."""


def measure(rewards: Mapping[str, Mapping[str, Sequence[float]]]) -> Priors:
    """Priors from task key → model → rewards in [0, 1] of the valid rollouts; a task without any is left out.

    Models count the same however many rollouts each has: SE² = Σ_m var_m / k_m / M². With one model and binary
    rewards that is sqrt(p (1 − p) / k): .177 for 4 of 8 (D4).
    """
    models = list(dict.fromkeys(model for by_model in rewards.values() for model in by_model))
    measured = {key: {m: r for m, r in by.items() if len(r)} for key, by in sorted(rewards.items())}
    measured = {key: by for key, by in measured.items() if by}
    rows = [_row(by) for by in measured.values()]
    prior_N = np.array([row[0] for row in rows], np.float64)
    flat = [[r for given in by.values() for r in given] for by in measured.values()]
    return Priors(
        keys=tuple(measured),
        prior_N=prior_N,
        se_N=np.array([row[1] for row in rows], np.float64),
        k_N=np.array([len(given) for given in flat], np.int64),
        bucket_N=bucket(prior_N),
        postponed_N=np.array([max(given) <= 0.0 for given in flat], np.bool_),
        removable_N=np.array([min(given) >= 1.0 for given in flat], np.bool_),
        rates={
            model: np.array(
                [float(np.mean(by[model])) if model in by else math.nan for by in measured.values()]
            )
            for model in models
        },
    )


def bucket(prior_N: Floats) -> Ints:
    """[N] index of the bucket of each prior."""
    # A mean such as 0.6000000000000001 from thirds and fifths belongs where its rounded value does.
    found = np.searchsorted(np.asarray(EDGES), np.round(prior_N, 9), side="right") - 1
    return np.clip(found, 0, len(EDGES) - 2).astype(np.int64)


def bucket_label(index: int) -> str:
    """`0.2–0.4`."""
    return f"{EDGES[index]:g}–{EDGES[index + 1]:g}"


def save_priors(priors: Priors, path: Path) -> None:
    """Write the sidecar.

    Raises:
        StateError: it cannot be written.
    """
    columns: dict[str, NDArray[np.generic]] = {name: getattr(priors, f"{name}_N") for name in COLUMNS}
    columns |= {f"{RATE}{model}": rates for model, rates in priors.rates.items()}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(dump(priors.keys, columns))
    except OSError as error:
        raise StateError(
            f"cannot write the priors {path}: {error.strerror}; choose another output"
        ) from error


def load_priors(path: Path) -> Priors:
    """Read a sidecar.

    Raises:
        StateError: no such file, or it is no prior sidecar.
    """
    try:
        payload = path.read_bytes()
    except OSError as error:
        raise StateError(
            f"cannot read the priors {path}: {error.strerror}; `snooze stratify` writes priors.parquet"
        ) from error
    try:
        keys, columns = parse(payload)
    except (ValueError, KeyError, OSError) as error:
        raise StateError(
            f"{path} is no parquet file of priors ({error}); wanted what `snooze stratify` wrote"
        ) from error
    if missing := [name for name in COLUMNS if name not in columns]:
        raise StateError(
            f"{path} has columns {', '.join(['key', *columns])} and lacks {', '.join(missing)}; wanted the priors.parquet "
            "of `snooze stratify`, not a scheduler state"
        )
    return Priors(
        keys=tuple(keys),
        prior_N=columns["prior"].astype(np.float64),
        se_N=columns["se"].astype(np.float64),
        k_N=columns["k"].astype(np.int64),
        bucket_N=columns["bucket"].astype(np.int64),
        postponed_N=columns["postponed"].astype(np.bool_),
        removable_N=columns["removable"].astype(np.bool_),
        rates={
            name.removeprefix(RATE): column.astype(np.float64)
            for name, column in columns.items()
            if name.startswith(RATE)
        },
    )


def _row(by_model: Mapping[str, Sequence[float]]) -> tuple[float, float]:
    """(prior, standard error) of one task."""
    means = [float(np.mean(given)) for given in by_model.values()]
    variances = [float(np.var(given)) / len(given) for given in by_model.values()]
    return sum(means) / len(means), math.sqrt(sum(variances)) / len(means)
