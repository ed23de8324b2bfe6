"""Laws of the local engine, on a tiny Qwen3 model with random weights."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
import torch

from snoozing_env.errors import EngineError
from snoozing_env.rollout.engines.base import Completion, SamplingParams
from snoozing_env.rollout.engines.local import LocalEngine, LocalEngineConfig
from snoozing_env.train.lab import LabConfig, build_tokenizer
from snoozing_env.train.lab.policy import build_model

torch.set_num_threads(1)

CONTEXT = 64
PROMPTS = ["1+1=", "23+45=", "(7-5)*8=", "9=", "what is 12 times 12, please?"]


@pytest.fixture(scope="module")
def policy():
    """(model, tokenizer): random, but wide enough at the output to say <eos> and many other things."""
    tokenizer = build_tokenizer(CONTEXT)
    model = build_model(LabConfig(context=CONTEXT, seed=3, initializer_range=0.12), tokenizer)
    return model, tokenizer


def chat(prompt: str) -> list[dict[str, object]]:
    return [{"role": "user", "content": prompt}]


def sample_all(policy, asks, *, max_batch: int = 512, together: bool = True) -> list[list[Completion]]:
    """One engine, one event loop; `asks` are (prompt, n, seed, params)."""

    async def run() -> list[list[Completion]]:
        engine = LocalEngine(*policy, LocalEngineConfig(max_batch=max_batch))
        await engine.start()
        calls = [engine.sample(chat(p), n=n, seed=seed, params=params) for p, n, seed, params in asks]
        try:
            return list(await asyncio.gather(*calls)) if together else [await call for call in calls]
        finally:
            await engine.close()

    return asyncio.run(run())


def teacher_forced(policy, completion: Completion, temperature: float) -> torch.Tensor:
    """[T] log-probs of a completion by the forward a trainer would run: one whole sequence, no cache."""
    model, _ = policy
    ids = torch.tensor([completion.prompt_ids + completion.token_ids])
    with torch.no_grad():
        logits = model(ids, use_cache=False).logits[0, len(completion.prompt_ids) - 1 : -1]
    chosen = torch.tensor(completion.token_ids)[:, None]
    return torch.log_softmax(logits / temperature, dim=-1).gather(1, chosen)[:, 0]


SHORT = SamplingParams(max_tokens=8)


def test_a_group_s_tokens_do_not_depend_on_who_shares_its_batch(policy):
    asks = [(prompt, 4, seed, SHORT) for seed, prompt in enumerate(PROMPTS)]
    together = sample_all(policy, asks)
    alone = sample_all(policy, asks, together=False)
    in_small_batches = sample_all(policy, asks, max_batch=8)
    reversed_order = sample_all(policy, asks[::-1])[::-1]
    expected = [[c.token_ids for c in group] for group in together]
    for other in (alone, in_small_batches, reversed_order):
        assert [[c.token_ids for c in group] for group in other] == expected


def test_a_larger_group_or_a_longer_limit_begins_with_the_same_tokens(policy):
    [small] = sample_all(policy, [("23+45=", 3, 9, SHORT)])
    [large] = sample_all(policy, [("23+45=", 6, 9, SamplingParams(max_tokens=12))])
    assert [c.token_ids for c in small] == [c.token_ids[:8] for c in large[:3]]


def test_another_seed_and_another_rollout_of_the_group_draw_their_own_noise(policy):
    [first], [second] = (sample_all(policy, [("1+1=", 16, seed, SHORT)]) for seed in (0, 1))
    distinct = {c.token_ids for c in first + second}
    assert len(distinct) > 24, "32 rollouts of a nearly uniform policy should hardly ever agree"


@pytest.mark.parametrize("temperature", [0.5, 1.0, 1.7])
def test_log_probs_are_those_of_a_teacher_forced_forward_at_the_sampling_temperature(policy, temperature):
    params = SamplingParams(max_tokens=10, temperature=temperature)
    groups = sample_all(policy, [(prompt, 4, seed, params) for seed, prompt in enumerate(PROMPTS)])
    assert len({len(group[0].prompt_ids) for group in groups}) > 2, "prompts of one length need no padding"
    for completion in (c for group in groups for c in group):
        expected = teacher_forced(policy, completion, temperature)
        assert (expected - torch.tensor(completion.logprobs)).abs().max() < 1e-5


def test_tokens_come_with_the_frequency_the_policy_gives_them(policy):
    n = 4000
    [group] = sample_all(policy, [("1+1=", n, 0, SamplingParams(max_tokens=1))])
    counts = Counter(completion.token_ids[0] for completion in group)
    model, _ = policy
    with torch.no_grad():
        probs = torch.softmax(model(torch.tensor([group[0].prompt_ids])).logits[0, -1].double(), -1).numpy()
    seen = np.array([counts[token] for token in range(len(probs))])
    chi_square = float((((seen - n * probs) ** 2) / (n * probs)).sum())
    degrees = len(probs) - 1
    assert abs(chi_square - degrees) < 5 * np.sqrt(2 * degrees)


def test_temperature_zero_takes_the_most_likely_token_whatever_the_seed(policy):
    greedy = SamplingParams(max_tokens=6, temperature=0.0)
    groups = sample_all(policy, [("23+45=", 2, seed, greedy) for seed in range(3)])
    assert len({completion.token_ids for group in groups for completion in group}) == 1
    model, _ = policy
    first = groups[0][0]
    for place, token in enumerate(first.token_ids):
        with torch.no_grad():
            logits = model(torch.tensor([first.prompt_ids + first.token_ids[:place]])).logits[0, -1]
        assert token == int(logits.argmax())


def test_requests_of_different_temperature_and_length_share_a_batch_unharmed(policy):
    asks = [
        ("1+1=", 3, 1, SamplingParams(max_tokens=2)),
        ("23+45=", 2, 2, SamplingParams(max_tokens=9, temperature=0.0)),
        ("9=", 3, 3, SamplingParams(max_tokens=5, temperature=2.0)),
    ]
    mixed, alone = sample_all(policy, asks), sample_all(policy, asks, together=False)
    assert [[c.token_ids for c in g] for g in mixed] == [[c.token_ids for c in g] for g in alone]
    for (_, n, _, params), group in zip(asks, mixed, strict=True):
        assert len(group) == n
        assert max(len(c.token_ids) for c in group) <= params.max_tokens


def test_a_row_stops_at_the_end_token_and_keeps_it_and_only_then_says_stop(policy):
    _, tokenizer = policy
    [group] = sample_all(policy, [("1+1=", 256, 0, SamplingParams(max_tokens=24))])
    reasons = Counter(completion.finish_reason for completion in group)
    assert min(reasons["stop"], reasons["length"]) > 5, reasons
    for completion in group:
        ended = tokenizer.eos_token_id in completion.token_ids
        assert completion.finish_reason == ("stop" if ended else "length")
        assert len(completion.token_ids) == len(completion.logprobs)
        if ended:
            assert completion.token_ids.index(tokenizer.eos_token_id) == len(completion.token_ids) - 1
        else:
            assert len(completion.token_ids) == 24
        assert completion.text == tokenizer.decode(completion.token_ids, skip_special_tokens=True)
        assert "<eos>" not in completion.text


def test_the_prompt_is_exactly_the_chat_template_s(policy):
    _, tokenizer = policy
    [[completion]] = sample_all(policy, [("23+45=", 1, 0, SHORT)])
    assert tokenizer.decode(completion.prompt_ids) == "<user>23+45=<assistant>"


def test_concurrent_calls_share_one_forward(policy):
    model, _ = policy
    prefills: list[int] = []
    hook = model.register_forward_pre_hook(
        lambda _module, _args, kwargs: (
            prefills.append(len(kwargs["input_ids"])) if kwargs["input_ids"].shape[1] > 1 else None
        ),
        with_kwargs=True,
    )
    try:
        sample_all(policy, [(prompt, 8, 0, SHORT) for prompt in PROMPTS])
        assert prefills == [len(PROMPTS)], "each prompt once, all of them together"
        prefills.clear()
        sample_all(policy, [(prompt, 8, 0, SHORT) for prompt in PROMPTS], max_batch=16)
        assert prefills == [2, 2, 1], "at most 16 sequences, in call order"
        prefills.clear()
        sample_all(policy, [("1+1=", 8, 0, SHORT), ("2+2=", 40, 0, SHORT)], max_batch=16)
        assert prefills == [1, 1], "a request wider than a batch runs alone"
    finally:
        hook.remove()


@pytest.mark.parametrize("training", [True, False])
def test_the_trainer_s_mode_and_gradients_are_as_before(policy, training):
    model, _ = policy
    model.train(training)
    try:
        sample_all(policy, [("1+1=", 2, 0, SHORT)])
        assert model.training == training
        ids = torch.tensor([[5, 8, 9, 6]])
        model(ids, labels=ids).loss.backward()
        assert model.lm_head.weight.grad is not None
    finally:
        model.zero_grad(set_to_none=True)
        model.eval()


def test_new_weights_and_their_version_show_in_the_next_sample(policy):
    _, tokenizer = policy
    model = build_model(LabConfig(context=CONTEXT, layers=1), tokenizer)

    async def run() -> tuple[Completion, Completion]:
        engine = LocalEngine(model, tokenizer, name="lab")
        assert (engine.model, engine.version) == ("lab", 0)
        await engine.start()
        [before] = await engine.sample(chat("1+1="), n=1, seed=0, params=SHORT)
        moved = build_model(LabConfig(context=CONTEXT, layers=1, seed=1), tokenizer)
        model.load_state_dict(moved.state_dict())
        engine.set_version(7)
        [after] = await engine.sample(chat("1+1="), n=1, seed=0, params=SHORT)
        await engine.close()
        return before, after

    before, after = asyncio.run(run())
    assert (before.version, before.last_version, after.version, after.last_version) == (0, 0, 7, 7)
    assert before.token_ids != after.token_ids
    expected = teacher_forced((model, tokenizer), after, 1.0)
    assert (expected - torch.tensor(after.logprobs)).abs().max() < 1e-5


def test_a_completion_ends_with_the_context_and_a_prompt_that_fills_it_is_refused(policy):
    room_for_two = "1" * (CONTEXT - 4)
    [group] = sample_all(policy, [(room_for_two, 4, 0, SamplingParams(max_tokens=50))])
    assert max(len(c.token_ids) for c in group) == 2
    with pytest.raises(
        EngineError, match=rf"prompt has {CONTEXT} tokens, the context of 'local' is {CONTEXT}"
    ):
        sample_all(policy, [("1" * (CONTEXT - 2), 1, 0, SHORT)])


def test_a_refused_request_does_not_disturb_its_neighbours(policy):
    async def run() -> list[object]:
        engine = LocalEngine(*policy)
        await engine.start()
        prompts = ["1+1=", "1" * CONTEXT, "2+2="]
        calls = [engine.sample(chat(prompt), n=2, seed=0, params=SHORT) for prompt in prompts]
        answers = await asyncio.gather(*calls, return_exceptions=True)
        await engine.close()
        return answers

    good, refused, also_good = asyncio.run(run())
    assert isinstance(refused, EngineError)
    assert len(good) == len(also_good) == 2


def test_a_failing_forward_reaches_every_caller_as_an_engine_error_with_its_cause(policy):
    _, tokenizer = policy
    broken = build_model(LabConfig(context=CONTEXT, layers=1), tokenizer)
    broken.lm_head = torch.nn.Linear(3, 128)  # the wrong width, as after a bad weight load

    async def run() -> list[object]:
        engine = LocalEngine(broken, tokenizer)
        await engine.start()
        calls = [engine.sample(chat(p), n=2, seed=0, params=SHORT) for p in PROMPTS[:3]]
        answers = await asyncio.gather(*calls, return_exceptions=True)
        await engine.close()
        return answers

    for answer in asyncio.run(run()):
        assert isinstance(answer, EngineError)
        assert "failed on 3 requests: RuntimeError" in str(answer)
        assert isinstance(answer.__cause__, RuntimeError)


def test_closing_cancels_whoever_still_waits_and_a_closed_engine_says_so(policy):
    async def run() -> asyncio.Task[list[Completion]]:
        engine = LocalEngine(*policy)
        await engine.start()
        waiting = asyncio.create_task(engine.sample(chat("1+1="), n=1, seed=0, params=SHORT))
        await asyncio.sleep(0)
        await engine.close()
        await asyncio.wait([waiting])
        with pytest.raises(EngineError, match=r"'local' is not running; await start\(\) first"):
            await engine.sample(chat("1+1="), n=1, seed=0, params=SHORT)
        return waiting

    assert asyncio.run(run()).cancelled()


def test_one_engine_serves_one_event_loop_after_another(policy):
    engine = LocalEngine(*policy)

    async def once() -> tuple[int, ...]:
        await engine.start()
        [completion] = await engine.sample(chat("1+1="), n=1, seed=4, params=SHORT)
        return completion.token_ids

    assert asyncio.run(once()) == asyncio.run(once())
    asyncio.run(engine.close())


@pytest.mark.parametrize(
    ("n", "params"),
    [(0, SHORT), (1, SamplingParams(max_tokens=0)), (1, SamplingParams(temperature=-1.0))],
)
def test_a_request_that_means_nothing_is_refused(policy, n, params):
    with pytest.raises(EngineError, match=rf"cannot sample n={n} completions"):
        sample_all(policy, [("1+1=", n, 0, params)])


def test_a_tokenizer_without_a_chat_template_is_refused_at_start(policy):
    model, _ = policy
    mute = build_tokenizer(CONTEXT)
    mute.chat_template = None
    with pytest.raises(EngineError, match=r"has no chat template"):
        asyncio.run(LocalEngine(model, mute).start())


def test_importing_the_engine_needs_no_torch():
    code = "import sys, snoozing_env.rollout.engines.local; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
