"""A trainer that is killed by SIGKILL in the middle of a push: python killed_trainer.py ROUTE BASE_URL MODEL."""

import os
import signal
import sys

import torch
from transformers import AutoModelForCausalLM

from snoozing_env.train.weights import DirTransfer, GlooTransfer, Named
from snoozing_env.train.weights_config import DirTransferConfig, GlooTransferConfig


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class GlooDiesAfterFive(GlooTransfer):
    sent = 0

    def _broadcast(self, tensor: torch.Tensor) -> None:
        if self.sent == 5:
            die()
        super()._broadcast(tensor)
        self.sent += 1


class DirDiesBeforeUpdate(DirTransfer):
    """Between start_weight_update and update_weights, where the server stays paused in an open update."""

    def _send(self, tensors: Named) -> None:
        die()


if __name__ == "__main__":
    route, base_url, path = sys.argv[1:]
    torch.manual_seed(99)
    model = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter))
    if route == "gloo":
        GlooDiesAfterFive(GlooTransferConfig(base_url=base_url)).push(model.named_parameters(), 99)
    else:
        DirDiesBeforeUpdate(DirTransferConfig(base_url=base_url)).push(model.named_parameters(), 99)
