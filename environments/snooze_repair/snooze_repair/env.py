"""One episode: a box for the agent, given back clean, and then the hidden tests in another.

start ─ pool opens                          run ─ lend a box ─▶ agent plays ─▶ box back
stop  ─ pool closes                    finalize ─ score the trace; needs a box, so never while holding one
"""

from __future__ import annotations

import logging
from contextlib import AsyncExitStack

import verifiers.v1 as vf
from snoozing_sandboxes import Pool
from snoozing_sandboxes.errors import SandboxError
from snoozing_sandboxes.runtime import PoolRuntime

from snooze_repair.config import RepairTaskConfig
from snooze_repair.lending import shared_pool

logger = logging.getLogger(__name__)

_KEPT_BYTES_PER_CHAR = 4


class RepairEnvConfig(vf.EnvConfig):
    """`--env.*` of snooze-repair."""

    # A box of the pool is lent to every run; this says to verifiers that commands run in a container.
    agent: vf.AgentConfig = vf.AgentConfig(runtime=vf.DockerConfig(image="snoozing-sandbox", workdir="/box"))


class RepairEnv(vf.Env[RepairEnvConfig]):
    """Lends boxes. A lost box fails the episode: it is invalid, never 0."""

    def __init__(self, config: RepairEnvConfig) -> None:
        super().__init__(config)
        self._stack = AsyncExitStack()
        self._pool: Pool | None = None

    @property
    def limits(self) -> RepairTaskConfig:
        return self.config.taskset.task  # type: ignore[return-value]

    @property
    def pool(self) -> Pool:
        """The pool between `start` and `stop`."""
        if self._pool is None:
            raise RuntimeError("the boxes of this environment are open inside `env.serving()` only")
        return self._pool

    async def start(self) -> None:
        self._pool = await self._stack.enter_async_context(shared_pool(self.limits.sandbox))

    async def stop(self) -> None:
        self._pool = None
        await self._stack.aclose()

    async def run(self, task: vf.Task, agents: vf.Agents) -> None:
        limits = self.limits
        runtime = PoolRuntime(
            self.pool,
            cpu_s=limits.command_cpu_s,
            wall_s=limits.command_wall_s,
            output_bytes=_KEPT_BYTES_PER_CHAR * limits.output_chars,
        )
        try:
            await runtime.start()
            await agents.agent.run(task.defer_scoring(), runtime=runtime)
        finally:
            await _give_back(runtime)

    async def finalize(self, task: vf.Task, episode: vf.Episode) -> None:
        for trace in episode.traces:
            if trace.ok:
                await task.score(trace)


async def _give_back(runtime: PoolRuntime) -> None:
    """A box that does not come clean is replaced; the episode in it is over and stands."""
    try:
        await runtime.stop()
    except (vf.SandboxError, SandboxError) as error:
        logger.warning("a box was replaced: %s", error)
