"""One gloo process group between a trainer (rank 0) and a server's workers, apart from torch's default group.

Both ends use this module; it needs torch only, because one end runs inside vLLM.
"""

from __future__ import annotations

import datetime
import ipaddress
from typing import Any

import torch
from torch import distributed as dist


def open_store(address: str, port: int, *, world_size: int, timeout_s: float, master: bool) -> Any:
    """The rendezvous; the master picks a free port when `port` is 0 and does not wait for the others."""
    timeout = datetime.timedelta(seconds=timeout_s)
    return dist.TCPStore(address, port, world_size, is_master=master, timeout=timeout, wait_for_workers=False)


def join(store: Any, address: str, *, rank: int, world_size: int, timeout_s: float) -> Any:
    """Enter the group; blocks until every rank has, RuntimeError after `timeout_s`."""
    options = dist.ProcessGroupGloo._Options()
    options._timeout = datetime.timedelta(seconds=timeout_s)
    # Gloo advertises the address of the host name by default, which a container may not resolve.
    device = dist.ProcessGroupGloo.create_device
    options._devices = [device(hostname=address) if _is_loopback(address) else device()]
    return dist.ProcessGroupGloo(dist.PrefixStore("snooze_weights", store), rank, world_size, options)


def broadcast(group: Any, tensor: torch.Tensor) -> None:
    """Send (rank 0) or fill (the others) a contiguous CPU tensor; RuntimeError when a peer is gone or too slow."""
    options = dist.BroadcastOptions()
    options.rootRank, options.rootTensor = 0, 0
    # Bytes, because gloo refuses bfloat16 and int16.
    group.broadcast([tensor.view(-1).view(torch.uint8)], options).wait()


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"
