"""Removes boxes whose owner is gone.

Boxes end by themselves when their owner's end of stdin closes, a SIGKILLed owner's included. What is left is for cases
such as an engine that was down at that moment.
"""

from __future__ import annotations

import contextlib

import docker
import docker.errors
from docker.models.containers import Container

from snoozing_sandboxes.hardening import LABEL, OWNER_LABELS, boot_id, start_ticks

__all__ = ["boxes_of_everyone", "reap"]


def reap(client: docker.DockerClient) -> int:
    """Remove every box of a process that no longer runs on this machine; the number removed."""
    gone = 0
    for container in boxes_of_everyone(client):
        boot, pid, start = (container.labels.get(name, "") for name in OWNER_LABELS)
        if boot == boot_id() and str(start_ticks(int(pid))) != start:
            with contextlib.suppress(docker.errors.NotFound, docker.errors.APIError):
                container.remove(force=True)
            gone += 1
    return gone


def boxes_of_everyone(client: docker.DockerClient) -> list[Container]:
    return client.containers.list(all=True, filters={"label": f"{LABEL}=1"}, ignore_removed=True)
