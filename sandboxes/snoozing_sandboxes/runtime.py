"""A verifiers Runtime over a pool: one box per rollout, lent by an environment to its agent.

    async with open_pool(boxes=8) as pool:                    # in the environment's start
        runtime = PoolRuntime(pool)
        await runtime.start()
        await agents.agent.run(task, runtime=runtime)         # borrowed: the agent does not stop it
        await runtime.stop()                                  # sweep and wipe, back to the pool

A lost box is a `SandboxError` of verifiers: the rollout is recorded as failed, never as wrong.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import PurePosixPath
from typing import Any

from verifiers.v1.errors import SandboxError as RolloutSandboxError
from verifiers.v1.runtimes import DockerConfig, DockerRuntimeInfo, ProgramResult, Runtime

from snoozing_sandboxes.box import Box
from snoozing_sandboxes.errors import SandboxError
from snoozing_sandboxes.pool import Pool

__all__ = ["PoolRuntime"]

_TIMED_OUT = 124
"""What `timeout` exits with."""
_SIGNALLED = 128


class PoolRuntime(Runtime):
    """Commands run in the box's working folder, offline, with these limits each; files are read and written as the
    program's own user. It presents itself as a container without network policy, which is what verifiers asks for."""

    def __init__(
        self,
        pool: Pool,
        *,
        cpu_s: float = 60.0,
        wall_s: float = 600.0,
        output_bytes: int = 1 << 20,
        name: str | None = None,
    ) -> None:
        super().__init__(name)
        self._pool = pool
        self._options = {"cpu_s": cpu_s, "wall_s": wall_s, "output_bytes": output_bytes}
        self._stack = AsyncExitStack()
        self._box: Box | None = None
        self.config = DockerConfig(image="snoozing-sandbox", workdir="/box")
        self.info = DockerRuntimeInfo(**self.config.model_dump())

    @property
    def box(self) -> Box:
        """The box between `start` and `stop`."""
        if self._box is None:
            raise RolloutSandboxError("this runtime has no box: call start() first, and not after stop()")
        return self._box

    async def start(self) -> None:
        async with _recorded():
            self._box = await self._stack.enter_async_context(self._pool.box())
        self.info.id = self._box.name

    async def teardown(self) -> None:
        self._box = None
        async with _recorded():
            await self._stack.aclose()

    async def run(self, argv: Sequence[str], env: dict[str, str]) -> ProgramResult:
        options: dict[str, Any] = {**self._options, "env": self.process_env(env)}
        async with _recorded():
            result = await self.box.execute(argv, **options)
        code = result.exit_code if result.exit_code is not None else _SIGNALLED + (result.signal or 0)
        return ProgramResult(_TIMED_OUT if result.status == "timeout" else code, result.stdout, result.stderr)

    async def write(self, path: str, data: bytes) -> None:
        async with _recorded():
            await self.box.write({path: data})

    async def _read(self, path: str, max_bytes: int | None = None) -> bytes:
        async with _recorded():
            found = await self.box.read([path], max_bytes=max(1, max_bytes or 8 << 20), truncate=True)
        if set(found) != {path} and set(found) != {str(PurePosixPath(path))}:
            raise RolloutSandboxError(f"read {path!r}: no such file in the box")
        return next(iter(found.values()))


@asynccontextmanager
async def _recorded() -> AsyncIterator[None]:
    """Our failures as theirs."""
    try:
        yield
    except (SandboxError, OSError, ValueError) as error:
        raise RolloutSandboxError(str(error)) from error
