"""The difficulty of tasks nobody rolled out, from that of K reference tasks whose texts are alike (S7).

    attention   d̂ = Σ_k w_k d_k,  w = softmax(−|x − x_k|² / 2T)     for unit vectors: softmax of the cosine over T
    ridge       d̂ = d̄ + (x − x̄)·w                                  a linear map learned on the references
    calibration σ(a·z + b),  z = (logit d̂ − m) / s                   Platt scaling; m, s: mean and deviation over the references

T, the ridge and a, b are set by leaving each reference out in turn, so nothing is fitted to itself. Where texts say
nothing of the difficulty a is 0, and every task is predicted the references' mean: no selection rather than a wrong one.
The paper learns its projection and calibration offline from other models' rollouts; here a run needs only its own.

Axes: N tasks · K references · H vector length.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from snoozing_env.types import Floats

Floats32 = NDArray[np.floating[Any]]

TEMPERATURES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
RIDGES = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
"""Penalties tried, as multiples of the references' mean squared length."""
BLOCK = 4096
"""Tasks predicted at once: their [4096, 256] attention stays in 4 MB."""
EDGE = 0.01
"""Predictions keep this far from 0 and 1 before the logit."""


class Predictor(Protocol):
    """Difficulty from vectors, uncalibrated."""

    held_out_K: Floats
    """[K] each reference as predicted from the others."""
    setting: float
    """Temperature or ridge in use."""

    def __call__(self, x_NH: Floats32) -> Floats32:
        """[N] raw difficulty."""
        ...


class Attention:
    """The paper's similarity-weighted mean of the reference difficulties."""

    def __init__(self, x_KH: Floats32, difficulty_K: Floats, temperature: float | None = None) -> None:
        self._x_KH = x_KH
        self._columns_K2 = np.stack([difficulty_K, np.ones_like(difficulty_K)], axis=1).astype(np.float32)
        self._half_K = 0.5 * np.einsum("kh,kh->k", x_KH, x_KH)
        tried = TEMPERATURES if temperature is None else (temperature,)
        if len(difficulty_K) < 2:  # nothing is left when it is left out
            self.setting, self.held_out_K = tried[-1], difficulty_K
            return
        near_KK = x_KH @ x_KH.T - self._half_K
        np.fill_diagonal(near_KK, -np.inf)
        guesses = {t: self._mean(near_KK.copy(), t).astype(np.float64) for t in tried}
        self.setting = min(tried, key=lambda t: float(((guesses[t] - difficulty_K) ** 2).mean()))
        self.held_out_K = guesses[self.setting]

    def __call__(self, x_NH: Floats32) -> Floats32:
        return self._mean(x_NH @ self._x_KH.T - self._half_K, self.setting)

    def _mean(self, near_NK: Floats32, temperature: float) -> Floats32:
        """[N] softmax-weighted means; works in place. |x|²/2 is the same for a whole row and cancels."""
        near_NK -= near_NK.max(axis=1, keepdims=True)
        near_NK *= np.float32(1 / temperature)
        np.exp(near_NK, out=near_NK)
        sums_N2 = near_NK @ self._columns_K2
        return sums_N2[:, 0] / sums_N2[:, 1]


class Ridge:
    """Ridge regression on the references; its penalty is the one with the least leave-one-out error."""

    def __init__(self, x_KH: Floats32, difficulty_K: Floats) -> None:
        self._centre_H = x_KH.mean(axis=0)
        self._mean = float(difficulty_K.mean())
        wide_KH, y_K = (x_KH - self._centre_H).astype(np.float64), difficulty_K - self._mean
        value_K, basis_KK = np.linalg.eigh(wide_KH @ wide_KH.T)
        value_K = np.maximum(value_K, 0.0)
        in_basis_K, scale = basis_KK.T @ y_K, max(float(value_K.mean()), 1e-12)
        best = np.inf
        for penalty in RIDGES:
            shrunk_K = value_K / (value_K + penalty * scale)
            leverage_K = (basis_KK**2) @ shrunk_K + 1 / len(y_K)
            left_K = (y_K - basis_KK @ (shrunk_K * in_basis_K)) / np.maximum(1 - leverage_K, 1e-6)
            if (error := float((left_K**2).mean())) < best:
                best, self.setting = error, penalty
                self.held_out_K = difficulty_K - left_K
                weight_K = basis_KK @ (in_basis_K / (value_K + penalty * scale))
                self._weight_H = (wide_KH.T @ weight_K).astype(np.float32)

    def __call__(self, x_NH: Floats32) -> Floats32:
        return np.float32(self._mean) + (x_NH - self._centre_H) @ self._weight_H


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Platt scaling of a raw difficulty, in units of its spread over the references."""

    mean: float
    """Of the logit of the held-out predictions."""
    deviation: float
    slope: float
    """0 = the text says nothing; negative slopes are noise and are cut to 0."""
    intercept: float

    def __call__(self, raw: Floats32) -> Floats32:
        z = (logit(raw) - np.float32(self.mean)) * np.float32(self.slope / self.deviation)
        # The logistic function by tanh, which does not overflow.
        return np.float32(0.5) * (1 + np.tanh(np.float32(0.5) * (z + np.float32(self.intercept))))


def logit(p: Floats32) -> Floats32:
    inside = np.clip(p, EDGE, 1 - EDGE)
    return np.log(inside / (1 - inside))


def calibrate(held_out_K: Floats, difficulty_K: Floats) -> Calibration:
    """Fit slope and intercept by maximum likelihood (Newton), the slope held back by one pseudo-reference.

    The mean of the calibrated predictions over the references is that of the references.
    """
    raw_K = logit(held_out_K)
    mean, deviation = float(raw_K.mean()), max(float(raw_K.std()), 1e-6)
    z_K = (raw_K - mean) / deviation
    middle = float(np.clip(difficulty_K.mean(), EDGE, 1 - EDGE))
    level = float(np.log(middle / (1 - middle)))
    if len(z_K) < 8 or deviation <= 1e-6 or not 0 < difficulty_K.mean() < 1:
        return Calibration(mean=mean, deviation=deviation, slope=0.0, intercept=level)
    design_K2, at_2 = np.stack([z_K, np.ones_like(z_K)], axis=1), np.array([0.0, level])
    held_2 = np.array([1.0, 0.0])
    for _ in range(25):
        p_K = 1 / (1 + np.exp(-np.clip(design_K2 @ at_2, -30, 30)))
        slope_2 = design_K2.T @ (difficulty_K - p_K) - held_2 * at_2
        bend_22 = (design_K2 * (p_K * (1 - p_K))[:, None]).T @ design_K2 + np.diag(held_2 + 1e-9)
        step_2 = np.linalg.solve(bend_22, slope_2)
        at_2 = at_2 + step_2
        if np.abs(step_2).max() < 1e-10:
            break
    if at_2[0] <= 0 or not np.isfinite(at_2).all():
        return Calibration(mean=mean, deviation=deviation, slope=0.0, intercept=level)
    return Calibration(mean=mean, deviation=deviation, slope=float(at_2[0]), intercept=float(at_2[1]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What a reference says about every task."""

    difficulty_N: Floats32
    """[N] predicted failure rate, references included, in (0, 1)."""
    correlation: float
    """Pearson of the held-out predictions with the measured difficulty of the references; 0 where either is constant."""
    slope: float
    """Of the calibration."""
    setting: float
    """Temperature or ridge."""


def forecast(
    vectors_NH: Floats32,
    reference_K: NDArray[np.int64],
    difficulty_K: Floats,
    *,
    rule: Literal["attention", "ridge"],
    temperature: float | None,
    calibrated: bool,
) -> Forecast:
    """Predict every task from K measured ones, in float32 blocks; O(N · K · H) for attention, O(N · H) for ridge."""
    x_KH = vectors_NH[reference_K].astype(np.float32)
    predictor: Predictor = (
        Attention(x_KH, difficulty_K, temperature) if rule == "attention" else Ridge(x_KH, difficulty_K)
    )
    calibration = calibrate(predictor.held_out_K, difficulty_K)
    difficulty_N = np.empty(len(vectors_NH), np.float32)
    for start in range(0, len(vectors_NH), BLOCK):
        part = slice(start, start + BLOCK)
        raw = predictor(vectors_NH[part].astype(np.float32))
        difficulty_N[part] = calibration(raw) if calibrated else np.clip(raw, 0, 1)
    return Forecast(
        difficulty_N=difficulty_N,
        correlation=pearson(predictor.held_out_K, difficulty_K),
        slope=calibration.slope,
        setting=predictor.setting,
    )


def pearson(a: Floats, b: Floats) -> float:
    """Correlation; 0 where one of them does not vary."""
    a, b = a - a.mean(), b - b.mean()
    scale = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / scale if scale > 1e-12 else 0.0
