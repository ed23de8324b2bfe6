"""An evaluation read back from its directory: scores per environment, their summary as JSON, two runs compared."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

from snoozing_env.errors import StateError
from snoozing_env.report.paired import Paired, paired
from snoozing_env.report.rollouts import Json, Rollouts, parts_of, read_manifest, read_rollouts
from snoozing_env.report.scores import Cost, Estimate, Score, Scored, cost, scored, task_means

SUMMARY = "summary.json"
REPORT = "report.html"


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalRun:
    """One run, scored."""

    directory: Path
    model: str
    rollouts: tuple[Rollouts, ...]
    scored: tuple[Scored, ...]
    """As `rollouts`, one per environment."""
    cost: Cost
    """Of all environments."""
    manifest: Json
    """`eval.json`; {} for a run of another tool."""

    @property
    def name(self) -> str:
        return self.directory.name or str(self.directory)

    @property
    def mean(self) -> float | None:
        """Mean over environments of their mean reward, each counting the same; None without a valid rollout."""
        means = [s.score.mean.value for s in self.scored if s.score.mean is not None]
        return sum(means) / len(means) if means else None

    @property
    def ks(self) -> tuple[int, ...]:
        """The k of pass@k that tell more than the mean reward does: with binary rewards pass@1 is the same number."""
        same = all(one.score.pass_at.get(1) == one.score.mean for one in self.scored)
        return tuple(sorted({k for one in self.scored for k in one.score.pass_at if not (k == 1 and same)}))

    @property
    def mean_title(self) -> str:
        """Heading of the mean reward."""
        return "avg@k" if 1 in self.ks else "avg@k = pass@1"

    @property
    def n_invalid(self) -> int:
        return sum(s.score.n_invalid for s in self.scored)


def load_evaluation(run: str | os.PathLike[str]) -> EvalRun:
    """Read and score a run directory of `snooze eval`, or of `vf-eval`.

    Raises:
        StateError: there is no run.
        OutcomeError: a reward outside its environment's range.
    """
    directory = Path(run)
    manifest = read_manifest(directory)
    rollouts = tuple(read_rollouts(part) for part in parts_of(directory))
    config = cast(Json, manifest.get("config", {}))
    endpoint = cast(Json, config.get("endpoint", {}))
    given, made = endpoint.get("price_in"), endpoint.get("price_out")
    prices = None if given is None and made is None else (float(given or 0), float(made or 0))
    ks = _ks(config, rollouts)
    return EvalRun(
        directory=directory,
        model=str(cast(Json, manifest.get("identity", {})).get("model", "")),
        rollouts=rollouts,
        scored=tuple(scored(one, ks, prices) for one in rollouts),
        cost=cost((row for one in rollouts for row in one.rows), prices),
        manifest=manifest,
    )


def _ks(config: Json, rollouts: Sequence[Rollouts]) -> tuple[int, ...]:
    if asked := config.get("pass_at"):
        return tuple(asked)
    counts: dict[tuple[str, str], int] = {}
    for one in rollouts:
        for row in one.rows:
            place = (one.part.name, row.key)
            counts[place] = counts.get(place, 0) + 1
    return tuple(sorted({1, max(counts.values(), default=1)}))


def write_summary(run: EvalRun) -> Path:
    """`summary.json`: every figure of the report."""
    path = run.directory / SUMMARY
    try:
        path.write_text(json.dumps(summary(run), indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise StateError(f"cannot write {path}: {error.strerror}; free some space and resume") from error
    return path


def summary(run: EvalRun) -> dict[str, Any]:
    """The run as plain data."""
    return {
        "model": run.model,
        "mean_over_environments": run.mean,
        "invalid": run.n_invalid,
        "cost": asdict(run.cost),
        "environments": {s.name: _plain(s) for s in run.scored},
        "config": run.manifest.get("config"),
        "versions": run.manifest.get("versions"),
    }


def _plain(one: Scored) -> dict[str, Any]:
    return {
        **_plain_score(one.score),
        "two_sided": {name: found and found._asdict() for name, found in one.two_sided.items()},
        "by": {
            name: {value: _plain_score(s) for value, s in values.items()} for name, values in one.by.items()
        },
        "cost": asdict(one.cost),
        "errors": dict(one.errors),
    }


def _plain_score(score: Score) -> dict[str, Any]:
    return {
        "tasks": score.n_tasks,
        "rollouts": score.n_rollouts,
        "invalid": score.n_invalid,
        "truncated": score.truncated,
        "mean": score.mean and score.mean._asdict(),
        "pass_at": {str(k): found._asdict() for k, found in score.pass_at.items()},
    }


def compare(a: EvalRun, b: EvalRun, *, seed: int = 0) -> dict[str, Paired]:
    """Environment → B against A over the tasks both rolled out; "all" pools them where there are several.

    Raises:
        StateError: no environment or no task in common.
    """
    means_a, means_b = _means(a), _means(b)
    shared = [name for name in means_a if name in means_b]
    if not shared:
        raise StateError(
            f"the runs share no environment: {', '.join(means_a)} in {a.directory}, {', '.join(means_b)} in {b.directory}"
        )
    found = {name: paired(means_a[name], means_b[name], seed=seed) for name in shared}
    if len(shared) > 1:
        pooled = [{f"{n}\0{k}": v for n in shared for k, v in m[n].items()} for m in (means_a, means_b)]
        found["all"] = paired(pooled[0], pooled[1], seed=seed)
    return found


def _means(run: EvalRun) -> dict[str, Mapping[str, float]]:
    return {one.part.name: task_means(one.rows) for one in run.rollouts}


def shown(found: Estimate | None, *, digits: int = 1) -> str:
    """`62.5 % [58.1, 66.7]`, or a dash."""
    if found is None:
        return "–"
    value, low, high = (100 * v for v in found[:3])
    return f"{value:.{digits}f} % [{low:.{digits}f}, {high:.{digits}f}]"


def money(cost: Cost) -> str:
    """`0.0123`, or a dash where no prices were given."""
    return "–" if cost.money is None else f"{cost.money:.4f}"
