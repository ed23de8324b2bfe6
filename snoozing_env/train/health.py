"""How a run is doing, step by step: what stale data is still worth, and whether the policy is collapsing (A6, A7).

    trainer ── add(log-ratios, lags) ─▶ per micro-batch
            ── rate_factor() ────────▶ before the optimizer's step: ESS of the batch ─▶ factor for the learning rate
    session ── close_step(signals) ──▶ after it: alarms ─▶ run log; several at once ─▶ `collapse`, and the run stops

The factor acts on the learning rate and not on the loss: AdamW divides by the gradient's own size, so a scaled loss
takes the same step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from snoozing_env.alarms import Alarm, Alarms, Signal
from snoozing_env.importance import SmoothedEss, StalenessReport
from snoozing_env.report.records import AlarmRecord, StepRecord
from snoozing_env.train.grpo import TrainConfig
from snoozing_env.types import Floats


class Health:
    """Watches one run; its state travels with the checkpoint."""

    def __init__(
        self, config: TrainConfig, *, log: Callable[[AlarmRecord], None], say: Callable[[str], None]
    ) -> None:
        self._config, self._log, self._say = config, log, say
        self.alarms, self.ess = Alarms(config.alarms), SmoothedEss(config.ess)
        self.collapse = ""
        """Why the run must stop; empty while it need not."""
        self.report: StalenessReport | None = None
        """Of the last batch."""
        self.factor = 1.0
        self._log_ratios: list[Floats] = []
        self._ages: list[int] = []
        self._replayed: list[bool] = []
        self._advantages: list[float] = []
        self._sounding: set[str] = set()

    # -- the trainer's side -----------------------------------------------------------------------------

    def add(
        self,
        log_ratios: Sequence[Floats],
        ages: Sequence[int],
        *,
        replayed: Sequence[bool] = (),
        advantages: Sequence[float] = (),
    ) -> None:
        """A micro-batch's sequences: [T] log-ratios of their sampled tokens, their lags in weight updates, whether they
        were trained before (() = none), and their advantages (() = unknown)."""
        self._log_ratios += log_ratios
        self._ages += ages
        self._replayed += replayed or [False] * len(log_ratios)
        self._advantages += advantages

    def rate_factor(self) -> float:
        """Close the batch; returns what the learning rate of its step is to be multiplied with."""
        if self._log_ratios:
            self.report = StalenessReport.of(
                self._log_ratios,
                self._ages,
                clamp=self._config.clip_range,
                replayed_n=self._replayed,
                advantages_n=self._advantages if len(self._advantages) == len(self._log_ratios) else (),
            )
            self.factor = self.ess.update(self.report.sequence.kish)
        self._log_ratios, self._ages, self._replayed, self._advantages = [], [], [], []
        return self.factor

    # -- the session's side -----------------------------------------------------------------------------

    def close_step(self, step: int, signals: Mapping[Signal, float | None]) -> list[Alarm]:
        """Take in what was measured beside the ESS; new alarms are logged, a collapse is remembered."""
        ess: dict[Signal, float | None] = {"ess": self.report.sequence.kish if self.report else None}
        alarms = self.alarms.update(ess | dict(signals))
        for alarm in alarms:
            if alarm.signal not in self._sounding:
                self._log(AlarmRecord(step=step, signal=alarm.signal, value=alarm.value, limit=alarm.limit))
                self._say(f"step {step}: {alarm}")
        self._sounding = {alarm.signal for alarm in alarms}
        if self.alarms.collapsed(alarms) and self._config.alarms.pause_on_collapse:
            self.collapse = "; ".join(map(str, alarms))
        return alarms

    def fields(self) -> dict[str, Any]:
        """What a step's record says about the last batch."""
        if self.report is None:
            return {}
        token, sequence = self.report.token, self.report.sequence
        more = {
            "token, clamped": token.kish_clamped,
            "sequence, clamped": sequence.kish_clamped,
            "token, 1/E[r²]": token.second_moment,
            "sequence, 1/E[r²]": sequence.second_moment,
            "token, 1/E[r²], clamped": token.second_moment_clamped,
            "sequence, 1/E[r²], clamped": sequence.second_moment_clamped,
        }
        by_lag = {str(lag): ess.kish for lag, ess in self.report.by_age.items()}
        return {
            "ess_token": token.kish,
            "ess_sequence": sequence.kish,
            "ess_more": {name: value for name, value in more.items() if isfinite(value)},
            "ess_by_lag": {lag: value for lag, value in by_lag.items() if isfinite(value)},
            "outside_clip": self.report.clipped_share,
            "ratio_distance": {name: drift.distance for name, drift in self.report.by_source.items()},
            "clipped": {
                name: d.clipped for name, d in self.report.by_source.items() if d.clipped is not None
            },
            "rate_factor": self.factor if self._config.ess.scale_learning_rate else None,
        }

    # -- state ------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """JSON-able."""
        return {
            "alarms": self.alarms.state(),
            "ess": self.ess.state(),
            "sounding": sorted(self._sounding),
            "collapse": self.collapse,
        }

    def restore(self, state: Mapping[str, Any] | None) -> None:
        """Continue from `state`. A run that stopped because it collapsed was resumed on purpose: its alarms get their
        whole patience again, or it would stop after one step."""
        if state is None:
            return
        alarms = dict(state["alarms"])
        if state["collapse"]:
            alarms["streaks"] = {}
        self.alarms.restore(alarms)
        self._sounding = set() if state["collapse"] else set(state["sounding"])
        self.ess.restore(state["ess"])


def signals_of(record: StepRecord) -> dict[Signal, float | None]:
    """What a step's record holds of the watched signals; the ESS is the monitor's own."""
    return {
        "entropy": record.entropy,
        "clip_fraction": record.clip_fraction,
        "truncation": record.truncated,
        "reward": record.reward_mean,
        "dead_groups": None if record.survival is None else 1.0 - record.survival,
        "grad_norm": record.grad_norm,
    }


class RateByEss(TrainerCallback):
    """Multiplies the learning rate of one optimizer step by the batch's factor."""

    def __init__(self, health: Health) -> None:
        self._health = health
        self._rates: list[float] = []

    def on_pre_optimizer_step(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        factor = self._health.rate_factor()
        groups = kwargs["optimizer"].param_groups
        self._rates = [group["lr"] for group in groups]
        for group in groups:
            group["lr"] *= factor

    def on_optimizer_step(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        for group, rate in zip(kwargs["optimizer"].param_groups, self._rates, strict=True):
            group["lr"] = rate
