"""The run directory: what is kept there, and what a resumed run finds done.

RUN/eval.json                 the request, and what identifies it
RUN/ENV/configs/resolved/     verifiers' own EvalConfig, so that `vf-replay RUN/ENV` works
RUN/ENV/traces.jsonl          appended while the run lives; rewritten whole, once, when it is resumed
RUN/.lock                     held by the process that writes
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from verifiers.v1.cli.output import write_config
from verifiers.v1.configs.cli.eval import EvalConfig as VerifiersConfig

from snoozing_env.errors import StateError
from snoozing_env.evaluate.config import EndpointConfig, PlanConfig, SamplingConfig, TestedEnvironment
from snoozing_env.report.rollouts import MANIFEST, TRACES, lines_of, parse_line, read_manifest, why_invalid
from snoozing_env.rollout.catalogue import Catalogue
from snoozing_env.schedulers.state import write_atomically

LOCK = ".lock"
TRACKED = ("snoozing-env", "snooze-kit", "verifiers")


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """One environment of a run, with the tasks that were drawn from it."""

    config: TestedEnvironment
    catalogue: Catalogue
    drawn: tuple[int, ...]
    """Catalogue indices, in the order they are rolled out."""

    @property
    def name(self) -> str:
        return self.config.label


def rollout_id(environment: str, key: str, k: int) -> str:
    """Identity of the k-th rollout of a task in a run; 32 hex digits, like verifiers' own episode ids."""
    return hashlib.sha256(json.dumps([environment, key, k]).encode()).hexdigest()[:32]


@contextmanager
def locked(run: Path) -> Iterator[None]:
    """Keep a second process from writing into a run; a killed one lets go by itself.

    Raises:
        StateError: another process holds it, or the directory cannot be written.
    """
    try:
        run.mkdir(parents=True, exist_ok=True)
        handle = os.open(run / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise StateError(f"cannot write to {run}: {error.strerror}; choose another output") from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as error:
        raise StateError(f"another process writes to {run}; wait for it or choose another output") from error
    finally:
        os.close(handle)


def prepare(
    run: Path,
    config: PlanConfig,
    endpoint: EndpointConfig,
    planned: Sequence[Planned],
    *,
    model: str,
    resume: bool,
    overwrite: bool,
) -> None:
    """Make the directory ready to append to, inside `locked`.

    Raises:
        StateError: it holds another run, or an unfinished one and neither flag was given.
    """
    begun = (run / MANIFEST).is_file()
    if begun and overwrite:
        for old in run.iterdir():
            if old.name != LOCK:
                shutil.rmtree(old) if old.is_dir() else old.unlink()
    elif begun and not resume:
        raise StateError(
            f"{run} already holds an evaluation; pass --resume to go on with it, --overwrite to start anew, or "
            "another output"
        )
    identity = _identity(config, planned, model)
    if begun and not overwrite:
        _check_same(run, identity, config)
    for one in planned:
        (run / one.name).mkdir(parents=True, exist_ok=True)
        write_config(_verifiers_config(run, config, endpoint, one, model), run / one.name, "eval.json")
    write_atomically(
        run / MANIFEST,
        json.dumps(_manifest(config, endpoint, planned, identity), indent=1, default=str).encode(),
    )


def finished(directory: Path) -> tuple[set[str], int]:
    """Ids of the valid rollouts of an environment, and how many lines were dropped on the way.

    The file keeps only those: an invalid rollout is owed again, and a line torn by a kill would end up glued to
    the next one.
    """
    path = directory / TRACES
    kept: dict[str, bytes] = {}
    dropped, whole = 0, True
    for _, line in lines_of(path):
        whole = line.endswith(b"\n")
        episode = parse_line(line)
        if episode is None or why_invalid(episode) or str(episode["id"]) in kept:
            dropped += 1
        else:
            kept[str(episode["id"])] = line if whole else line + b"\n"
    if dropped or not whole:
        write_atomically(path, b"".join(kept.values()))
    return set(kept), dropped


def _identity(config: PlanConfig, planned: Sequence[Planned], model: str) -> dict[str, Any]:
    """What must not change between a run and its resumption; the address of the endpoint and the patience may."""
    chosen = {"id", "taskset", "harness", "limit", "exclude"}
    return {
        "model": model,
        "seed": config.seed,
        "sampling": config.sampling.model_dump(mode="json"),
        "environments": {
            one.name: {
                **one.config.model_dump(mode="json", include=chosen),
                "taskset": one.catalogue.config.taskset,
            }
            for one in planned
        },
    }


def _check_same(run: Path, identity: Mapping[str, Any], config: PlanConfig) -> None:
    manifest = read_manifest(run)
    before, now = manifest["identity"], json.loads(json.dumps(identity, default=str))
    if changed := [name for name in now if before.get(name) != now[name]]:
        told = "; ".join(f"{name} was {before.get(name)!r}, now {now[name]!r}" for name in changed)
        raise StateError(
            f"{run} was run differently: {told}. Rollouts of both would not compare; resume with the same settings, "
            "or choose another output"
        )
    old = manifest["config"]
    fewer = [
        name
        for name, was, wanted in (
            ("tasks", old["tasks"] or float("inf"), config.tasks or float("inf")),
            ("rollouts", old["rollouts"], config.rollouts),
        )
        if wanted < was
    ]
    if fewer:
        raise StateError(
            f"{run} was run with more {fewer[0]} ({old[fewer[0]]}); a resumed run may only ask for more"
        )


def _manifest(
    config: PlanConfig, endpoint: EndpointConfig, planned: Sequence[Planned], identity: Mapping[str, Any]
) -> dict[str, Any]:
    environments = [
        {
            "name": one.name,
            "id": one.config.id,
            "n_tasks": len(one.drawn),
            "n_available": len(one.catalogue),
            "reward_range": one.config.reward_range,
            "two_sided": {
                **_declared(one.catalogue),
                **{name: half.model_dump() for name, half in one.config.two_sided.items()},
            },
        }
        for one in planned
    ]
    # extra_body is free text to us, and may hold what its owner does not want copied around.
    shown = endpoint.model_dump(mode="json", exclude={"extra_body"})
    dump = config.model_dump(mode="json", exclude={"endpoint", "endpoints"})
    return {
        "config": {**dump, "endpoint": shown},
        "identity": identity,
        "environments": environments,
        "versions": _versions([one.config.id for one in planned]),
    }


def _declared(catalogue: Catalogue) -> dict[str, dict[str, str]]:
    """`TWO_SIDED` of a task set: {"over_refusal": ("safe", "refused"), …}, name → (side, trace metric)."""
    table: Mapping[str, tuple[str, str]] = getattr(type(catalogue.env.taskset), "TWO_SIDED", {})
    return {name: {"side": side, "metric": metric} for name, (side, metric) in table.items()}


def _verifiers_config(
    run: Path, config: PlanConfig, endpoint: EndpointConfig, one: Planned, model: str
) -> VerifiersConfig:
    given: SamplingConfig = config.sampling
    return VerifiersConfig.model_validate(
        {
            "env": one.catalogue.env.config.model_dump(mode="json"),
            "model": model,
            "client": {"type": "eval", "base_url": endpoint.root, "api_key_var": endpoint.key_env},
            "sampling": given.model_dump(mode="json", exclude={"stop"}, exclude_none=True),
            "num_rollouts": config.rollouts,
            "max_concurrent": config.concurrency,
            "push": False,
            "output_dir": str(run),
            "run": {"name": one.name, "dir": one.name},
        }
    )


def _versions(environments: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name in dict.fromkeys([*TRACKED, *environments]):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
