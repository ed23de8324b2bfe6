"""What `snooze eval` and `snooze stratify` are asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, field_validator, model_validator

from snoozing_env.config import FrozenConfig
from snoozing_env.rollout.catalogue import EnvironmentConfig


class EndpointConfig(FrozenConfig):
    """One model behind an OpenAI-compatible API, or in this process."""

    name: str = ""
    """What tables and files call it; empty = its model."""
    url: str = "http://127.0.0.1:8000/v1"
    """Root of the API; "/v1" is added where absent."""
    model: str = "policy"
    """Model name that requests ask for."""
    local: str = ""
    """Checkpoint directory or hub name to run in this process instead (needs torch); `url` is then not used."""
    key_env: str = ""
    """Name of the environment variable that holds the API key; empty = no key."""
    wait_s: float = Field(default=0.0, ge=0)
    """Seconds to wait for an endpoint that is still coming up."""
    seeded: bool = True
    """Send a seed with every request; false for endpoints that refuse one."""
    token_limit: str = Field(default="max_tokens", pattern="^max_(completion_)?tokens$")
    """Name of the token limit in a request; some endpoints want `max_completion_tokens`."""
    extra_body: dict[str, Any] = Field(default_factory=dict)
    """More fields for every request, e.g. chat_template_kwargs."""
    price_in: float | None = Field(default=None, ge=0)
    """Price of a million prompt tokens, for the cost column."""
    price_out: float | None = Field(default=None, ge=0)
    """Price of a million generated tokens."""

    @property
    def label(self) -> str:
        return self.name or (Path(self.local).name if self.local else self.model)

    @property
    def root(self) -> str:
        """Root of the API with "/v1"."""
        return self.url.rstrip("/").removesuffix("/v1") + "/v1"

    @property
    def prices(self) -> tuple[float, float] | None:
        """Per million prompt and generated tokens."""
        if self.price_in is None and self.price_out is None:
            return None
        return self.price_in or 0.0, self.price_out or 0.0


class SamplingConfig(FrozenConfig):
    """How completions are drawn."""

    temperature: float = Field(default=1.0, ge=0)
    """0 = greedy."""
    top_p: float | None = Field(default=None, gt=0, le=1)
    """None = the endpoint's own."""
    max_tokens: int = Field(default=512, ge=1)
    """Token limit of one completion."""
    stop: tuple[str, ...] = ()
    """Strings that end a completion."""


class TwoSidedConfig(FrozenConfig):
    """One half of a two-sided metric."""

    side: str
    """Value of the task data's `side` it is measured on."""
    metric: str = ""
    """Trace metric that is 1 where the policy erred in this direction; empty = the reward that was missed."""


class TestedEnvironment(EnvironmentConfig):
    """An environment of an evaluation."""

    name: str = Field(default="", pattern=r"^[\w.+-]*$")
    """Its folder and its row in tables; empty = the id. Needed where one id is evaluated twice."""
    two_sided: dict[str, TwoSidedConfig] = Field(default_factory=dict)
    """Name → half of a two-sided metric, such as over_refusal; adds to what the task set declares as `TWO_SIDED`."""

    @property
    def label(self) -> str:
        return self.name or self.id


class PlanConfig(FrozenConfig):
    """What is rolled out, and how patiently."""

    output: str = ""
    """Directory of traces, summary and report."""
    seed: int = Field(default=0, ge=0)
    """Draws the tasks and seeds every rollout's sampling noise."""
    environments: list[str] = Field(default_factory=list)
    """Installed verifiers environments by id, e.g. snooze-math."""
    taskset: dict[str, Any] = Field(default_factory=dict)
    """Task-set options of every one of `environments`."""
    environment: list[TestedEnvironment] = Field(default_factory=list)
    """Environments with options of their own: [[environment]] tables, or JSON on the command line."""
    split: str | None = None
    """`split` of task sets that know this one, where no option names another."""
    tasks: int | None = Field(default=None, ge=1)
    """Tasks per environment, drawn by `seed` and key: a larger number contains the smaller. None = all."""
    rollouts: int = Field(default=1, ge=1)
    """Rollouts per task."""
    sampling: SamplingConfig = SamplingConfig()
    concurrency: int = Field(default=32, ge=1)
    """Rollouts in flight at once per endpoint; fewer after a 429."""
    deadline_s: float = Field(default=300.0, gt=0)
    """Seconds one attempt at a rollout may take, its verdict included; waiting for a slot does not count."""
    attempts: int = Field(default=3, ge=1)
    """Attempts at a rollout that failed without the policy's fault, before it counts as invalid; 429 is no attempt."""
    backoff_s: Annotated[float, Field(ge=0)] = 0.5
    """First pause after a failure; doubles each time, with jitter, unless the endpoint says how long."""
    patience_s: float = Field(default=900.0, ge=0)
    """Seconds one rollout may wait for rate limits before it counts as invalid."""
    give_up_after: int = Field(default=64, ge=1)
    """Failed requests in a row, over all rollouts, after which the endpoint counts as down and the run stops."""

    @field_validator("environments")
    @classmethod
    def _ids_are_names(cls, ids: list[str]) -> list[str]:
        if any(not i.strip() for i in ids):
            raise ValueError("an environment id is empty; name installed environments, e.g. snooze-math")
        return ids

    @model_validator(mode="after")
    def _names_differ(self) -> PlanConfig:
        names = [e.label for e in self.tested]
        if twice := sorted({n for n in names if names.count(n) > 1}):
            raise ValueError(
                f"{', '.join(twice)} is listed more than once; give each [[environment]] table a `name` of its own"
            )
        return self

    @property
    def tested(self) -> list[TestedEnvironment]:
        """All environments, the short form first."""
        return [
            *(TestedEnvironment(id=i, taskset=self.taskset) for i in self.environments),
            *self.environment,
        ]


class EvalConfig(PlanConfig):
    """`snooze eval`."""

    output: str = "runs/eval"
    """Directory of traces, summary and report."""
    split: str | None = "eval"
    """`split` of task sets that know this one, where no option names another."""
    endpoint: EndpointConfig = EndpointConfig()
    pass_at: list[int] = Field(default_factory=list)
    """The k of pass@k; [] = 1 and `rollouts`."""
    samples: int = Field(default=12, ge=0)
    """Transcripts per environment in the report."""

    @model_validator(mode="after")
    def _k_within_rollouts(self) -> EvalConfig:
        if wrong := [k for k in self.pass_at if not 1 <= k <= self.rollouts]:
            raise ValueError(
                f"pass@{wrong[0]} needs at least that many rollouts per task, rollouts is {self.rollouts}"
            )
        return self

    @property
    def ks(self) -> tuple[int, ...]:
        return tuple(self.pass_at) or tuple(sorted({1, self.rollouts}))


class StratifyConfig(PlanConfig):
    """`snooze stratify`."""

    output: str = "runs/stratify"
    """Directory of traces, prior sidecar, suspects and plot."""
    split: str | None = "train"
    """`split` of task sets that know this one, where no option names another."""
    rollouts: int = Field(default=8, ge=1)
    """k: rollouts per task and model."""
    endpoint: EndpointConfig = EndpointConfig()
    endpoints: list[EndpointConfig] = Field(default_factory=list)
    """Several baseline models: [[endpoints]] tables; `endpoint` is then not used."""
    transcripts: int = Field(default=3, ge=1)
    """Transcripts per suspect and model."""

    @model_validator(mode="after")
    def _models_differ(self) -> StratifyConfig:
        labels = [e.label for e in self.models]
        if twice := sorted({n for n in labels if labels.count(n) > 1}):
            raise ValueError(
                f"{', '.join(twice)} is listed more than once; give each [[endpoints]] table a `name`"
            )
        return self

    @property
    def models(self) -> list[EndpointConfig]:
        return self.endpoints or [self.endpoint]
