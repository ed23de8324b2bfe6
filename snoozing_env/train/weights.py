"""Send the trainer's weights into a running vLLM server.

    check ─▶ pause(keep) ─▶ start ─▶ update ─▶ finish ─▶ reset prefix cache ─▶ resume
      │          └──────────────── one of these fails ────────────────┘
      │                    drop what was staged, resume, raise with the step's name
      └─ wrong names or shapes, or a server that restarted (then connect again): before anything is paused

The sequence is the same on CPU and GPU; what differs is how bytes travel in "update":

    gloo   broadcast in a process group made once                 any device, any host
    dir    one safetensors file in a directory both sides see     simplest; written before the pause
    nccl   vLLM's built-in backend between GPUs                   not staged: see weights_nccl.py

A push waits for the server and the server waits for the push, each for at most `timeout_s`: a trainer that dies
closes its sockets, and the next trainer's `connect` drops the half update and resumes the server.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import tempfile
import uuid
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, Protocol

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file

from snoozing_env.errors import WeightTransferError
from snoozing_env.train import gloo
from snoozing_env.train.vllm_routes import VllmRoutes, unanimous
from snoozing_env.train.weights_config import (
    DirTransferConfig,
    GlooTransferConfig,
    NcclTransferConfig,
    WeightTransferConfig,
)

log = logging.getLogger(__name__)

Named = list[tuple[str, torch.Tensor]]


class WeightTransfer(Protocol):
    """What a trainer needs to publish its weights."""

    def connect(self) -> None:
        """Take over the server: end another trainer's half update, resume, set the route up."""
        ...

    def push(self, named_tensors: Iterable[tuple[str, torch.Tensor]], version: int) -> None:
        """Replace the served weights by these, all or nothing; raises `WeightTransferError` naming the step."""
        ...

    def close(self) -> None: ...


def build_transfer(config: WeightTransferConfig) -> WeightTransfer:
    """The transfer that a config names."""
    match config:
        case GlooTransferConfig():
            return GlooTransfer(config)
        case DirTransferConfig():
            return DirTransfer(config)
        case NcclTransferConfig():
            from snoozing_env.train.weights_nccl import NcclTransfer

            return NcclTransfer(config)


class SequencedTransfer:
    """The one sequence; subclasses say how a connection is made and how bytes travel."""

    backend = "snooze"

    def __init__(self, base_url: str, *, timeout_s: float) -> None:
        self._routes = VllmRoutes(base_url, timeout_s=timeout_s)
        self._timeout_s = timeout_s
        self._owner = ""

    def connect(self) -> None:
        """Take over the server; call again after it restarted (push does so by itself)."""
        self.close()
        states = self._routes.worker("connect", "snooze_reset")
        backend = unanimous(states, "backend")
        if self.backend not in backend.lower():
            raise WeightTransferError(
                f"{self._routes} was started with weight backend {backend!r}, this transfer needs {self.backend!r}; "
                "restart it with server.weight_backend set"
            )
        if self._routes.is_paused():
            log.warning("%s was left paused by a trainer that went away; resuming it", self._routes)
            self._routes.resume()
        self._join()
        owner = uuid.uuid4().hex
        self._routes.worker("connect", "snooze_claim", owner)
        self._owner = owner

    def push(self, named_tensors: Iterable[tuple[str, torch.Tensor]], version: int) -> None:
        """Replace the served weights. On failure the server is resumed, with the old weights unless it says otherwise."""
        tensors = unique_tensors(named_tensors)
        self._check(tensors)
        self._prepare(tensors)
        self._routes.weight_version = str(version)
        try:
            self._routes.pause()
            self._deliver(tensors)
            self._routes.reset_prefix_cache()
            self._routes.resume()
        except WeightTransferError as error:
            self._recover(error)
            raise

    def close(self) -> None:
        self._owner = ""

    def _check(self, tensors: Named) -> None:
        for attempt in range(2):
            if not self._owner:
                self.connect()
            names, shapes = [name for name, _ in tensors], [list(tensor.shape) for _, tensor in tensors]
            states = self._routes.worker("check", "snooze_check", self._owner, names, shapes)
            if unanimous(states, "connected"):
                break
            if attempt:
                raise WeightTransferError(
                    f"{self._routes} forgot this connection at once; is another trainer pushing to it?"
                )
            log.warning("%s restarted or was taken over; connecting again", self._routes)
            self._owner = ""
        problem = unanimous(states, "problem")
        if problem:
            raise WeightTransferError(f"step 'check' of the weight update: {problem}")

    def _recover(self, error: WeightTransferError) -> None:
        self.close()
        try:
            self._routes.worker("recover", "snooze_reset")
            self._routes.resume()
        except WeightTransferError as second:
            error.add_note(f"The server could not be resumed either: {second}")
        else:
            error.add_note(
                "The server was resumed; the next push connects again."
                " If 'finish' itself failed, its weights may be mixed until then."
            )

    def _deliver(self, tensors: Named) -> None:
        """start → update → finish."""
        self._routes.start_weight_update()
        self._send(tensors)
        self._routes.finish_weight_update()

    def _prepare(self, tensors: Named) -> None:
        """What can be done before the server is paused."""

    def _join(self) -> None:
        """Set the route up on both sides."""
        raise NotImplementedError

    def _send(self, tensors: Named) -> None:
        """The bytes, between start and finish."""
        raise NotImplementedError


class GlooTransfer(SequencedTransfer):
    """Broadcast from rank 0 (this process) to the server's workers."""

    def __init__(self, config: GlooTransferConfig) -> None:
        super().__init__(config.base_url, timeout_s=config.timeout_s)
        self._address = config.master_address
        self._group: Any = None

    def close(self) -> None:
        super().close()
        self._group = None

    def _join(self) -> None:
        world = 1 + self._routes.world_size()
        limits = {"world_size": world, "timeout_s": self._timeout_s}
        store = gloo.open_store(self._address, 0, master=True, **limits)
        init = {
            "route": "gloo",
            "master_address": self._address,
            "master_port": store.port,
            "rank_offset": 1,
            **limits,
        }
        # The server's answer and our own constructor wait for each other.
        pool = ThreadPoolExecutor(2, thread_name_prefix="weights")
        asked = pool.submit(self._routes.init_weight_transfer_engine, init)
        joined = pool.submit(gloo.join, store, self._address, rank=0, **limits)
        wait([asked, joined], timeout=self._timeout_s, return_when=FIRST_EXCEPTION)
        pool.shutdown(wait=False, cancel_futures=True)
        if asked.done():
            asked.result()
        self._group = _outcome(joined, "connect")
        asked.result(self._timeout_s)

    def _send(self, tensors: Named) -> None:
        with ThreadPoolExecutor(1, thread_name_prefix="weights") as pool:
            asked = pool.submit(self._routes.update_weights, _announcement(tensors))
            try:
                for _, tensor in tensors:
                    if asked.done():  # the server gave up; its answer says why
                        break
                    self._broadcast(tensor)
            except RuntimeError as error:
                # Gloo reports a vanished peer and a time-out both as RuntimeError.
                raise WeightTransferError(f"step 'update' of the weight update broke off: {error}") from error
            asked.result()

    def _broadcast(self, tensor: torch.Tensor) -> None:
        gloo.broadcast(self._group, _on_cpu(tensor))


class DirTransfer(SequencedTransfer):
    """Write one safetensors file, then tell the server to read it."""

    def __init__(self, config: DirTransferConfig) -> None:
        super().__init__(config.base_url, timeout_s=config.timeout_s)
        self._own = not config.path
        self._dir = Path(config.path or tempfile.mkdtemp(prefix="snooze-weights-"))

    @property
    def file(self) -> Path:
        """What the server reads; complete whenever it exists."""
        return self._dir / "model.safetensors"

    def close(self) -> None:
        super().close()
        if self._own:
            shutil.rmtree(self._dir, ignore_errors=True)

    def _join(self) -> None:
        self._routes.init_weight_transfer_engine({"route": "dir"})

    def _prepare(self, tensors: Named) -> None:
        partial = self._dir / f"partial-{os.getpid()}.safetensors"
        try:
            self._dir.mkdir(parents=True, exist_ok=True)
            save_file({name: _on_cpu(tensor) for name, tensor in tensors}, partial)
            os.replace(partial, self.file)
        except (OSError, SafetensorError) as error:
            with contextlib.suppress(OSError):
                partial.unlink()
            raise WeightTransferError(
                f"step 'write' of the weight update could not write {self.file}: {error}"
            ) from error

    def _send(self, tensors: Named) -> None:
        self._routes.update_weights({**_announcement(tensors), "path": str(self.file.absolute())})


def unique_tensors(named_tensors: Iterable[tuple[str, torch.Tensor]]) -> Named:
    """The tensors without second names for the same memory: a tied lm_head is not in the checkpoint either."""
    kept: Named = []
    seen: set[tuple[int, torch.Size]] = set()
    for name, tensor in named_tensors:
        identity = (tensor.data_ptr(), tensor.shape)
        if identity in seen and tensor.numel():
            continue
        seen.add(identity)
        kept.append((name, tensor))
    if not kept:
        raise WeightTransferError("there are no tensors to push; pass model.named_parameters()")
    return kept


def _on_cpu(tensor: torch.Tensor) -> torch.Tensor:
    """Contiguous, on the CPU, alone in its storage (safetensors refuses views into a larger one)."""
    plain = tensor.detach().to("cpu").contiguous()
    return plain if plain.untyped_storage().nbytes() == plain.nbytes else plain.clone()


def _announcement(tensors: Sequence[tuple[str, torch.Tensor]]) -> Mapping[str, Any]:
    return {
        "names": [name for name, _ in tensors],
        "dtype_names": [str(tensor.dtype).removeprefix("torch.") for _, tensor in tensors],
        "shapes": [list(tensor.shape) for _, tensor in tensors],
    }


def _outcome(future: Future[Any], step: str) -> Any:
    try:
        return future.result(timeout=0)
    except (RuntimeError, TimeoutError) as error:
        raise WeightTransferError(
            f"step '{step}' of the weight update: no process group with the server: {error}"
        ) from error
