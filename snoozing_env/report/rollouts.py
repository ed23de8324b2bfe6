"""Graded rollouts as plain rows, read from verifiers' `traces.jsonl` without verifiers.

    RUN/eval.json                          what was evaluated, and how (ours; a foreign run has none)
    RUN/ENVIRONMENT/traces.jsonl           one episode per line, as `vf-eval` writes them too
    RUN/ENVIRONMENT/configs/resolved/…     verifiers' own config, which its tools look for

A process may be killed between any two bytes, so a line that does not parse is left out and counted.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from snoozing_env.errors import OutcomeError, StateError

TRACES = "traces.jsonl"
MANIFEST = "eval.json"
GOLDS = ("answer", "gold", "answers")
"""Where task data keep what a right reply says, most wanted first."""
Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoSided:
    """One half of a two-sided metric: how often the policy errs in one direction, on the tasks of one side."""

    side: str
    """Value of the task data's `side`."""
    metric: str = ""
    """Name of a trace metric in [0, 1] that is 1 where the policy erred so; "" = the reward that was missed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One environment of a run."""

    name: str
    directory: Path
    reward_range: tuple[float, float] = (0.0, 1.0)
    two_sided: Mapping[str, TwoSided] = field(default_factory=dict[str, TwoSided])


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout:
    """One finished rollout."""

    id: str
    key: str
    """Durable key of its task."""
    reward: float | None
    """In [0, 1]; None = invalid: infrastructure failed, a deadline passed, or the verdict is unknown."""
    error: str = ""
    """Why it is invalid."""
    dataset: str = ""
    domain: str = ""
    level: str = ""
    side: str = ""
    metrics: Mapping[str, float] = field(default_factory=dict[str, float])
    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0
    """From dispatch to the verdict."""
    truncated: bool = False
    at: int = 0
    """Byte offset of its line, for `read_transcript`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """What was said in a rollout."""

    prompt: str
    reply: str
    gold: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollouts:
    """All rollouts of one environment of a run."""

    part: Part
    rows: tuple[Rollout, ...]
    unreadable: int
    """Lines that are no whole JSON object, such as the last one of a killed process."""


def read_manifest(run: Path) -> Json:
    """What `snooze eval` noted of a run, {} for a run of another tool.

    Raises:
        StateError: nothing there, or not JSON.
    """
    path = run / MANIFEST
    if not path.is_file():
        if not run.is_dir():
            raise StateError(f"no evaluation at {run}; wanted the output directory of `snooze eval`")
        return {}
    try:
        return cast(Json, json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise StateError(f"cannot read {path}: {error}; restore the file or start the run anew") from error


def parts_of(run: Path) -> list[Part]:
    """The environments of a run directory; one of `vf-eval` counts as a run of one environment.

    Raises:
        StateError: there are no rollouts.
    """
    manifest = read_manifest(run)
    parts = [
        Part(
            name=str(entry["name"]),
            directory=run / str(entry["name"]),
            reward_range=cast(tuple[float, float], tuple(entry["reward_range"])),
            two_sided={name: TwoSided(**half) for name, half in entry["two_sided"].items()},
        )
        for entry in cast(Sequence[Json], manifest.get("environments", ()))
    ]
    if not parts and (run / TRACES).is_file():
        parts = [Part(name=run.name, directory=run)]
    if not parts:
        raise StateError(f"{run} holds neither {MANIFEST} nor {TRACES}; name the output directory of a run")
    return parts


def read_rollouts(part: Part) -> Rollouts:
    """Every rollout of an environment, in the order they finished; none where nothing ran yet.

    Raises:
        OutcomeError: a reward outside the environment's range.
    """
    path = part.directory / TRACES
    rows: list[Rollout] = []
    unreadable = 0
    for at, line in lines_of(path):
        episode = parse_line(line)
        if episode is None:
            unreadable += 1
        else:
            rows.append(_rollout(episode, part, at))
    return Rollouts(part=part, rows=tuple(rows), unreadable=unreadable)


def lines_of(path: Path) -> Iterator[tuple[int, bytes]]:
    """(byte offset, line) of each line that is not blank; nothing for a file that is not there."""
    if not path.is_file():
        return
    at = 0
    with path.open("rb") as file:
        for line in file:
            if line.strip():
                yield at, line
            at += len(line)


def parse_line(line: bytes) -> Json | None:
    """An episode, None for a torn or foreign line."""
    try:
        row = json.loads(line)
    except ValueError:
        return None
    return cast(Json, row) if isinstance(row, dict) and "traces" in row and "task" in row else None


def read_transcript(part: Part, rollout: Rollout) -> Transcript:
    """Prompt, reply and gold of a rollout, from its line."""
    with (part.directory / TRACES).open("rb") as file:
        file.seek(rollout.at)
        episode = cast(Json, json.loads(file.readline()))
    data = cast(Json, episode["task"]["data"])
    prompt, reply = _said(_counting(episode))
    gold = next((data[name] for name in GOLDS if data.get(name)), "")
    told = " | ".join(map(str, cast(list[object], gold))) if isinstance(gold, list) else str(gold)
    return Transcript(prompt=prompt or _text(data.get("prompt")), reply=reply, gold=told)


def why_invalid(episode: Json) -> str:
    """Why an episode says nothing about the policy; empty when it does.

    verifiers leaves `ok` true and the reward 0 when scoring ran out of time, which is no verdict.
    """
    late = [t for t in _counting(episode) if t.get("is_timeout")]
    if late:
        return str(late[0].get("stop_condition"))
    if episode.get("ok") and not episode.get("is_timeout"):
        return ""
    errors = [e for t in cast(Sequence[Json], episode["traces"]) for e in t.get("errors", ())]
    errors += episode.get("errors", ())
    return f"{errors[-1]['type']}: {errors[-1]['message']}" if errors else "the episode did not finish"


def _rollout(episode: Json, part: Part, at: int) -> Rollout:
    task, traces = cast(Json, episode["task"]), _counting(episode)
    data = cast(Json, task["data"])
    key = str(_table(episode.get("group")).get("id") or task.get("key") or task.get("hash"))
    error = why_invalid(episode)
    reward = None if error else scaled(_reward(traces), part.reward_range, key)
    usages = [c["usage"] for t in traces for c in t.get("calls", ()) if c.get("usage")]
    return Rollout(
        id=str(episode["id"]),
        key=key,
        reward=reward,
        error=error,
        dataset=str(data.get("dataset") or ""),
        domain=str(data.get("domain") or ""),
        level="" if data.get("level") is None else str(data["level"]),
        side=str(data.get("side") or ""),
        metrics=_metrics(traces),
        input_tokens=sum(u["prompt_tokens"] + (u.get("cached_input_tokens") or 0) for u in usages),
        output_tokens=sum(u["completion_tokens"] for u in usages),
        seconds=max((_seconds(t) for t in traces), default=0.0),
        truncated=any(c.get("finish_reason") == "length" for t in traces for c in t.get("calls", ())),
        at=at,
    )


def scaled(reward: float, reward_range: tuple[float, float], key: str) -> float:
    """The reward mapped from its environment's range to [0, 1].

    Raises:
        OutcomeError: it lies outside (D2).
    """
    low, high = reward_range
    share = (reward - low) / (high - low)
    # Weighted sums miss their ends by rounding.
    if not -1e-9 <= share <= 1 + 1e-9:
        raise OutcomeError(
            f"task {key!r} earned {reward:g}, outside [{low:g}, {high:g}]; set the environment's reward_range"
        )
    return min(1.0, max(0.0, share))


def _counting(episode: Json) -> list[Json]:
    """The traces of the policy's agents, all where none is marked."""
    traces = cast(list[Json], list(episode["traces"]))
    return [t for t in traces if t.get("agent", {}).get("trainable", True)] or traces


def _reward(traces: Sequence[Json]) -> float:
    """Mean over the policy's agents of the weighted sum of their rewards."""
    totals = [sum(r["score"] * r["weight"] for r in t.get("rewards", {}).values() if r) for t in traces]
    return sum(totals) / len(totals) if totals else 0.0


def _metrics(traces: Sequence[Json]) -> dict[str, float]:
    found: dict[str, float] = {}
    for trace in traces:
        found |= {name: float(v) for name, v in trace.get("metrics", {}).items() if v is not None}
        found |= {
            name: float(r["score"])
            for name, r in trace.get("rewards", {}).items()
            if r is not None and name not in found
        }
    return found


def _seconds(trace: Json) -> float:
    timing = _table(trace.get("timing"))
    end = max((float(_table(span).get("end", 0.0)) for span in timing.values()), default=0.0)
    return max(0.0, end - float(timing.get("start", 0.0))) if end else 0.0


def _table(value: object) -> Json:
    """A JSON object, empty for anything else."""
    return cast(Json, value) if isinstance(value, dict) else {}


def _said(traces: Sequence[Json]) -> tuple[str, str]:
    """(what the policy was given first, what came after)."""
    nodes = [node for trace in traces for node in trace.get("nodes", ())]
    first = next((i for i, node in enumerate(nodes) if node.get("sampled")), len(nodes))
    after = [_text(node["message"].get("content")) for node in nodes[first:]]
    marked = [f"[{node['message']['role']}] {text}" for node, text in zip(nodes[first:], after, strict=True)]
    before = [_text(node["message"].get("content")) for node in nodes[:first]]
    return "\n\n".join(before), after[0] if len(after) == 1 else "\n\n".join(marked)


def _text(content: object) -> str:
    if isinstance(content, list):
        pieces = cast(list[Json], content)
        return "\n\n".join(str(p.get("text") or _text(p.get("content"))) for p in pieces)
    return "" if content is None else str(content)
