"""`open_pool`: the one way in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from snoozing_sandboxes.backend import Backend
from snoozing_sandboxes.hardening import Hardening
from snoozing_sandboxes.local import LocalBackend
from snoozing_sandboxes.pool import Pool

__all__ = ["open_pool"]


def open_pool(
    *,
    backend: Literal["docker", "local"] | Backend = "docker",
    boxes: int = 4,
    spares: int = 1,
    hosts: Sequence[str] = (),
    image: str = "auto",
    packages: Sequence[str] = (),
    preload: Sequence[str] = (),
    box_memory_mb: int = 512,
) -> Pool:
    """`async with open_pool(backend="docker", boxes=4) as pool`.

    `boxes` run at once and `spares` stand by. `hosts`: Docker endpoints to spread the boxes over (none: the one of the
    environment). `image`: "auto" takes or builds ours with `packages` of this Python, anything else is an image with a
    `python3`. `preload`: modules every program finds imported. `backend="local"` is UNSAFE: no walls, for machines
    without Docker.
    """
    if backend == "local":
        backend = LocalBackend(preload=preload)
    elif backend == "docker":
        from snoozing_sandboxes.engine import DockerBackend  # the SDK takes 0.2 s to import

        backend = DockerBackend(
            hosts=hosts,
            image=image,
            packages=packages,
            preload=preload,
            hardening=Hardening(memory_mb=box_memory_mb),
        )
    elif isinstance(backend, str):
        raise ValueError(f'unknown backend {backend!r}; choose "docker" or "local" (unsafe)')
    return Pool(backend, boxes=boxes, spares=spares)
