"""`snooze stratify`: how hard is each task for the models at hand (D4), and which tasks look broken (D5)?

for each model, side by side:   OUTPUT/MODEL/   a whole evaluation run, resumable on its own
from what is on disk:           OUTPUT/priors.parquet, suspects.jsonl, priors.svg, report.html
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from snoozing_env.errors import CatalogueError, SnoozingError, StateError
from snoozing_env.evaluate.config import EndpointConfig, StratifyConfig
from snoozing_env.evaluate.folder import Planned
from snoozing_env.evaluate.run import Options, Tick, roll_out
from snoozing_env.report.rollouts import Part, Rollout, parts_of, read_rollouts, read_transcript
from snoozing_env.report.stratification import Said, Stratified, Suspect, Why
from snoozing_env.schedulers.priors import Priors, measure, save_priors

PRIORS = "priors.parquet"
SUSPECTS = "suspects.jsonl"


def stratify(
    config: StratifyConfig,
    planned: Sequence[Planned],
    options: Options,
    report: Callable[[str, Tick], None],
) -> Stratified:
    """Roll out every model, then write sidecar and suspects; `report` gets the model's label with each tick.

    Raises:
        EngineError: an endpoint cannot serve; the others were rolled out whole, and stay.
        CatalogueError: no rollout got a verdict.
    """
    asyncio.run(_roll_out_all(config, planned, options, report))
    return collect(config)


def collect(config: StratifyConfig) -> Stratified:
    """Priors and suspects from the rollouts on disk."""
    root = Path(config.output)
    parts = {m.label: parts_of(root / folder_of(m.label)) for m in config.models}
    rows = [
        (label, part, row)
        for label, theirs in parts.items()
        for part in theirs
        for row in read_rollouts(part).rows
    ]
    rewards: dict[str, dict[str, list[float]]] = {}
    for label, _, row in rows:
        if row.reward is not None:
            rewards.setdefault(row.key, {}).setdefault(label, []).append(row.reward)
    if not rewards:
        reason = next((row.error for _, _, row in rows), "nothing was rolled out")
        raise CatalogueError(f"no rollout of {len(rows)} got a verdict; the first failure was: {reason}")
    priors = measure(rewards)
    save_priors(priors, root / PRIORS)
    found = Stratified(
        directory=root,
        models=tuple(parts),
        priors=priors,
        suspects=tuple(_suspects(priors, rows, config.transcripts)),
        n_invalid=sum(row.reward is None for _, _, row in rows),
    )
    _write_suspects(found)
    return found


def folder_of(label: str) -> str:
    """A model's folder: its label, with what no file system wants replaced."""
    return re.sub(r"[^\w.+-]+", "--", label).strip(".") or "model"


async def _roll_out_all(
    config: StratifyConfig,
    planned: Sequence[Planned],
    options: Options,
    report: Callable[[str, Tick], None],
) -> None:
    """Every model to its end, then the first failure: an endpoint that is down holds up no other."""
    async with asyncio.TaskGroup() as nursery:
        running = [
            nursery.create_task(_roll_out_one(config, m, planned, options, report)) for m in config.models
        ]
    for failure in (task.result() for task in running):
        if failure is not None:
            raise failure


async def _roll_out_one(
    config: StratifyConfig,
    model: EndpointConfig,
    planned: Sequence[Planned],
    options: Options,
    report: Callable[[str, Tick], None],
) -> SnoozingError | None:
    run = Path(config.output) / folder_of(model.label)
    try:
        await roll_out(config, model, planned, run, options, lambda tick: report(model.label, tick))
    except SnoozingError as error:
        return error
    return None


def _suspects(priors: Priors, rows: Sequence[tuple[str, Part, Rollout]], most: int) -> Iterator[Suspect]:
    """The hopeless first, both in key order, with at most `most` transcripts per model."""
    by_key: dict[str, list[tuple[str, Part, Rollout]]] = {}
    for entry in rows:
        if entry[2].reward is not None:
            by_key.setdefault(entry[2].key, []).append(entry)
    verdicts: tuple[tuple[Why, list[bool]], ...] = (
        ("never solved", priors.postponed_N.tolist()),
        ("always solved", priors.removable_N.tolist()),
    )
    for why, marked in verdicts:
        for key, suspected in zip(priors.keys, marked, strict=True):
            if suspected:
                mine = by_key[key]
                _, part, row = mine[0]
                yield Suspect(
                    key=key,
                    environment=part.name,
                    dataset=row.dataset,
                    domain=row.domain,
                    why=why,
                    k=len(mine),
                    said=tuple(_said(mine, most)),
                )


def _said(rows: Sequence[tuple[str, Part, Rollout]], most: int) -> Iterator[Said]:
    shown: dict[str, int] = {}
    for label, part, row in rows:
        shown[label] = shown.get(label, 0) + 1
        if shown[label] <= most and row.reward is not None:
            yield Said(model=label, reward=row.reward, transcript=read_transcript(part, row))


def _write_suspects(found: Stratified) -> None:
    path = found.directory / SUSPECTS
    try:
        with path.open("w", encoding="utf-8") as file:
            for suspect in found.suspects:
                file.write(json.dumps(asdict(suspect), ensure_ascii=False) + "\n")
    except OSError as error:
        raise StateError(f"cannot write {path}: {error.strerror}; choose another output") from error
