"""The records of a run log and their JSON: one strict object per line, NaN and infinities written as null."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import ClassVar, TypeAlias, cast

import numpy as np

from snoozing_env.errors import StateError, did_you_mean

Plain: TypeAlias = "bool | int | float | str | list[Plain] | dict[str, Plain] | None"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """What is being trained. A resumed run writes another one; the last is the header."""

    event: ClassVar[str] = "run"
    name: str
    arm: str
    """The side of a comparison this run is on, e.g. "uniform" or "snooze"."""
    seed: int
    recipe: Mapping[str, object] = field(default_factory=dict[str, object])
    """The whole recipe, nested as in its TOML."""
    versions: Mapping[str, str] = field(default_factory=dict[str, str])
    n_tasks: int | None = None
    datasets: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord:
    """One trainer step. Counts are of this step alone; None = not measured."""

    event: ClassVar[str] = "step"
    step: int
    version: int | None = None
    """Policy version after the step."""
    seconds: float | None = None
    """Wall seconds since the run started."""
    generated_groups: int | None = None
    trained_groups: int | None = None
    replayed_groups: int | None = None
    """Of the trained groups, those that had been trained before (B1)."""
    generated_tokens: int | None = None
    trained_tokens: int | None = None
    survival: float | None = None
    """ρ in [0, 1]: informative share of the groups generated (F5)."""
    asleep_share: float | None = None
    """Share of the pool that is snoozed, in [0, 1]."""
    snoozed: int | None = None
    woken: int | None = None
    forgotten: int | None = None
    """Woken tasks that were no longer mastered (Z8)."""
    passes: float | None = None
    """Passes over the task set so far."""
    reward_mean: float | None = None
    """Over every valid generated rollout, before filtering."""
    pass_rate_histogram: tuple[int, ...] | None = None
    """[10] tasks seen so far by estimated pass rate, bins of 0.1 from 0 to 1."""
    buffers: Mapping[str, float] | None = None
    """Of the replay and success buffers: what they hold, and what they gave and dropped since the start (B1, B2)."""
    carried_groups: int | None = None
    """Informative groups kept for the next step (F2)."""
    invalid_rollouts: int | None = None
    lag_mean: float | None = None
    """Mean policy versions between sampling and training (A1)."""
    loss: float | None = None
    grad_norm: float | None = None
    clip_fraction: float | None = None
    entropy: float | None = None
    ratio_mean: float | None = None
    """Mean importance ratio against the behaviour policy."""
    logprob_gap: float | None = None
    """Largest |trainer - behaviour| log-prob of a trained token; without stale groups, how far engine and trainer differ."""
    ess_token: float | None = None
    """Effective sample size of the trained tokens' importance ratios, as a share of them (Kish, raw; A6)."""
    ess_sequence: float | None = None
    """The same of the rollouts' ratios, each the product over its tokens."""
    ess_more: Mapping[str, float] | None = None
    """Other estimates: 1/E[r²], and both of ratios clamped as in the loss."""
    ess_by_lag: Mapping[str, float] | None = None
    """Of the rollouts, by lag in policy versions."""
    outside_clip: float | None = None
    """Share of tokens whose ratio is outside the range of the loss, whatever their advantage."""
    ratio_distance: Mapping[str, float] | None = None
    """Mean |importance ratio - 1| of the tokens of "fresh" and of "replayed" rollouts (B1)."""
    clipped: Mapping[str, float] | None = None
    """Share of those tokens whose gradient the clip takes away."""
    rate_factor: float | None = None
    """What the learning rate was multiplied with because of the effective sample size."""
    truncated: float | None = None
    """Share of the trained rollouts that hit the token limit."""
    rungs: tuple[str, ...] | None = None
    """Rungs of the saturation ladder that were climbed in this step (F3)."""
    fallback: int | None = None
    """1 while the scheduler draws uniformly because the evaluation has fallen, 0 otherwise (S11)."""
    seconds_rollout: float | None = None
    seconds_train: float | None = None
    seconds_sync: float | None = None
    goodput: Mapping[str, float] | None = None
    """Where this step's time and tokens went, and goodput so far; names as in `snoozing_env.goodput`, absent = 0 (A9)."""
    tasks: tuple[str, ...] | None = None
    """Keys of the tasks trained on, in batch order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One evaluated answer, for a person to read."""

    prompt: str
    completion: str
    gold: str = ""
    reward: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalRecord:
    """One held-out, unfiltered evaluation."""

    event: ClassVar[str] = "eval"
    step: int
    accuracy: float
    """Mean over tasks, in [0, 1]."""
    low: float | None = None
    """95 % interval of the accuracy; see `intervals`."""
    high: float | None = None
    n_tasks: int | None = None
    n_samples: int | None = None
    by_domain: Mapping[str, float] | None = None
    by_side: Mapping[str, float] | None = None
    """Per one-sided behaviour, e.g. "answer" and "abstain"; None or {} = the tasks name no sides."""
    samples: tuple[Sample, ...] | None = None

    def __post_init__(self) -> None:
        if not 0.0 <= self.accuracy <= 1.0:
            raise ValueError(
                f"eval at step {self.step} has accuracy {self.accuracy!r}; wanted a number in [0, 1]: "
                "skip the record when nothing could be graded"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class FallbackRecord:
    """The evaluation sent the scheduler back to uniform draws, or let its selector return (S11)."""

    event: ClassVar[str] = "fallback"
    step: int
    action: str
    """"fall_back" or "recover"."""
    accuracy: float
    best: float
    """Of the best evaluation before, on the same tasks."""
    low: float | None = None
    """Interval of the change, paired by task, at the fallback's confidence."""
    high: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmRecord:
    """A signal has been past its limit for long enough (A7); written when it starts."""

    event: ClassVar[str] = "alarm"
    step: int
    signal: str
    value: float
    limit: float


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticeRecord:
    """What the scheduler wants said aloud, such as a side that is being unlearned (M4)."""

    event: ClassVar[str] = "notice"
    step: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EndRecord:
    """Why the run stopped."""

    event: ClassVar[str] = "end"
    reason: str
    seconds: float | None = None


Record: TypeAlias = (
    RunRecord | StepRecord | EvalRecord | FallbackRecord | AlarmRecord | NoticeRecord | EndRecord
)
RECORDS: Mapping[str, type[Record]] = {
    kind.event: kind
    for kind in (RunRecord, StepRecord, EvalRecord, FallbackRecord, AlarmRecord, NoticeRecord, EndRecord)
}
KINDS: Mapping[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (int, float),
    "str": (str,),
    "tuple": (list,),
    "Mapping": (dict,),
}
"""What JSON must hold for a field, by the first word of its annotation."""


def to_line(record: Record) -> str:
    """One line of strict JSON, newline included."""
    values = {f.name: _plain(getattr(record, f.name)) for f in fields(record)}
    if isinstance(record, RunRecord):
        # A recipe may say `snooze_factor = inf` and mean it; null would read as "not set".
        values["recipe"] = _plain(record.recipe, spell_non_finite=True)
    return json.dumps({"event": record.event, **values}, ensure_ascii=False, allow_nan=False) + "\n"


def _plain(value: object, spell_non_finite: bool = False) -> Plain:
    """The JSON twin of a value; NaN and infinities become null (or their name in a recipe)."""
    if isinstance(value, np.generic | np.ndarray):
        value = cast(object, value.tolist())
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        return repr(value) if spell_non_finite else None
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, Sample):
        return {f.name: _plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        items = cast(Mapping[object, object], value).items()
        return {str(k): _plain(v, spell_non_finite) for k, v in items}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(v, spell_non_finite) for v in cast(Sequence[object], value)]
    return str(value)


def parse(data: Mapping[str, object], where: str) -> Record:
    """The record that a line's object stands for; fields of a later version are ignored."""
    event = data.get("event")
    kind = RECORDS.get(event) if isinstance(event, str) else None
    if kind is None:
        raise StateError(
            f"{where}: unknown event {event!r}; wanted one of {', '.join(RECORDS)}."
            f"{did_you_mean(str(event), RECORDS)}"
        )
    known = {
        f.name: _checked(data[f.name], str(f.type), f"{where}: {f.name}")
        for f in fields(kind)
        if f.name in data
    }
    try:
        return kind(**known)  # type: ignore[arg-type]  # each value was checked against its annotation
    except (TypeError, ValueError) as error:
        raise StateError(f"{where}: not a complete {event!r} record: {error}") from error


def _checked(value: object, annotation: str, where: str) -> object:
    if value is None and annotation.endswith("None"):
        return None
    wanted = KINDS[annotation.split("[")[0].split(" ")[0]]
    if not isinstance(value, wanted) or isinstance(value, bool):
        raise StateError(f"{where} is {value!r}; wanted {annotation}")
    if annotation.startswith("tuple[Sample"):
        return tuple(_sample(item, where) for item in cast(list[object], value))
    return tuple(cast(list[object], value)) if isinstance(value, list) else value


def _sample(item: object, where: str) -> Sample:
    if not isinstance(item, dict):
        raise StateError(f"{where} holds {item!r}; wanted objects with prompt, completion, gold, reward")
    data = cast(dict[str, object], item)
    reward = data.get("reward")
    return Sample(
        prompt=str(data.get("prompt", "")),
        completion=str(data.get("completion", "")),
        gold=str(data.get("gold", "")),
        reward=float(reward) if isinstance(reward, int | float) else None,
    )
