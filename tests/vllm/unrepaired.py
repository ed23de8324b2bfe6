"""A server-side backend that lacks the tied-head repair, to prove that the parity test would notice.

Loaded inside vLLM (this folder is on the server's PYTHONPATH), never by the tests themselves.
"""

from vllm.distributed.weight_transfer.factory import WeightTransferEngineFactory

from snoozing_env.train.vllm_worker import SnoozeWorkerExtension, StagedTransferEngine


class UnrepairedEngine(StagedTransferEngine):
    def after_load(self) -> None:
        """What plain vLLM does after a reload: nothing."""


WeightTransferEngineFactory.register_engine("unrepaired", UnrepairedEngine)


class UnrepairedExtension(SnoozeWorkerExtension):
    pass
