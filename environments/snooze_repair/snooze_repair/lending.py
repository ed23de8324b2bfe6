"""One pool per event loop and configuration, open while anybody uses it.

An environment holds it open for a whole run; a check of a single task opens one and closes it again. The registry is
the one piece of state of this module: tasks are created by loaders that know of no pool.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from snoozing_sandboxes import Pool, open_pool

from snooze_repair.config import SandboxConfig


@dataclass(slots=True)
class _Shared:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    pool: Pool | None = None
    users: int = 0


_OPEN: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, _Shared]] = WeakKeyDictionary()


@asynccontextmanager
async def shared_pool(config: SandboxConfig) -> AsyncIterator[Pool]:
    """The pool of this loop and configuration; the last user closes it. Raises sandboxes.SandboxError without an engine."""
    pools = _OPEN.setdefault(asyncio.get_running_loop(), {})
    shared = pools.setdefault(config.model_dump_json(), _Shared())
    pool = await _enter(shared, config)
    try:
        yield pool
    finally:
        async with shared.lock:
            shared.users -= 1
            if not shared.users:
                shared.pool = None
                await shared.stack.aclose()


async def _enter(shared: _Shared, config: SandboxConfig) -> Pool:
    async with shared.lock:
        if shared.pool is None:
            opening = open_pool(
                backend=config.backend,
                boxes=config.boxes,
                spares=config.spares,
                hosts=config.hosts,
                image=config.image,
            )
            shared.pool = await shared.stack.enter_async_context(opening)
        shared.users += 1
        return shared.pool
