"""Roll out the tasks of several environments against one endpoint; every finished rollout is on disk at once.

    jobs (task × k, environments interleaved) ──▶ W workers ──▶ gate ──▶ attempt ──▶ valid? ──▶ traces.jsonl
                                                     ▲                      │ 429: pause, ask again
                                                     └── pause, try again ◀─┘ failed: at most `attempts`

Who ends a wait: the gate by the clock or a finished request; an attempt by its deadline; the whole by the queue
running empty, or by an endpoint that refuses everything or fails `give_up_after` times in a row.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import numpy as np
import verifiers.v1 as vf
from verifiers.v1.episode import EvalRunInfo, GroupInfo
from verifiers.v1.utils.trace_store import append_episode

from snoozing_env.errors import ConfigError, EngineError, SnoozingError
from snoozing_env.evaluate.config import EndpointConfig, PlanConfig, TestedEnvironment
from snoozing_env.evaluate.endpoint import ChatEndpoint
from snoozing_env.evaluate.folder import Planned, finished, locked, prepare, rollout_id
from snoozing_env.evaluate.local import serving
from snoozing_env.evaluate.pace import Gate, Pace
from snoozing_env.evaluate.play import Attempt, Player
from snoozing_env.report.rollouts import scaled
from snoozing_env.rollout.catalogue import EnvironmentConfig, load_catalogue

LONGEST_PAUSE_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to treat what the run directory already holds."""

    resume: bool = False
    overwrite: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One rollout that is owed."""

    part: Planned
    index: int
    """Catalogue index of its task."""
    k: int

    @property
    def key(self) -> str:
        return self.part.catalogue.infos[self.index].key

    @property
    def id(self) -> str:
        return rollout_id(self.part.name, self.key, self.k)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """What progress is told after each finished rollout."""

    done: int
    """Rollouts on disk, those of earlier processes included."""
    total: int
    invalid: int
    note: str = ""
    """News worth a line of its own."""


Report = Callable[[Tick], None]


def plan(config: PlanConfig) -> list[Planned]:
    """Load every environment and draw its tasks.

    Raises:
        ConfigError: no environment was named, one is not installed, or an option is refused.
        CatalogueError: a task set does not load.
    """
    if not config.tested:
        raise ConfigError(
            "no environment was named; use --environments snooze-math … or [[environment]] tables in a TOML file"
        )
    planned: list[Planned] = []
    for one in config.tested:
        known = {name: getattr(one, name) for name in EnvironmentConfig.model_fields}
        catalogue = load_catalogue(
            EnvironmentConfig(**known | {"taskset": _with_split(one, config.split), "priors": ""})
        )
        drawn = draw([info.key for info in catalogue.infos], config.tasks, seed=config.seed)
        planned.append(Planned(config=one, catalogue=catalogue, drawn=drawn))
    return planned


def draw(keys: Sequence[str], n: int | None, *, seed: int) -> tuple[int, ...]:
    """Positions of n of the keys, in an order that depends on seed and key alone.

    A larger n starts with the smaller one, and a reordered or extended task set gives the same tasks: a resumed run
    may ask for more.
    """
    ranked = sorted(range(len(keys)), key=lambda i: hashlib.sha256(f"{seed}\0{keys[i]}".encode()).digest())
    return tuple(ranked[:n])


def _with_split(one: TestedEnvironment, split: str | None) -> dict[str, object]:
    """The environment's options, with `split` where its task set names that one among its choices."""
    try:
        fields = vf.taskset_config_type(one.id).model_fields
    except (ModuleNotFoundError, ImportError):
        return one.taskset  # loading it says what is wrong
    knows = (
        split is not None and "split" in fields and split in get_args(_unalias(fields["split"].annotation))
    )
    return {"split": split, **one.taskset} if knows else one.taskset


def _unalias(annotation: object) -> object:
    return getattr(annotation, "__value__", annotation)


def evaluate(
    config: PlanConfig,
    endpoint: EndpointConfig,
    planned: Sequence[Planned],
    run: Path,
    options: Options,
    report: Report,
) -> None:
    """`roll_out` in an event loop of its own."""
    asyncio.run(roll_out(config, endpoint, planned, run, options, report))


async def roll_out(
    config: PlanConfig,
    endpoint: EndpointConfig,
    planned: Sequence[Planned],
    run: Path,
    options: Options,
    report: Report,
) -> None:
    """Have every planned rollout on disk that the endpoint can give.

    Raises:
        EngineError: the endpoint cannot be reached, refuses every request, or went down; what is finished stays.
        StateError: the directory holds another run.
    """
    with locked(run):
        async with serving(endpoint) as (url, model):
            client = ChatEndpoint(endpoint, url=url, model=model)
            await client.open()
            try:
                # Only now: a run that never reached its endpoint leaves no directory that would have to be resumed.
                prepare(
                    run,
                    config,
                    endpoint,
                    planned,
                    model=client.model,
                    resume=options.resume,
                    overwrite=options.overwrite,
                )
                await Evaluation(config, client, planned, run, report).finish()
            finally:
                await client.close()


class Evaluation:
    """One run in one event loop."""

    def __init__(
        self, config: PlanConfig, client: ChatEndpoint, planned: Sequence[Planned], run: Path, report: Report
    ) -> None:
        self.config, self.run = config, run
        self._report = report
        self._gate = Gate(Pace(config.concurrency, backoff_s=config.backoff_s))
        self._players = {
            one.name: Player(one.catalogue, client, config.sampling, deadline_s=config.deadline_s)
            for one in planned
        }
        self._locks = {one.name: asyncio.Lock() for one in planned}
        self._info = EvalRunInfo(id=hashlib.sha256(str(run).encode()).hexdigest()[:16], name=run.name)
        self._jobs, self._total, dropped = self._owed(planned)
        self._done, self._invalid, self._failures = self._total - len(self._jobs), 0, 0
        self._jitter = random.Random(config.seed)
        note = f"{self._done} of {self._total} rollouts were done already" if self._done else ""
        if dropped:
            note += f"{'; ' if note else ''}{dropped} invalid or torn ones run again"
        self._tell(note)

    async def finish(self) -> None:
        """Work off the queue."""
        try:
            async with asyncio.TaskGroup() as nursery:
                for _ in range(min(self.config.concurrency, len(self._jobs))):
                    nursery.create_task(self._work())
        except* SnoozingError as failed:
            raise first_error(failed) from failed
        finally:
            for player in self._players.values():
                await player.close()

    def _owed(self, planned: Sequence[Planned]) -> tuple[deque[Job], int, int]:
        """(rollouts that are not on disk, how many are wanted in all, lines dropped from the files)."""
        jobs: list[tuple[tuple[int, int], Job]] = []
        total = dropped = 0
        for one in planned:
            done, lost = finished(self.run / one.name)
            dropped += lost
            total += len(one.drawn) * self.config.rollouts
            for place, index in enumerate(one.drawn):
                mine = (Job(part=one, index=index, k=k) for k in range(self.config.rollouts))
                jobs += [((place, job.k), job) for job in mine if job.id not in done]
        # Environments side by side, so that the time left is told from all of them; a task's rollouts together, so
        # that the endpoint's prefix cache serves all but the first.
        return deque(job for _, job in sorted(jobs, key=lambda pair: pair[0])), total, dropped

    async def _work(self) -> None:
        while self._jobs:
            job = self._jobs.popleft()
            attempt = await self._roll(job)
            episode = attempt.episode
            episode.id, episode.group = job.id, GroupInfo(id=job.key)
            episode.record_run(self._info)
            await append_episode(self.run / job.part.name, episode, self._locks[job.part.name])
            self._done += 1
            self._invalid += attempt.verdict != "valid"
            self._tell()

    async def _roll(self, job: Job) -> Attempt:
        """The last attempt: a valid one, or the one after which trying stopped."""
        seed = int(np.random.SeedSequence([self.config.seed, int(job.id, 16)]).generate_state(1)[0] >> 1)
        started, failed = time.monotonic(), 0
        while True:
            async with self._gate.slot():
                attempt = await self._players[job.part.name].play(job.index, seed=seed)
                self._learn(attempt)
            if attempt.verdict == "valid":
                self._check_reward(job, attempt)
                return attempt
            if attempt.verdict == "limited" and time.monotonic() - started < self.config.patience_s:
                continue
            failed += 1
            if attempt.verdict in ("limited", "final") or failed >= self.config.attempts:
                return attempt
            await asyncio.sleep(self._pause(failed, attempt.pause))

    def _learn(self, attempt: Attempt) -> None:
        """Tell the pace, and count failures in a row.

        Raises:
            EngineError: too many.
        """
        if attempt.verdict == "limited":
            self._gate.limited(attempt.pause)
        elif attempt.verdict == "endpoint":
            self._failures += 1
            if self._failures >= self.config.give_up_after:
                raise EngineError(
                    f"the endpoint failed {self._failures} times in a row, last: {attempt.reason}; what is finished "
                    f"stays in {self.run}, go on with --resume"
                )
        else:
            self._failures = 0
            self._gate.succeeded(attempt.headers)

    def _pause(self, failed: int, asked: float | None) -> float:
        longest = min(self.config.backoff_s * 2 ** (failed - 1), LONGEST_PAUSE_S)
        return longest * self._jitter.uniform(0.5, 1.5) if asked is None else min(asked, LONGEST_PAUSE_S)

    def _check_reward(self, job: Job, attempt: Attempt) -> None:
        """Refuse a reward outside the environment's range at the first rollout, not in the summary."""
        for trace in attempt.episode.traces:
            if trace.agent.trainable:
                scaled(trace.reward, job.part.config.reward_range, job.key)

    def _tell(self, note: str = "") -> None:
        self._report(Tick(done=self._done, total=self._total, invalid=self._invalid, note=note))


def first_error(group: BaseExceptionGroup[SnoozingError]) -> SnoozingError:
    """The first error of a task group, out of however many groups it is nested in."""
    error = group.exceptions[0]
    return first_error(error) if isinstance(error, BaseExceptionGroup) else error
