"""Receiving side of a weight transfer, loaded inside the vLLM server.

    vllm serve MODEL --worker-extension-cls snoozing_env.train.vllm_worker.SnoozeWorkerExtension
                     --weight-transfer-config '{"backend": "snooze"}'

The only module of this package that imports vllm. vLLM imports it before the model is loaded, which is
early enough to register the backend "snooze"; it takes weights over two routes, `gloo` (broadcast from
the trainer) and `dir` (a safetensors file both sides can read):

    start_weight_update    staged = {}
    update_weights         tensors are checked and staged beside the model     a trainer may die here
    finish_weight_update   staged set complete? → load → repair tied heads     the model changes only here

So a trainer that dies in the middle of a transfer leaves the old weights served.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import load_file
from vllm.distributed.weight_transfer.base import (
    ParamMeta,
    WeightSource,
    WeightTransferEngine,
    WeightTransferInitInfo,
    WeightTransferUpdateInfo,
)
from vllm.distributed.weight_transfer.factory import WeightTransferEngineFactory, WeightTransferTrainerFactory
from vllm.model_executor.layers.utils import dispatch_cpu_unquantized_gemm
from vllm.model_executor.model_loader.reload import finalize_layerwise_reload, initialize_layerwise_reload

from snoozing_env.train import gloo

Shape = tuple[int, ...]
TIED_HEAD = "lm_head.weight"


@dataclass
class TransferInit(WeightTransferInitInfo):
    """How the trainer will send; vLLM builds it from the JSON of /init_weight_transfer_engine."""

    route: str
    """"gloo" or "dir"."""
    master_address: str = "127.0.0.1"
    master_port: int = 0
    rank_offset: int = 1
    world_size: int = 2
    """Trainer and all workers together."""
    timeout_s: float = 60.0


@dataclass
class TransferUpdate(WeightTransferUpdateInfo):
    """What the trainer is about to send, from the JSON of /update_weights."""

    names: list[str]
    dtype_names: list[str]
    shapes: list[list[int]]
    path: str = ""
    """Route `dir` only: the safetensors file that holds exactly these tensors."""


@dataclass
class CheckpointLayout:
    """Names and shapes the served checkpoint has; empty when the model is not a local directory."""

    shapes: Mapping[str, Shape] = field(default_factory=dict)
    tied: bool = False

    @classmethod
    def read(cls, model: str, *, tied: bool) -> CheckpointLayout:
        shapes: dict[str, Shape] = {}
        for file in sorted(Path(model).glob("*.safetensors")) if os.path.isdir(model) else ():
            with safe_open(file, framework="pt") as tensors:
                shapes.update({name: tuple(tensors.get_slice(name).get_shape()) for name in tensors.keys()})  # noqa: SIM118
        return cls(shapes, tied)

    def refuse_foreign(self, names: Sequence[str], shapes: Sequence[Sequence[int]]) -> None:
        """Refuse tensors this model does not have, before anything is waited for or changed."""
        if not self.shapes:
            return
        for name, shape in zip(names, shapes, strict=True):
            wanted = self.shapes.get(name)
            if wanted is None and not (self.tied and name == TIED_HEAD):
                raise ValueError(
                    f"the served checkpoint has no tensor {name!r}; serve the model that is being trained"
                )
            if wanted is not None and wanted != tuple(shape):
                raise ValueError(
                    f"{name!r} comes with shape {list(shape)}, the served checkpoint has {list(wanted)}"
                )

    def refuse_partial(self, names: Mapping[str, torch.Tensor]) -> None:
        """Refuse a set with holes: layers that got nothing would silently keep old weights."""
        missing = [
            name for name in self.shapes if name not in names and not (self.tied and name == TIED_HEAD)
        ]
        if missing:
            raise ValueError(
                f"{len(missing)} of {len(self.shapes)} tensors never arrived, first {missing[0]!r}; push every parameter"
            )


def repair_tied_heads(model: torch.nn.Module) -> int:
    """Pack every CPU linear weight again; returns how many.

    vLLM's layer-wise reload fills a tied lm_head through embed_tokens and never re-packs the head's own copy
    (it logs "ParallelLMHead: Failed to load weights"), so the server answers with log-probs of the old head:
    0.3 nats of drift in ten training steps. Nothing to do on GPU, where no layer has `cpu_linear`.
    """
    packed = 0
    for module in model.modules():
        weight = getattr(module, "weight", None)
        if hasattr(module, "cpu_linear") and weight is not None and weight.numel() > 0:
            dispatch_cpu_unquantized_gemm(module, remove_weight=False)
            packed += 1
    return packed


class StagedTransferEngine(WeightTransferEngine[TransferInit, TransferUpdate]):
    """Backend "snooze": stage everything, touch the model once."""

    init_info_cls = TransferInit
    update_info_cls = TransferUpdate

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.staged: dict[str, torch.Tensor] | None = None
        self.group: Any = None
        tied = bool(getattr(self.model_config.hf_config, "tie_word_embeddings", False))
        self.layout = CheckpointLayout.read(self.model_config.model, tied=tied)

    def init_transfer_engine(self, init_info: TransferInit) -> None:
        self.group = None
        if init_info.route == "dir":
            return
        if init_info.route != "gloo":
            raise ValueError(f"unknown route {init_info.route!r}; this server takes 'gloo' or 'dir'")
        parallel = self.parallel_config
        worker = parallel.data_parallel_index * parallel.world_size + parallel.rank
        address, world_size, timeout_s = init_info.master_address, init_info.world_size, init_info.timeout_s
        store = gloo.open_store(
            address, init_info.master_port, world_size=world_size, timeout_s=timeout_s, master=False
        )
        rank = worker + init_info.rank_offset
        self.group = gloo.join(store, address, rank=rank, world_size=world_size, timeout_s=timeout_s)

    def start_weight_update(self) -> None:
        self.staged = {}

    def receive_weights(self, update_info: TransferUpdate) -> None:
        if self.staged is None:
            raise RuntimeError("update_weights came before start_weight_update")
        self.layout.refuse_foreign(update_info.names, update_info.shapes)
        self.staged.update(
            self._from_file(update_info) if update_info.path else self._from_group(update_info)
        )

    def finish_weight_update(self) -> None:
        staged, self.staged = self.staged or {}, None
        self.layout.refuse_partial(staged)
        initialize_layerwise_reload(self.model)
        try:
            self.model.load_weights(iter(staged.items()))
        finally:  # also when a loader raises: a layer left on the meta device would end the server
            finalize_layerwise_reload(self.model, self.model_config)
            self.after_load()

    def after_load(self) -> None:
        repair_tied_heads(self.model)

    def abort(self) -> None:
        """Forget what was staged; the model was not touched."""
        self.staged = None

    def shutdown(self) -> None:
        self.group = None

    def _from_group(self, update: TransferUpdate) -> dict[str, torch.Tensor]:
        if self.group is None:
            raise RuntimeError("route 'gloo' is not connected; connect before pushing")
        received: dict[str, torch.Tensor] = {}
        for name, dtype, shape in zip(update.names, update.dtype_names, update.shapes, strict=True):
            tensor = torch.empty(shape, dtype=getattr(torch, dtype))
            gloo.broadcast(self.group, tensor)
            received[name] = tensor
        return received

    def _from_file(self, update: TransferUpdate) -> dict[str, torch.Tensor]:
        received = load_file(update.path)
        if set(received) != set(update.names):
            raise ValueError(
                f"{update.path} holds {len(received)} tensors, {len(update.names)} others were announced"
            )
        return received


if "snooze" not in WeightTransferEngineFactory._registry:
    WeightTransferEngineFactory.register_engine("snooze", StagedTransferEngine)


class SnoozeWorkerExtension:
    """Mixed into vLLM's worker; each method answers POST /collective_rpc."""

    _snooze_owner = ""

    def snooze_reset(self) -> dict[str, object]:
        """Drop the half-finished update of a trainer that died; the first call of every new trainer."""
        engine = self.weight_transfer_engine  # type: ignore[attr-defined]
        interrupted = bool(self._weight_update_active)  # type: ignore[has-type]
        self._weight_update_active = False
        self._snooze_owner = ""
        if isinstance(engine, StagedTransferEngine):
            engine.abort()
        backend = "snooze" if isinstance(engine, StagedTransferEngine) else type(engine).__name__
        return {"backend": backend, "interrupted": interrupted}

    def snooze_claim(self, owner: str) -> dict[str, object]:
        """Remember which connection the transfer engine was set up for; lost when the server restarts."""
        self._snooze_owner = owner
        return {"owner": owner}

    def snooze_check(self, owner: str, names: list[str], shapes: list[list[int]]) -> dict[str, object]:
        """Is this connection still ours, and would these tensors fit? Changes nothing."""
        engine = self.weight_transfer_engine  # type: ignore[attr-defined]
        problem = ""
        if isinstance(engine, StagedTransferEngine):
            try:
                engine.layout.refuse_foreign(names, shapes)
                engine.layout.refuse_partial(dict.fromkeys(names))  # type: ignore[arg-type]
            except ValueError as error:
                problem = str(error)
        return {"connected": self._snooze_owner == owner, "problem": problem}


class TensorSource(WeightSource):
    """The trainer's tensors in the shape vLLM's own NCCL sender wants; used in the trainer, not the server."""

    def __init__(self) -> None:
        self.tensors: list[tuple[str, torch.Tensor]] = []

    def metadata(self) -> list[ParamMeta]:
        return [ParamMeta(name, tensor.dtype, tuple(tensor.shape)) for name, tensor in self.tensors]

    def __iter__(self) -> Iterator[tuple[str, torch.Tensor]]:
        return iter(self.tensors)


def open_nccl_sender(client: Any, source: TensorSource, *, address: str, port: int, world_size: int) -> Any:
    """vLLM's built-in NCCL trainer engine, rank 0 of `world_size`, joined with the server's workers."""
    from vllm.distributed.weight_transfer.nccl_engine import NCCLTrainerInitInfo

    info = NCCLTrainerInitInfo(master_address=address, master_port=port, world_size=world_size, rank=0)
    return WeightTransferTrainerFactory.trainer_init(info, client=client, source=source)
