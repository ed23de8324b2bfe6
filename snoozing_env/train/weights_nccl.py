"""Weight transfer between GPUs over vLLM's built-in NCCL backend."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import torch

from snoozing_env.errors import WeightTransferError
from snoozing_env.train.weights import Named, SequencedTransfer
from snoozing_env.train.weights_config import NcclTransferConfig


class NcclTransfer(SequencedTransfer):
    """vLLM's own NCCL sender, driven through the same sequence.

    vLLM loads each tensor as it arrives, so unlike the other two a trainer that dies in the middle leaves mixed
    weights: connect again and push before sampling from the server.
    """

    backend = "nccl"

    def __init__(self, config: NcclTransferConfig) -> None:
        super().__init__(config.base_url, timeout_s=config.timeout_s)
        self._address = config.master_address
        self._sender: Any = None
        self._source: Any = None

    def connect(self) -> None:
        if not torch.cuda.is_available():
            raise WeightTransferError(
                "weight transfer 'nccl' needs a CUDA GPU in the trainer, none is visible; use 'gloo' or 'dir'"
            )
        super().connect()

    def close(self) -> None:
        super().close()
        if self._sender is not None:
            self._sender.shutdown()
        self._sender = None

    def _join(self) -> None:
        try:
            from snoozing_env.train import vllm_worker
        except ModuleNotFoundError as error:
            raise WeightTransferError(
                f"weight transfer 'nccl' needs vLLM in the trainer's environment ({error}); use 'gloo' or 'dir', or install it"
            ) from error
        self._source = vllm_worker.TensorSource()
        world = 1 + self._routes.world_size()
        self._sender = _nccl_errors(
            "connect",
            lambda: vllm_worker.open_nccl_sender(
                self._routes,
                self._source,
                address=self._address,
                port=_free_port(self._address),
                world_size=world,
            ),
        )

    def _deliver(self, tensors: Named) -> None:
        """vLLM's sender runs start, update and finish itself, with our routes as its client."""
        self._source.tensors = tensors
        try:
            _nccl_errors("update", self._sender.send_weights)
        finally:
            self._source.tensors = []


def _nccl_errors(step: str, act: Callable[[], Any]) -> Any:
    try:
        return act()
    except (RuntimeError, ValueError, OSError) as error:
        raise WeightTransferError(f"step '{step}' of the weight update over NCCL failed: {error}") from error


def _free_port(address: str) -> int:
    with socket.socket() as probe:
        probe.bind((address, 0))
        return int(probe.getsockname()[1])
