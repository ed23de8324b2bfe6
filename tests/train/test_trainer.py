"""What reaches TRL's loss: behaviour log-probs, masks and the right normaliser."""

import math
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback
from trl import GRPOConfig

from snoozing_env.train.grpo import Algorithm, TrainConfig, grpo_arguments
from snoozing_env.train.lab import LabConfig, build_lab_policy
from snoozing_env.train.sync import SnoozingGRPOTrainer, rows_of
from snoozing_env.types import Group, GroupOutcome, Trajectory

G = 4
PROMPT = [5, 9, 6]


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    config = LabConfig(hidden_size=32, layers=1, heads=1, kv_heads=1, warmup={"steps": 0})
    return build_lab_policy(config, cache_dir=tmp_path_factory.mktemp("lab"))


class FixedFeed:
    """The same groups at every step."""

    def __init__(self, groups: Sequence[Group]) -> None:
        self.groups = groups

    def next_batch(self, step: int, model: torch.nn.Module) -> Sequence[Group]:
        return self.groups

    def metrics(self) -> Mapping[str, float]:
        return {"goodput/time": 0.5}

    def saving(self) -> AbstractContextManager[None]:
        return nullcontext()

    def save(self, directory: Path) -> None: ...

    def load(self, directory: Path) -> None: ...


class Logs(TrainerCallback):
    def __init__(self) -> None:
        self.rows: list[dict[str, float]] = []

    def on_log(self, args, state, control, logs=None, **_) -> None:
        if logs and "loss" in logs:
            self.rows.append(dict(logs))


class Dice(TrainerCallback):
    """Something else in the process that draws from torch's generator."""

    def on_step_begin(self, args, state, control, **_) -> None:
        torch.rand(7)


def true_logprobs(policy: Path, completion: Sequence[int]) -> list[float]:
    model = AutoModelForCausalLM.from_pretrained(policy, dtype=torch.float32)
    ids = torch.tensor([[*PROMPT, *completion]])
    with torch.no_grad():
        table = torch.log_softmax(model(input_ids=ids).logits[0, len(PROMPT) - 1 : -1], dim=-1)
    return table.gather(-1, ids[0, len(PROMPT) :, None]).squeeze(-1).tolist()


def group(
    policy: Path,
    identity: int,
    rewards: Sequence[float],
    *,
    shift: float = 0.0,
    valid: Sequence[bool] | None = None,
) -> Group:
    """A group of the policy's own log-probs, or of a behaviour policy `shift` nats away."""
    valid = valid or [True] * G
    trajectories = []
    for k, reward in enumerate(rewards):
        completion = [(7 * identity + 3 * k + t) % 20 + 4 for t in range(2 + k % 3)]
        logprobs = tuple(p + shift for p in true_logprobs(policy, completion))
        trajectories.append(
            Trajectory(
                prompt_ids=tuple(PROMPT),
                completion_ids=tuple(completion),
                logprobs=logprobs,
                mask=(1,) * len(completion),
                reward=reward,
                valid=valid[k],
            )
        )
    outcome = GroupOutcome(task=identity, rewards_G=np.array(rewards), valid_G=np.array(valid))
    return Group(id=identity, key=str(identity), outcome=outcome, trajectories=tuple(trajectories))


def one_step(
    policy: Path,
    groups: Sequence[Group],
    batch: int,
    output: Path,
    algorithm: Algorithm = "dapo",
    micro: int | None = None,
    beside: Sequence[TrainerCallback] = (),
) -> dict[str, float]:
    """TRL's log of one optimizer step over the given groups."""
    tokenizer = AutoTokenizer.from_pretrained(policy, padding_side="left")
    model = AutoModelForCausalLM.from_pretrained(policy, dtype=torch.float32)
    config = TrainConfig(
        steps=1,
        batch_groups=batch,
        algorithm=algorithm,
        learning_rate=1e-3,
        device="cpu",
        save_every=10**6,
        micro_batch=micro,
    )
    arguments = grpo_arguments(config, group_size=G, max_tokens=8, temperature=1.0, output=output, seed=0)
    logs = Logs()
    trainer = SnoozingGRPOTrainer(
        model,
        GRPOConfig(**arguments | {"save_strategy": "no"}),
        tokenizer,
        FixedFeed(groups),
        batch_groups=batch,
        callbacks=[logs, *beside],
    )
    trainer.train()
    return logs.rows[0]


def test_a_short_batch_is_filled_with_rows_that_carry_nothing(policy: Path) -> None:
    partly = group(policy, 0, [1, 0, 1, 0], valid=[True, True, True, False])
    rows = rows_of([partly], batch=2, group_size=G, pad_id=0)
    assert rows.outcome == [1, 0, 1, None, None, None, None, None]
    assert [sum(m) for m in rows.env_mask] == [2, 3, 4, 0, 0, 0, 0, 0]
    assert all(len(c) >= 1 for c in rows.completion_ids)


@pytest.mark.parametrize("algorithm", ["grpo", "dapo", "dr_grpo"])
def test_a_partial_batch_has_the_gradient_of_a_full_batch_of_the_same_groups(
    policy: Path, tmp_path: Path, algorithm: Algorithm
) -> None:
    groups = [group(policy, 0, [1, 0, 0, 0]), group(policy, 1, [1, 1, 0, 1])]
    full = one_step(policy, groups, 2, tmp_path, algorithm)
    partial = one_step(policy, groups, 5, tmp_path, algorithm)
    assert full["grad_norm"] > 1e-4
    assert partial["grad_norm"] == pytest.approx(full["grad_norm"], rel=1e-4)


@pytest.mark.parametrize("algorithm", ["grpo", "dapo", "dr_grpo"])
def test_micro_batches_do_not_change_the_gradient(policy: Path, tmp_path: Path, algorithm: Algorithm) -> None:
    groups = [group(policy, i, [1, 0, i % 2, 0]) for i in range(4)]
    whole, split = (one_step(policy, groups, 4, tmp_path, algorithm, micro=m) for m in (None, 4))
    assert split["grad_norm"] == pytest.approx(whole["grad_norm"], rel=1e-3)


def test_an_invalid_rollout_moves_neither_the_baseline_nor_the_policy(policy: Path, tmp_path: Path) -> None:
    def norm(reward_of_the_invalid: float) -> float:
        broken = group(policy, 0, [1, 0, 0, reward_of_the_invalid], valid=[True, True, True, False])
        return one_step(policy, [broken], 1, tmp_path)["grad_norm"]

    assert norm(0.0) == norm(1.0) > 0


def test_stale_rollouts_are_corrected_against_the_policy_that_sampled_them(
    policy: Path, tmp_path: Path
) -> None:
    """With ratio e > 1.28 the positive advantages are clipped: their gradient is zero. Trained as if on-policy, nothing would be."""
    fresh = one_step(policy, [group(policy, 0, [1, 1, 0, 0])], 1, tmp_path)
    stale = one_step(policy, [group(policy, 0, [1, 1, 0, 0], shift=-1.0)], 1, tmp_path)
    assert fresh["clip_ratio/region_mean"] == 0
    assert fresh["loss"] == pytest.approx(_surrogate([1, 1, 0, 0], ratio=1.0), abs=1e-5)
    assert stale["clip_ratio/high_mean"] == pytest.approx(5 / 11), (
        "the 2 + 3 tokens of the two rewarded rollouts"
    )
    assert stale["loss"] == pytest.approx(_surrogate([1, 1, 0, 0], ratio=math.e), abs=1e-5)


def _surrogate(rewards: Sequence[float], ratio: float) -> float:
    """The token-mean clipped objective by hand, when every token has the same importance ratio."""
    lengths = np.array([2, 3, 4, 2])
    advantage = (np.array(rewards) - np.mean(rewards)) / (np.std(rewards, ddof=1) + 1e-4)
    per_token = np.minimum(ratio * advantage, np.clip(ratio, 0.8, 1.28) * advantage)
    return float(-(per_token * lengths).sum() / lengths.sum())


@pytest.mark.parametrize("algorithm", ["dapo", "grpo"])
def test_anchors_beside_a_group_are_cross_entropy_with_their_own_weight(
    policy: Path, tmp_path: Path, algorithm: Algorithm
) -> None:
    """Their log-probs are far off (a ratio of e would be clipped) and their rewards alike; neither matters."""
    one = group(policy, 0, [1, 0, 0, 0])
    stored = group(policy, 1, [1, 1, 1, 1], shift=-1.0).trajectories[:3]
    anchors = replace(one, id=-1, trajectories=tuple(replace(t, stored=True, anchor=0.5) for t in stored))
    logged = one_step(policy, [one, anchors], 3, tmp_path, algorithm)
    advantages = [*((np.array([1, 0, 0, 0]) - 0.25) / (0.5 + 1e-4)), 0.5, 0.5, 0.5]
    lengths = np.array([2, 3, 4, 2, 2, 3, 4]) if algorithm == "dapo" else np.ones(7)
    assert logged["loss"] == pytest.approx(-float(np.average(advantages, weights=lengths)), abs=1e-5)
    assert logged["clip_ratio/region_mean"] == 0


def test_the_order_of_a_steps_rows_depends_on_seed_and_step_alone(policy: Path, tmp_path: Path) -> None:
    groups = [group(policy, i, [1, 0, i % 2, 0]) for i in range(4)]
    alone, beside = (one_step(policy, groups, 4, tmp_path, beside=b) for b in ((), (Dice(),)))
    assert (alone["loss"], alone["grad_norm"]) == (beside["loss"], beside["grad_norm"])


def test_a_batch_that_does_not_split_is_refused_with_the_numbers() -> None:
    config = TrainConfig(batch_groups=3, micro_batch=5)
    with pytest.raises(ValueError, match=r"= 12 rollouts do not split into micro-batches of 5"):
        grpo_arguments(config, group_size=4, max_tokens=8, temperature=1.0, output=Path("x"), seed=0)


@pytest.mark.parametrize(
    ("algorithm", "loss", "scale", "high"),
    [("grpo", "grpo", "group", 0.2), ("dapo", "dapo", "group", 0.28), ("dr_grpo", "dr_grpo", "none", 0.2)],
)
def test_each_algorithm_is_the_published_set_of_switches(
    algorithm: Algorithm, loss: str, scale: str, high: float
) -> None:
    arguments = grpo_arguments(
        TrainConfig(algorithm=algorithm),
        group_size=4,
        max_tokens=8,
        temperature=0.7,
        output=Path("x"),
        seed=0,
    )
    assert (arguments["loss_type"], arguments["scale_rewards"], arguments["epsilon_high"]) == (
        loss,
        scale,
        high,
    )
    assert arguments["temperature"] == 0.7, "the loss uses the sampling temperature"
