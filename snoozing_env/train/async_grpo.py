"""TRL's asynchronous trainer over our rollout loop, through its worker and weight-transfer protocols.

    TRL on_train_begin / on_step_end ─▶ FeedTransfer.send_weights ─▶ feed.publish(step, weights)
    TRL dataloader ─▶ LoopWorker.rollout_buffer.get ─┬─ a sample is left ─▶ it
                                                     └─ none ─▶ feed.collect(step) ─▶ exactly B·G samples

Who waits: `get`, in the trainer's thread, until the loop's planner says that the step may be taken; the loop's own
thread goes on generating. Samples are taken when their step comes and not before, so the bound is ours and exact:
nothing is dropped after it was paid for. TRL counts weight syncs from 1 at every start, we count optimizer steps over
the whole run; the worker tells it our lags in its numbers.

One process: the loop lives in it.
"""

from __future__ import annotations

import queue
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
import torch
from datasets import Dataset
from torch.utils.data import DataLoader
from transformers import PreTrainedTokenizerBase, TrainerCallback

from snoozing_env.errors import ConfigError
from snoozing_env.train import compat  # before trl.experimental, whose notice it silences
from snoozing_env.train.fed_trainer import FedTrainer, KeptFeed
from snoozing_env.train.grpo import TrainConfig
from snoozing_env.train.health import Health
from snoozing_env.train.losses import advantages_of
from snoozing_env.types import Group, Trajectory

# isort: split
from trl.experimental.async_grpo import AsyncGRPOConfig, AsyncGRPOTrainer
from trl.experimental.async_grpo.async_grpo_trainer import (
    DataCollatorForRollout,
    FixedCountBatcher,
    RolloutQueueDataset,
)
from trl.experimental.async_grpo.async_rollout_worker import RolloutSample


class SteppedFeed(KeptFeed, Protocol):
    """A feed whose weights arrive apart from the demand for groups; a `Session`."""

    def publish(self, version: int, weights: Iterable[tuple[str, torch.Tensor]]) -> None: ...

    def collect(self, step: int, model: torch.nn.Module) -> Sequence[Group]: ...


def samples_of(
    groups: Sequence[Group], config: TrainConfig, *, group_size: int, pad_id: int, version_offset: int = 0
) -> list[RolloutSample]:
    """Exactly batch_groups · group_size samples; what is invalid or missing has no trained token.

    `version_offset` is added to the groups' versions.
    """
    samples: list[RolloutSample] = []
    for group in groups:
        rewards = np.array([t.reward for t in group.trajectories if t.valid], np.float64)
        advantages = iter(advantages_of(config, rewards) if rewards.size else ())
        version = group.outcome.version + version_offset
        for trajectory in group.trajectories:
            advantage = float(next(advantages)) if trajectory.valid else None
            samples.append(_sample(group, trajectory, advantage, version))
    missing = config.batch_groups * group_size - len(samples)
    return samples + [_nothing(pad_id, -1 - i) for i in range(missing)]


def _sample(group: Group, trajectory: Trajectory, advantage: float | None, version: int) -> RolloutSample:
    ahead = len(trajectory.prompt_ids)
    mask = trajectory.mask if advantage is not None else [0] * len(trajectory.mask)
    return RolloutSample(
        prompt=[{"role": "user", "content": group.prompt}],
        completion=[{"role": "assistant", "content": trajectory.text}],
        input_ids=np.array(trajectory.prompt_ids + trajectory.completion_ids, np.int64),
        completion_mask=np.array([*[0] * ahead, *mask], np.int64),
        old_log_probs=np.array([*[0.0] * ahead, *trajectory.logprobs], np.float32),
        advantage=advantage or 0.0,
        model_version=version,
        group_id=group.id,
        metrics={"reward": trajectory.reward if advantage is not None else float("nan")},
        enqueued_at=time.time(),
    )


def _nothing(pad_id: int, group_id: int) -> RolloutSample:
    """A place in the batch that no rollout takes."""
    return RolloutSample(
        prompt=[],
        completion=[],
        input_ids=np.array([pad_id, pad_id], np.int64),
        completion_mask=np.zeros(2, np.int64),
        old_log_probs=np.zeros(2, np.float32),
        advantage=0.0,
        model_version=10**9,
        group_id=group_id,
        metrics={},
    )


class PulledQueue(queue.Queue[RolloutSample]):
    """A queue that fetches the next step's samples when it is asked for one and has none."""

    def __init__(self, fetch: Callable[[], Iterable[RolloutSample]]) -> None:
        super().__init__()
        self._fetch = fetch

    def get(self, block: bool = True, timeout: float | None = None) -> RolloutSample:
        """The next sample; waits in `fetch` for as long as the loop takes, whatever `timeout` says."""
        if self.empty():
            for sample in self._fetch():
                self.put(sample)
        return super().get(block, timeout)


class LoopWorker:
    """TRL's `RolloutWorkerProtocol` over a feed."""

    def __init__(self, feed: SteppedFeed, config: TrainConfig, *, group_size: int, pad_id: int) -> None:
        self._feed, self._config, self._group_size, self._pad_id = feed, config, group_size, pad_id
        self.rollout_buffer: queue.Queue[RolloutSample] = PulledQueue(self._fetch)
        self.metrics_queue: queue.Queue[dict[str, float]] = queue.Queue()
        self.trainer: SnoozingAsyncGRPOTrainer | None = None
        """Set once it is built: TRL wants the worker first."""
        self._offset = 0
        self.lags: dict[int, int] = {}
        """Of the step's groups, by their id: versions between first token and training."""
        self.replayed: set[int] = set()
        """Ids of the step's groups that had been trained before."""

    def _fetch(self) -> list[RolloutSample]:
        assert self.trainer is not None, "the trainer asks only once it is built"
        step = self.trainer.state.global_step
        groups = self._feed.collect(step, self.trainer.policy)
        self.lags = {group.id: step - group.outcome.version for group in groups}
        self.replayed = {group.id for group in groups if group.replayed}
        return samples_of(
            groups,
            self._config,
            group_size=self._group_size,
            pad_id=self._pad_id,
            version_offset=self._offset,
        )

    def start(self) -> None:
        """The loop starts groups when weights are published."""

    def stop(self) -> None:
        """Whoever opened the feed closes it."""

    def update_model_version(self, model_version: int) -> None:
        """TRL's number for the weights that were just published."""
        assert self.trainer is not None, "the trainer asks only once it is built"
        self._offset = model_version - self.trainer.state.global_step

    def check_health(self, stale_after_s: float) -> None:
        """A loop that failed raises from the queue itself, with its cause."""


class FeedTransfer:
    """TRL's `WeightTransferProtocol` over a feed, whose engine drains and resumes as its recipe says."""

    def __init__(self, feed: SteppedFeed) -> None:
        self._feed = feed
        self.trainer: SnoozingAsyncGRPOTrainer | None = None

    def init_weight_transfer(self) -> None:
        """The session connected when it opened."""

    def pause(self) -> None: ...

    def send_weights(self, iterator: Iterator[tuple[str, torch.Tensor]]) -> None:
        assert self.trainer is not None, "the trainer asks only once it is built"
        self._feed.publish(self.trainer.state.global_step, list(iterator))

    def resume(self) -> None: ...

    def destroy(self) -> None: ...


class _Collator(DataCollatorForRollout):
    """Remembers which group each packed sequence is of; TRL's batch does not say."""

    groups_of: deque[list[int]]

    def torch_call(self, examples: list[Any]) -> dict[str, Any]:
        (rows,) = examples
        self.groups_of.append([sample["group_id"] for row in rows for sample in row.samples])
        return super().torch_call(examples)


class SnoozingAsyncGRPOTrainer(FedTrainer, AsyncGRPOTrainer):
    """`AsyncGRPOTrainer` whose groups, versions and bound are a session's."""

    def __init__(
        self,
        policy: str,
        args: AsyncGRPOConfig,
        tokenizer: PreTrainedTokenizerBase,
        feed: SteppedFeed,
        *,
        config: TrainConfig,
        health: Health | None = None,
        callbacks: Sequence[TrainerCallback] = (),
    ) -> None:
        """`policy` is a directory or hub name: TRL loads the model itself, for its packed attention.

        Raises:
            ConfigError: this is one of several processes.
        """
        self.feed, self.health = feed, health
        self._groups_of: deque[list[int]] = deque()
        pad_id = int(tokenizer.pad_token_id)  # pyright: ignore[reportArgumentType]
        worker = LoopWorker(feed, config, group_size=args.num_generations, pad_id=pad_id)
        transfer = FeedTransfer(feed)
        placeholder = Dataset.from_dict({"prompt": [[{"role": "user", "content": ""}]] * config.batch_groups})
        with compat.without_cuda():
            super().__init__(
                model=policy,
                args=args,
                train_dataset=placeholder,
                processing_class=tokenizer,
                rollout_worker=worker,
                weight_transfer=transfer,
                callbacks=list(callbacks),
            )
        if self.accelerator.num_processes > 1:
            raise ConfigError(
                f"trainer 'async_grpo' runs in one process, this is one of {self.accelerator.num_processes}; use trainer 'grpo'"
            )
        if not compat.has_flash_attention():
            compat.use_sdpa_attention()
        worker.trainer = transfer.trainer = self
        self._worker = worker
        self.policy.register_forward_hook(self._remember)

    @property
    def policy(self) -> torch.nn.Module:
        """The model in training, unwrapped."""
        return self.accelerator.unwrap_model(self.model)

    def get_train_dataloader(self) -> DataLoader[Any]:
        source = RolloutQueueDataset(
            rollout_queue=self.rollout_queue,
            model_version_fn=lambda: self.model_version,
            check_health_fn=self._worker.check_health,
            stale_after_s=self.args.heartbeat_stale_after_s,
            metrics=self._metrics["train"],
            max_staleness=self.args.max_staleness,
            report_to=self.args.report_to,
        )
        self._rollout_dataset = source
        collate = _Collator(
            self.processing_class.pad_token_id,
            groups_trained=self._trained_groups,
            metrics=self._metrics["train"],
        )
        collate.groups_of = self._groups_of
        batches = FixedCountBatcher(source, 1, self.args.per_device_train_batch_size)
        return compat.no_prefetch(batches, collate)

    def _remember(self, module: torch.nn.Module, inputs: Any, outputs: Any) -> None:
        """TRL keeps the log-probs of its forward pass to itself."""
        log_probs = getattr(outputs, "log_probs", None)
        self._log_probs = None if log_probs is None else log_probs.detach()

    def compute_loss(self, model: Any, inputs: dict[str, Any], *args: Any, **kwargs: Any) -> torch.Tensor:
        groups = self._groups_of.popleft()
        if not (inputs["token_index"] >= 0).any():  # only places that no rollout took
            return sum(p.sum() * 0.0 for p in model.parameters())
        loss = super().compute_loss(model, inputs, *args, **kwargs)
        if self.health is not None and self._log_probs is not None:
            self._measure(inputs, groups, self.health)
        return loss

    def _measure(self, inputs: dict[str, Any], groups: Sequence[int], health: Health) -> None:
        selected = inputs["token_index"] >= 0
        now = self._log_probs.flatten()[inputs["token_index"][selected]]
        log_ratio = (now - inputs["old_log_probs"][selected]).double().cpu().numpy()
        segment = inputs["segment_id"][selected].cpu().numpy()
        advantage = inputs["advantages"][selected].cpu().numpy()
        live = np.unique(segment)
        health.add(
            [log_ratio[segment == s] for s in live],
            [self._worker.lags[groups[s]] for s in live],
            replayed=[groups[s] in self._worker.replayed for s in live],
            advantages=[float(advantage[segment == s][0]) for s in live],
        )
