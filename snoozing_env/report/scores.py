"""What the rollouts of one environment say: mean reward, pass@k, slices and two-sided metrics, all clustered by task.

Axes: N tasks, G rollouts of a task. An invalid rollout (reward None) enters no mean; it is counted beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from snoozing_env.report.intervals import clustered
from snoozing_env.report.rollouts import Rollout, Rollouts, TwoSided

PASS = 1.0 - 1e-9
"""A rollout passes with full marks."""
Slicer = Callable[[Rollout], str]
SLICES: Mapping[str, Slicer] = {
    "dataset": lambda r: r.dataset,
    "domain": lambda r: r.domain,
    "level": lambda r: r.level,
    "side": lambda r: r.side,
}


class Estimate(NamedTuple):
    """A mean over tasks with its 95 % interval."""

    value: float
    low: float
    high: float
    n_tasks: int
    """Tasks it is a mean over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """What is known of a set of tasks."""

    n_tasks: int
    """Tasks with at least one valid rollout."""
    n_rollouts: int
    """Valid ones."""
    n_invalid: int
    mean: Estimate | None
    """avg@k: mean reward per task, then over tasks; None = no valid rollout."""
    pass_at: Mapping[int, Estimate]
    """k → unbiased pass@k over the tasks with at least k valid rollouts."""
    truncated: int
    """Valid rollouts that hit the token limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a set of rollouts took, the invalid ones included: they are paid for as well."""

    input_tokens: int
    output_tokens: int
    seconds: float
    """Summed over rollouts, which ran side by side."""
    money: float | None = None
    """In the currency of the prices; None = no prices given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """One environment of a run, scored."""

    name: str
    score: Score
    by: Mapping[str, Mapping[str, Score]]
    """Slice name (dataset, domain, level, side) → value → score; only slices with two values or more."""
    two_sided: Mapping[str, Estimate | None]
    """Name → how often the policy erred that way; None = no valid rollout on that side."""
    cost: Cost
    errors: Mapping[str, int]
    """Reason → invalid rollouts."""


def pass_at_k(n: int, c: int, k: int) -> float:
    """Chance that at least one of k rollouts passes, from c passes among n (Chen et al. 2021, arXiv 2107.03374, eq. 1).

    Unbiased: 1 − C(n − c, k) / C(n, k), where 1 − (1 − c/n)^k is not.
    """
    if not 0 <= c <= n or not 1 <= k <= n:
        raise ValueError(f"got {c} passes of {n} rollouts and k = {k}; wanted 0 ≤ c ≤ n and 1 ≤ k ≤ n")
    missed = 1.0
    for i in range(k):
        missed *= max(0, n - c - i) / (n - i)
    return 1.0 - missed


def score(rows: Iterable[Rollout], ks: Sequence[int]) -> Score:
    """Score of any rollouts; tasks are told apart by their key."""
    rows = list(rows)
    by_task = _by_task(rows)
    counts = [(len(rewards), sum(r >= PASS for r in rewards)) for rewards in by_task.values()]
    passes = {k: [pass_at_k(n, c, k) for n, c in counts if n >= k] for k in sorted(set(ks))}
    valid = [r for r in rows if r.reward is not None]
    return Score(
        n_tasks=len(by_task),
        n_rollouts=len(valid),
        n_invalid=len(rows) - len(valid),
        mean=estimate([sum(rewards) / len(rewards) for rewards in by_task.values()]),
        pass_at={k: found for k, values in passes.items() if (found := estimate(values)) is not None},
        truncated=sum(r.truncated for r in valid),
    )


def estimate(mean_per_task_N: Sequence[float]) -> Estimate | None:
    """Mean of [N] per-task means with its interval; None for no task."""
    if not mean_per_task_N:
        return None
    low, high = clustered(mean_per_task_N)
    return Estimate(sum(mean_per_task_N) / len(mean_per_task_N), low, high, len(mean_per_task_N))


def scored(rollouts: Rollouts, ks: Sequence[int], prices: tuple[float, float] | None = None) -> Scored:
    """Everything about one environment; `prices` are per million input and output tokens."""
    rows = rollouts.rows
    slices: dict[str, dict[str, Score]] = {}
    for name, value_of in SLICES.items():
        values = sorted({v for r in rows if (v := value_of(r))})
        if len(values) > 1:
            slices[name] = {v: score((r for r in rows if value_of(r) == v), ks) for v in values}
    reasons: dict[str, int] = {}
    for row in rows:
        if row.reward is None:
            reasons[row.error] = reasons.get(row.error, 0) + 1
    return Scored(
        name=rollouts.part.name,
        score=score(rows, ks),
        by=slices,
        two_sided={name: _err_rate(rows, half) for name, half in rollouts.part.two_sided.items()},
        cost=cost(rows, prices),
        errors=dict(sorted(reasons.items(), key=lambda item: -item[1])),
    )


def cost(rows: Iterable[Rollout], prices: tuple[float, float] | None) -> Cost:
    """Tokens, seconds and money of some rollouts."""
    rows = list(rows)
    given, made = sum(r.input_tokens for r in rows), sum(r.output_tokens for r in rows)
    money = None if prices is None else (given * prices[0] + made * prices[1]) / 1e6
    return Cost(input_tokens=given, output_tokens=made, seconds=sum(r.seconds for r in rows), money=money)


def _err_rate(rows: Sequence[Rollout], half: TwoSided) -> Estimate | None:
    """Mean over the side's tasks of how often the policy erred, over valid rollouts that measured it."""
    by_task: dict[str, list[float]] = {}
    for row in rows:
        if row.side != half.side or row.reward is None:
            continue
        value = row.metrics.get(half.metric) if half.metric else 1.0 - row.reward
        if value is not None:
            by_task.setdefault(row.key, []).append(value)
    return estimate([sum(values) / len(values) for values in by_task.values()])


def _by_task(rows: Iterable[Rollout]) -> dict[str, list[float]]:
    """Task key → [≤G] rewards of its valid rollouts; tasks without one are left out."""
    found: dict[str, list[float]] = {}
    for row in rows:
        if row.reward is not None:
            found.setdefault(row.key, []).append(row.reward)
    return found


def task_means(rows: Iterable[Rollout]) -> dict[str, float]:
    """Task key → mean reward over its valid rollouts."""
    return {key: sum(rewards) / len(rewards) for key, rewards in _by_task(rows).items()}
