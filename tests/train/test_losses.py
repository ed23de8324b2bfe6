"""Every loss against arithmetic by hand: alone on small tensors, and as the gradient that reaches a trainer's log-probs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import GRPOConfig

from snoozing_env.advantages import (
    clipped_surrogate,
    group_advantages,
    leave_one_out,
    max_rl_advantages,
    optimal_advantages,
)
from snoozing_env.config import parse_config
from snoozing_env.errors import ConfigError
from snoozing_env.train.grpo import Algorithm, Correction, TrainConfig, grpo_arguments
from snoozing_env.train.losses import (
    Batch,
    Terms,
    advantages_of,
    dro,
    importance_weights,
    oapl,
    own_advantages,
    own_loss,
    sequence_clipped,
)
from snoozing_env.train.sync import SnoozingGRPOTrainer
from snoozing_env.types import Floats, Group
from tests.train.test_trainer import FixedFeed, G, group

LN2 = math.log(2.0)
MAX_TOKENS = 8


def terms(advantages: Sequence[float] = (1.0, -1.0)) -> Terms:
    """Two sequences of two and one tokens; log-ratios (ln 2, 0) and (-ln 2)."""
    behaviour = torch.tensor([[-1.0, -2.0], [-1.0, -9.0]])
    logps = (behaviour + torch.tensor([[LN2, 0.0], [-LN2, 5.0]])).requires_grad_()
    return Terms(
        logps=logps,
        behaviour=behaviour,
        advantages=torch.tensor(advantages),
        mask=torch.tensor([[1.0, 1.0], [1.0, 0.0]]),
    )


def gradient(loss: torch.Tensor, of: Terms) -> list[list[float]]:
    (grad,) = torch.autograd.grad(loss, of.logps)
    return [[round(float(x), 6) for x in row] for row in grad]


def test_a_groups_rewards_become_each_algorithms_advantages() -> None:
    rewards = np.array([1.0, 0.0, 0.0, 1.0])
    assert leave_one_out(rewards) == pytest.approx([2 / 3, -2 / 3, -2 / 3, 2 / 3]), "1 - (0 + 0 + 1) / 3"
    assert max_rl_advantages(rewards) == pytest.approx([1.0, -1.0, -1.0, 1.0]), "(1 - .5) / .5"
    assert max_rl_advantages(np.zeros(3)).tolist() == [0.0, 0.0, 0.0]
    value = math.log((2 * math.e + 2) / 4)
    assert optimal_advantages(rewards, temperature=1.0) == pytest.approx(
        [1 - value, -value, -value, 1 - value]
    )
    assert optimal_advantages(rewards, temperature=1e-3) == pytest.approx([0.0, -1.0, -1.0, 0.0], abs=1e-2), (
        "cold: the value is the best reward"
    )
    assert optimal_advantages(rewards, temperature=1e4) == pytest.approx(rewards - 0.5, abs=1e-3), (
        "hot: the value is the mean"
    )


def test_rows_without_a_reward_get_no_advantage_and_count_in_no_baseline() -> None:
    config = TrainConfig(algorithm="rloo")
    got = own_advantages(config, [1.0, None, 0.0, None, 0.0, 1.0, 1.0, 1.0], 4)
    assert got == pytest.approx([1.0, 0.0, -1.0, 0.0, -1.0, 1 / 3, 1 / 3, 1 / 3])
    assert own_advantages(TrainConfig(algorithm="dapo"), [1.0, 0.0], 2) is None, "TRL's are the algorithm's"


def test_rloos_ratio_is_of_the_whole_sequence_and_clipped_on_the_side_its_advantage_pushes_to() -> None:
    held = terms(advantages=(1.0, -1.0))  # ratios 2 and 1/2: both past the clip where they are pushed
    assert sequence_clipped(held, low=0.2, high=0.2).tolist() == pytest.approx([-1.2, 0.8])
    assert gradient(sequence_clipped(held, low=0.2, high=0.2).sum(), held) == [[0, 0], [0, 0]]
    pulled = terms(advantages=(-1.0, 1.0))
    assert gradient(sequence_clipped(pulled, low=0.2, high=0.2).sum(), pulled) == [[2, 2], [-0.5, 0]]


def test_dro_is_the_policy_gradient_with_a_quadratic_penalty() -> None:
    made = terms()
    loss = dro(made, beta=0.5)
    log_prob, log_ratio = -3 + LN2, LN2
    assert loss[0].item() == pytest.approx(-log_prob + 0.25 * log_ratio**2)
    pulled_back = round(0.5 * LN2 - 1.0, 6)
    assert gradient(loss.sum(), made) == [[pulled_back, pulled_back], [round(-0.5 * LN2 + 1.0, 6), 0]]


def test_oapl_is_at_rest_where_the_log_ratio_equals_the_advantage_over_beta() -> None:
    made = terms(advantages=(0.5 * LN2, -0.5 * LN2))
    assert gradient(oapl(made, beta=0.5).sum(), made) == [[0, 0], [0, 0]]
    other = terms()
    assert oapl(other, beta=0.5).tolist() == pytest.approx([0.25 * (LN2 - 2) ** 2] * 2)


def test_oapl_and_dro_differ_in_their_baseline_alone() -> None:
    a, b = terms(), terms()
    assert gradient(oapl(a, beta=0.5).sum(), a) == gradient(dro(b, beta=0.5).sum(), b)


@pytest.mark.parametrize(
    ("correction", "expected"),
    [
        ("token_truncate", [[1.5, 1.0], [0.8, 0.8]]),
        ("token_mask", [[0.0, 1.0], [0.0, 0.0]]),
        ("sequence_truncate", [[1.5, 1.5], [0.8, 0.8]]),
        ("sequence_mask", [[0.0, 0.0], [0.0, 0.0]]),
    ],
)
def test_weights_are_capped_or_masked_by_token_or_by_sequence(
    correction: Correction, expected: list[list[float]]
) -> None:
    weights = importance_weights(terms(), correction, smallest=0.8, largest=1.5)
    masked = weights * terms().mask
    wanted = torch.tensor(expected) * terms().mask
    assert torch.allclose(masked, wanted), "ratios are (2, 1) and (1/2); of the sequences 2 and 1/2"
    assert not weights.requires_grad


def test_a_weighted_loss_has_the_weight_times_the_advantage_as_its_gradient() -> None:
    made = terms()
    config = TrainConfig(algorithm="dapo", correction="token_truncate", correction_max=1.5)
    loss = own_loss(config, made, Batch(rows=2, tokens=3.0, max_tokens=8))
    assert gradient(loss, made) == [[-0.5, round(-1 / 3, 6)], [round(0.5 / 3, 6), 0]]


# -- through the trainer ------------------------------------------------------------------------------------


class Watching(SnoozingGRPOTrainer):
    """Keeps the log-probs of its forward pass, with their gradient, and the rows they are of."""

    def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> torch.Tensor:
        loss = super()._compute_loss(model, inputs)
        self._latest_logps.retain_grad()
        self.seen = (self._latest_logps, inputs["completion_ids"], inputs["completion_mask"])
        return loss


def trained_gradient(
    policy: Path, groups: Sequence[Group], config: TrainConfig, output: Path
) -> dict[Any, Floats]:
    """d loss / d log-prob of every token of one optimizer step, by completion."""
    tokenizer = AutoTokenizer.from_pretrained(policy, padding_side="left")
    model = AutoModelForCausalLM.from_pretrained(policy, dtype=torch.float32)
    arguments = grpo_arguments(
        config, group_size=G, max_tokens=MAX_TOKENS, temperature=1.0, output=output, seed=0
    )
    args = GRPOConfig(**arguments | {"save_strategy": "no"})
    trainer = Watching(
        model, args, tokenizer, FixedFeed(groups), batch_groups=config.batch_groups, config=config
    )
    trainer.train()
    logps, ids, mask = trainer.seen
    return {
        tuple(row[m.bool()].tolist()): grad[m.bool()].numpy()
        for row, m, grad in zip(ids, mask, logps.grad, strict=True)
        if m.any()
    }


def by_hand(config: TrainConfig, groups: Sequence[Group], shifts: Sequence[float]) -> dict[Any, Floats]:
    """The same in numpy, from rewards, lengths and a log-ratio that all tokens of a group share."""
    rows = sum(len(g.trajectories) for g in groups)
    tokens = sum(len(t.completion_ids) for g in groups for t in g.trajectories)
    result: dict[Any, Floats] = {}
    for made, log_ratio in zip(groups, shifts, strict=True):
        rewards = made.outcome.rewards_G
        advantages = _advantages(config.algorithm, rewards)
        for trajectory, advantage in zip(made.trajectories, advantages, strict=True):
            n = len(trajectory.completion_ids)
            per_token = _per_token(config, log_ratio, advantage, n)
            scale = {"grpo": n * rows, "dr_grpo": rows * MAX_TOKENS, "rloo": rows, "dro": rows, "oapl": rows}
            result[trajectory.completion_ids] = np.full(n, per_token / scale.get(config.algorithm, tokens))
    return result


def _advantages(algorithm: Algorithm, rewards: Floats) -> Floats:
    centred = rewards - rewards.mean()
    match algorithm:
        case "rloo":
            return np.array([r - np.delete(rewards, i).mean() for i, r in enumerate(rewards)])
        case "max_rl":
            return centred / rewards.mean()
        case "oapl":
            return rewards - np.log(np.exp(rewards).mean())
        case "dr_grpo" | "dro":
            return centred
        case _:
            return centred / (rewards.std(ddof=1) + 1e-4)


def _per_token(config: TrainConfig, log_ratio: float, advantage: float, n: int) -> float:
    """Unnormalised d loss / d log-prob of one token."""
    if config.correction != "ratio":
        weight = math.exp(log_ratio * (n if config.correction.startswith("sequence") else 1))
        inside = config.correction_min <= weight <= config.correction_max
        capped = min(max(weight, config.correction_min), config.correction_max)
        return -advantage * (capped if config.correction.endswith("truncate") else weight * inside)
    match config.algorithm:
        case "cispo":
            return -min(math.exp(log_ratio), 5.0) * advantage
        case "dro":
            return config.dro_beta * n * log_ratio - advantage
        case "oapl":
            return config.oapl_beta * n * log_ratio - advantage
        case _:
            total = log_ratio * n if config.algorithm == "rloo" else log_ratio
            high = 0.28 if config.algorithm == "dapo" else 0.2
            one = clipped_surrogate(np.array([total]), np.zeros(1), np.array([advantage]), low=0.2, high=high)
            return -float(one.gradient_T[0])


CASES: list[tuple[Algorithm, Correction]] = [
    ("grpo", "ratio"),
    ("dapo", "ratio"),
    ("dr_grpo", "ratio"),
    ("rloo", "ratio"),
    ("cispo", "ratio"),
    ("dro", "ratio"),
    ("oapl", "ratio"),
    ("max_rl", "ratio"),
    ("grpo", "token_truncate"),
    ("dr_grpo", "sequence_mask"),
    ("rloo", "sequence_truncate"),
]


@pytest.mark.parametrize(("algorithm", "correction"), CASES)
@pytest.mark.parametrize("batch", [2, 3])
def test_the_gradient_that_reaches_the_log_probs_is_the_published_one(
    policy: Path,
    tmp_path: Path,
    algorithm: Algorithm,
    correction: Correction,
    batch: int,
) -> None:
    """A fresh group and one whose ratios are e^.25 = 1.28..: past DAPO's clip, inside CISPO's; in a full batch, and in
    one that a missing group leaves partial."""
    config = TrainConfig(
        steps=1,
        batch_groups=batch,
        algorithm=algorithm,
        correction=correction,
        correction_max=1.2,
        device="cpu",
        save_every=10**6,
    )
    shifts = (0.0, 0.25)
    groups = [
        group(policy, 0, [1, 0, 0, 0], shift=-shifts[0]),
        group(policy, 1, [1, 1, 0, 1], shift=-shifts[1]),
    ]
    got, wanted = trained_gradient(policy, groups, config, tmp_path), by_hand(config, groups, shifts)
    assert got.keys() >= wanted.keys()
    for completion, expected in wanted.items():
        assert got[completion] == pytest.approx(expected, abs=2e-5), completion
    assert any(np.abs(x).max() > 1e-3 for x in wanted.values())


def test_the_asynchronous_trainers_advantages_are_those_of_its_algorithms() -> None:
    rewards = np.array([1.0, 0.0, 0.0, 0.0])
    assert advantages_of(TrainConfig(algorithm="dapo"), rewards) == pytest.approx(group_advantages(rewards))
    assert advantages_of(TrainConfig(algorithm="max_rl"), rewards) == pytest.approx([3.0, -1.0, -1.0, -1.0])


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"algorithm": "dro", "correction": "token_mask"}, r"replaces a clipped ratio, which 'dro' has not"),
        (
            {"correction": "token_mask", "correction_min": 2.0},
            r"correction_min 2.0 is not below correction_max 2.0",
        ),
        (
            {"trainer": "async_grpo", "algorithm": "grpo"},
            r"computes one loss .* not 'grpo'.*; use dapo or max_rl",
        ),
        ({"trainer": "async_grpo", "beta": 0.1}, r"has no KL penalty, beta is 0.1; set it to 0"),
        ({"algorithm": "dapoo"}, r"'algorithm'"),
    ],
)
def test_choices_that_do_not_go_together_are_refused_with_the_way_out(
    table: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_config(TrainConfig, table)
