"""New weights for an engine in this process that has a model of its own: a copy, between two of its batches."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from snoozing_env.errors import EngineError, WeightTransferError
from snoozing_env.rollout.engines.local import LocalEngine


class CopyTransfer:
    """`WeightTransfer` by assignment."""

    def __init__(self, engine: LocalEngine) -> None:
        self._engine = engine

    def connect(self) -> None:
        """Nothing stands between the two."""

    def push(self, named_tensors: Iterable[tuple[str, torch.Tensor]], version: int) -> None:
        """Replace the engine's weights.

        Raises:
            WeightTransferError: the engine is not running or has another shape.
        """
        try:
            self._engine.replace_weights({name: tensor.detach() for name, tensor in named_tensors}, version)
        except EngineError as error:
            raise WeightTransferError(f"step 'copy' of the weight update: {error}") from error

    def close(self) -> None: ...
