"""What both of our trainers share: checkpoints hold the feed's state, logs its metrics, and no cards are written."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from transformers import Trainer

from snoozing_env.train.checkpoints import STATE_DIR, named_failure


class KeptFeed(Protocol):
    """The part of a feed that outlives the process."""

    def save(self, directory: Path) -> None: ...

    def load(self, directory: Path) -> None: ...

    def saving(self) -> AbstractContextManager[None]:
        """Around the writing of a checkpoint."""
        ...

    def metrics(self) -> Mapping[str, float]:
        """What there is to say of the step in progress."""
        ...


class FedTrainer(Trainer):
    """Stands before one of TRL's trainers among the bases."""

    feed: Any
    """A `KeptFeed`; each trainer asks more of its own."""

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        feed: KeptFeed = self.feed
        with feed.saving():
            with named_failure(str(self.args.output_dir)):
                super()._save_checkpoint(model, trial)
            if self.args.should_save:
                folder = Path(self._get_output_dir(trial=trial)) / f"checkpoint-{self.state.global_step}"
                feed.save(folder / STATE_DIR)

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        super()._load_optimizer_and_scheduler(checkpoint)
        if checkpoint is not None:
            feed: KeptFeed = self.feed
            feed.load(Path(checkpoint) / STATE_DIR)

    def log(self, logs: dict[str, float], *args: Any, **kwargs: Any) -> None:
        super().log({**logs, **self.feed.metrics()} if "loss" in logs else logs, *args, **kwargs)

    def create_model_card(self, *args: Any, **kwargs: Any) -> None:
        """No card per checkpoint: the run's report says more, and cards cost a network look-up."""
