"""Several engines behind one: the least loaded gets the next request, a dead one is noticed and survived.

    sample ─▶ choose (serving, least loaded; the group's own engine first) ─▶ engine ─┬─ completions
                    ▲                                                               └─ EngineError ─▶ down, try the next
                    └── probe every `probe_s`: answers again ─▶ stale until it has been sent the present weights

An engine that restarted serves the weights it was started with, so one that was down serves nothing until a push has
reached it: `stale()` names those, and whoever owns the weights pushes and says `served(i, version)`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Literal

from snoozing_env.errors import EngineError
from snoozing_env.rollout.engines.base import (
    Completion,
    Endpoint,
    Engine,
    Labelling,
    Message,
    SamplingParams,
)

log = logging.getLogger(__name__)

Condition = Literal["serving", "draining", "down", "stale"]
_UP: tuple[Condition, ...] = ("serving", "draining")


@dataclass(slots=True)
class Member:
    """One engine of a fleet."""

    name: str
    """How it is called in messages: its address."""
    engine: Engine
    condition: Condition = "serving"
    load: int = 0
    """Completions in progress."""
    episodes: int = 0
    """Episodes whose turns go to it."""
    failures: int = 0
    """Times that it went down."""
    resent: int = 0
    """Requests that it failed and that were asked again elsewhere."""
    reason: str = ""
    """Why it is down."""


class FleetEngine:
    """`Engine` over several engines that serve the same policy. One event loop uses it."""

    def __init__(self, engines: Mapping[str, Engine], *, probe_s: float = 2.0, affinity: int = 4096) -> None:
        """`engines` by name. `probe_s`: seconds between two looks at an engine that is down. `affinity`: prompts
        whose engine is remembered, so that a group's later turns find their prefix in its cache."""
        if not engines:
            raise ValueError("a fleet needs at least one engine")
        self.members = tuple(Member(name, engine) for name, engine in engines.items())
        self._probe_s, self._affinity = probe_s, affinity
        self._home: dict[int, int] = {}
        self._prober: asyncio.Task[None] | None = None
        self._started = False
        self._changed = asyncio.Event()

    @property
    def model(self) -> str:
        return self.members[0].engine.model

    @property
    def version(self) -> int:
        """Oldest version that the next request may see."""
        return min((m.engine.version for m in self.members if m.condition in _UP), default=0)

    def set_version(self, version: int) -> None:
        """Every engine in service serves `version` now; one that came back meanwhile still waits for its push."""
        for member in self.members:
            if member.condition in _UP:
                member.engine.set_version(version)

    def expect(self, index: int, version: int) -> None:
        """The engine at `index` is being sent the weights of `version`, and may answer with them from now on."""
        engine = self.members[index].engine
        if isinstance(engine, Labelling):
            engine.expect(version)

    def served(self, index: int, version: int) -> None:
        """The engine at `index` has been sent the weights of `version` and may be asked again."""
        member = self.members[index]
        member.engine.set_version(version)
        if member.condition == "stale":
            text = "%s serves again, with weights %d; %d requests were asked again elsewhere so far"
            log.warning(text, member.name, version, member.resent)
        member.condition = "serving"
        self._changed.set()

    def stale(self) -> list[int]:
        """Engines that answer but have not been sent the present weights since they came back."""
        return [i for i, member in enumerate(self.members) if member.condition == "stale"]

    async def drain(self, index: int) -> None:
        """Send an engine nothing new and wait until it has answered what it was sent; `served` ends that."""
        member = self.members[index]
        if member.condition == "serving":
            member.condition = "draining"
        # Each wait ends with an answer, a failure or a push; more than one may be waiting, hence the loop.
        while member.load and member.condition == "draining":
            self._changed.clear()
            await self._changed.wait()

    def fail(self, index: int, reason: str) -> None:
        """Take an engine out of service, e.g. because a push did not reach it."""
        member = self.members[index]
        if member.condition != "down":
            log.warning("%s is out of service: %s", member.name, reason)
            member.failures += 1
        member.condition, member.reason = "down", reason
        self._changed.set()
        if self._started and (self._prober is None or self._prober.done()):
            self._prober = asyncio.get_running_loop().create_task(self._probe(), name="fleet probe")

    # -- Engine -----------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Start every engine; those that do not answer are down, and it is an error only when all are."""
        self._started = True
        results = await asyncio.gather(*(m.engine.start() for m in self.members), return_exceptions=True)
        for i, result in enumerate(results):
            if isinstance(result, EngineError):
                self.fail(i, str(result))
            elif result is not None:
                raise result
        self._need_one()

    async def sample(
        self, messages: Sequence[Message], *, n: int, seed: int, params: SamplingParams
    ) -> list[Completion]:
        tried: set[int] = set()
        while True:
            index = await self._choose(tried, seed)
            member = self.members[index]
            member.load += n
            try:
                return await member.engine.sample(messages, n=n, seed=seed, params=params)
            except EngineError as error:
                tried.add(index)
                member.resent += 1
                self.fail(index, str(error))
            finally:
                member.load -= n
                self._changed.set()

    async def endpoint(self) -> Endpoint:
        """The address of the least loaded engine, for whoever asks once."""
        return await self.members[await self._choose(set(), None)].engine.endpoint()

    @asynccontextmanager
    async def lease(self, group: int, n: int) -> AsyncIterator[Endpoint]:
        """One engine for all turns of a group's episodes, whose prefix they share; if it fails it is out of service,
        and the group starts again on another."""
        index = await self._choose(set(), group)
        member = self.members[index]
        member.episodes += n
        try:
            yield await member.engine.endpoint()
        except EngineError as error:
            self.fail(index, str(error))
            raise
        finally:
            member.episodes -= n

    async def close(self) -> None:
        self._started = False
        if self._prober is not None:
            self._prober.cancel()
            await asyncio.gather(self._prober, return_exceptions=True)
        await asyncio.gather(*(member.engine.close() for member in self.members))

    # -- choosing ---------------------------------------------------------------------------------------

    async def _choose(self, tried: set[int], group: int | None) -> int:
        """The group's own engine if it serves, else the least loaded one; waits while all are being drained.

        Raises:
            EngineError: none serves; the message has each one's reason.
        """
        while not (
            serving := [i for i, m in enumerate(self.members) if m.condition == "serving" and i not in tried]
        ):
            self._need_one(tried)
            self._changed.clear()
            await self._changed.wait()
        home = None if group is None else self._home.get(group)
        if home is None or home not in serving:
            home = min(serving, key=lambda i: (self.members[i].load + self.members[i].episodes, i))
        if group is not None:
            self._home[group] = home
            if len(self._home) > self._affinity:
                del self._home[next(iter(self._home))]
        return home

    def _need_one(self, tried: set[int] | frozenset[int] = frozenset()) -> None:
        if any(m.condition in _UP and i not in tried for i, m in enumerate(self.members)):
            return
        why = "; ".join(
            f"{m.name}: {m.reason if m.condition == 'down' else 'waits for weights'}" for m in self.members
        )
        raise EngineError(f"none of {len(self.members)} engines serves ({why})")

    # -- coming back ------------------------------------------------------------------------------------

    async def _probe(self) -> None:
        """Look at engines that are down until none is."""
        while down := [i for i, m in enumerate(self.members) if m.condition == "down"]:
            await asyncio.sleep(self._probe_s)
            for index in down:
                member = self.members[index]
                try:
                    await member.engine.start()
                except EngineError as error:
                    member.reason = str(error)
                else:
                    member.condition, member.reason = "stale", ""
                    log.warning("%s answers again and waits for weights", member.name)
