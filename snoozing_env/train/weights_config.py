"""Which way the weights travel, as config; importable without torch."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field
from pydantic_config import BaseConfig


class _TransferConfig(BaseConfig):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    base_url: str = "http://127.0.0.1:8000/v1"
    """The server that gets the weights; the engine's base_url."""
    timeout_s: float = Field(120.0, gt=0)
    """Seconds that either side waits for the other in one step."""


class GlooTransferConfig(_TransferConfig):
    """Broadcast through a gloo process group."""

    kind: Literal["gloo"] = "gloo"
    master_address: str = "127.0.0.1"
    """Address of this machine as the server sees it."""


class DirTransferConfig(_TransferConfig):
    """Hand over a file."""

    kind: Literal["dir"] = "dir"
    path: str = ""
    """Directory that the server can read under the same path; empty = a temporary one, for a server on this machine."""


class NcclTransferConfig(_TransferConfig):
    """vLLM's built-in NCCL backend; needs vLLM in the trainer's environment and a GPU on both sides."""

    kind: Literal["nccl"] = "nccl"
    master_address: str = "127.0.0.1"
    """Address of this machine as the server sees it."""
    timeout_s: float = Field(600.0, gt=0)
    """Seconds that either side waits for the other in one step."""


WeightTransferConfig = Annotated[
    GlooTransferConfig | DirTransferConfig | NcclTransferConfig, Field(discriminator="kind")
]
