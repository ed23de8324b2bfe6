"""Laws of the lab policy: its tokenizer, its warm-up, its cache."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from snooze_math.arithmetic import LEVELS, problems
from transformers import AutoModelForCausalLM, AutoTokenizer

from snoozing_env.errors import ConfigError
from snoozing_env.train.lab import LabConfig, build_lab_policy, build_tokenizer
from snoozing_env.train.lab.config import WarmupConfig
from snoozing_env.train.lab.policy import build_model, content_key
from snoozing_env.train.lab.tokenizer import CHARACTERS, VOCAB_SIZE
from snoozing_env.train.lab.warmup import Demonstrations, rate_at, tokenize, warm_up

torch.set_num_threads(1)

SHORT = LabConfig(
    hidden_size=32,
    intermediate_size=64,
    layers=1,
    heads=1,
    kv_heads=1,
    warmup=WarmupConfig(steps=60, batch=32),
)
EXAMPLES = [(problem.bare, problem.answer) for problem in problems(split="train", size=60, levels=[1])]
QUIET = Console(file=io.StringIO())


@pytest.fixture(scope="module")
def tokenizer():
    return build_tokenizer()


def weights_of(folder: Path) -> dict[str, torch.Tensor]:
    return AutoModelForCausalLM.from_pretrained(folder).state_dict()


def test_every_bare_problem_of_every_level_round_trips(tokenizer):
    for level in LEVELS:
        for problem in problems(split="train", size=30, levels=[level]):
            ids = tokenizer(problem.bare)["input_ids"]
            assert len(ids) == len(problem.bare)
            assert tokenizer.decode(ids) == problem.bare


@settings(max_examples=100, deadline=None)
@given(text=st.text(alphabet=CHARACTERS, max_size=40))
def test_printable_text_round_trips_unless_it_spells_a_marker(tokenizer, text):
    assert tokenizer.decode(tokenizer(text)["input_ids"]) == text


def test_a_character_outside_the_table_becomes_the_unknown_token_and_nothing_is_dropped(tokenizer):
    assert tokenizer("1é2")["input_ids"] == tokenizer.convert_tokens_to_ids(["1", "<unk>", "2"])


def test_every_id_below_the_vocabulary_size_decodes_and_the_special_ones_differ(tokenizer):
    assert len(tokenizer) == VOCAB_SIZE == len(set(tokenizer.convert_ids_to_tokens(range(VOCAB_SIZE))))
    special = {tokenizer.pad_token_id, tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.unk_token_id}
    assert len(special) == 4


def test_a_bare_prompt_renders_as_one_marker_on_each_side(tokenizer):
    chat = [{"role": "user", "content": "23+45="}]
    rendered = tokenizer.apply_chat_template(chat, add_generation_prompt=True, return_dict=True)["input_ids"]
    assert tokenizer.convert_ids_to_tokens(rendered) == ["<user>", *"23+45=", "<assistant>"]


def test_a_whole_conversation_renders_with_every_role_and_closes_assistant_turns(tokenizer):
    chat = [
        {"role": "system", "content": "Add."},
        {"role": "user", "content": "1+1="},
        {"role": "assistant", "content": "2"},
        {"role": "user", "content": "2+2="},
    ]
    text = tokenizer.apply_chat_template(chat, add_generation_prompt=True, tokenize=False)
    assert text == "<system>Add.<user>1+1=<assistant>2<eos><user>2+2=<assistant>"


def test_one_checkpoint_directory_says_the_same_special_ids_to_model_generation_and_tokenizer(tmp_path):
    folder = build_lab_policy(LabConfig(layers=1, warmup=WarmupConfig(steps=0)), cache_dir=tmp_path)
    model, tokenizer = AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    for settings_of in (model.config, model.generation_config):
        assert settings_of.eos_token_id == tokenizer.eos_token_id
        assert settings_of.pad_token_id == tokenizer.pad_token_id
        assert settings_of.bos_token_id == tokenizer.bos_token_id
    assert model.config.model_type == "qwen3"
    assert model.config.vocab_size % 64 == 0
    assert tokenizer.decode(tokenizer("7*8=")["input_ids"]) == "7*8="
    assert tokenizer.chat_template == build_tokenizer().chat_template
    assert sum(weight.numel() for weight in model.parameters()) <= 3_000_000


@pytest.mark.parametrize("tied", [False, True])
def test_tied_and_untied_checkpoints_reload_to_the_weights_that_were_built(tied, tmp_path):
    config = LabConfig(layers=1, tie_embeddings=tied, warmup=WarmupConfig(steps=0))
    model = AutoModelForCausalLM.from_pretrained(build_lab_policy(config, cache_dir=tmp_path))
    assert (model.lm_head.weight is model.model.embed_tokens.weight) == tied
    built = build_model(config, build_tokenizer()).state_dict()
    assert all(torch.equal(weight, built[name]) for name, weight in model.state_dict().items())


def test_the_warm_up_halves_the_loss_and_the_second_build_trains_nothing(tmp_path):
    folder = build_lab_policy(SHORT, EXAMPLES, tmp_path, console=QUIET)
    losses = json.loads((folder / "lab.json").read_text())["losses"]
    assert len(losses) == SHORT.warmup.steps
    assert np.mean(losses[-10:]) < 0.5 * np.mean(losses[:5])

    (folder / "model.safetensors").rename(folder / "moved")  # a rebuild would write the file again
    assert build_lab_policy(SHORT, EXAMPLES, tmp_path, console=QUIET) == folder
    assert not (folder / "model.safetensors").exists()


def test_the_same_config_and_examples_give_the_same_weights_in_another_cache(tmp_path):
    config = SHORT.model_copy(update={"warmup": WarmupConfig(steps=5, batch=8)})
    first = build_lab_policy(config, EXAMPLES, tmp_path / "a", console=QUIET)
    torch.manual_seed(123)
    second = build_lab_policy(config, EXAMPLES, tmp_path / "b", console=QUIET)
    assert first.name == second.name
    again = weights_of(second)
    assert all(torch.equal(weight, again[name]) for name, weight in weights_of(first).items())


def test_other_examples_another_seed_or_another_shape_have_another_folder(tmp_path):
    base = LabConfig(layers=1, hidden_size=32, heads=1, kv_heads=1, warmup=WarmupConfig(steps=1, batch=2))
    variants = [
        (base, EXAMPLES),
        (base, EXAMPLES[:-1]),
        (base.model_copy(update={"seed": 1}), EXAMPLES),
        (base.model_copy(update={"hidden_size": 64}), EXAMPLES),
    ]
    folders = {build_lab_policy(config, pairs, tmp_path, console=QUIET) for config, pairs in variants}
    assert len(folders) == len(variants)
    assert sorted(tmp_path.iterdir()) == sorted(folders), "no draft folder is left behind"


@pytest.mark.parametrize(
    "field",
    [
        {"text_weight": 0.1},
        {"final_rate": 1.0},
        {"rise_steps": 9},
        {"enough_loss": 0.2},
        {"careless_at": "all"},
    ],
)
def test_a_younger_field_changes_the_key_only_where_it_changes_the_weights(field):
    assert content_key(LabConfig(), [("1+1=", "2")]) == "e2ce9f49bbb050d2", (
        "policies of recipe version 1 stay cached"
    )
    assert content_key(LabConfig(warmup=WarmupConfig(**field)), [("1+1=", "2")]) != content_key(
        LabConfig(), [("1+1=", "2")]
    )


def test_a_build_that_fails_leaves_nothing_that_a_later_run_would_load(tmp_path):
    with pytest.raises(ConfigError, match=r"has 305 tokens, the lab policy's context is 256"):
        build_lab_policy(SHORT, [("1" * 300, "22")], tmp_path, console=QUIET)
    assert list(tmp_path.iterdir()) == []


def test_the_cache_follows_its_environment_variable(tmp_path, monkeypatch):
    monkeypatch.setenv("SNOOZE_CACHE", str(tmp_path))
    folder = build_lab_policy(LabConfig(layers=1, warmup=WarmupConfig(steps=0)))
    assert folder.parent == tmp_path / "lab"


def test_building_a_policy_leaves_the_random_state_and_the_threads_of_the_caller_alone(tmp_path):
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    torch.set_num_threads(2)
    try:
        build_lab_policy(
            SHORT.model_copy(update={"warmup": WarmupConfig(steps=2, batch=4)}),
            EXAMPLES,
            tmp_path,
            console=QUIET,
        )
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)
    assert torch.equal(torch.rand(3), expected)


def test_the_loss_counts_the_answer_and_its_end_and_nothing_else(tokenizer):
    rows = tokenize([("1+1=", "2"), ("10+90=", "100")], tokenizer, context=64)
    ids, counts = Demonstrations(rows, WarmupConfig(batch=16), seed=0).draw(careless=0.0)
    for row, counted in zip(ids.tolist(), counts.tolist(), strict=True):
        learned = [token for token, weight in zip(row[1:], counted, strict=True) if weight]
        assert tokenizer.convert_ids_to_tokens(learned) in (["2", "<eos>"], ["1", "0", "0", "<eos>"])


def test_careless_demonstrations_change_one_answer_character_of_marked_prompts_only(tokenizer):
    truth = {"12+34=": "46", "50-20=": "30"}
    rows = tokenize(list(truth.items()), tokenizer, context=64)
    config = WarmupConfig(batch=4000, careless=0.5, careless_on="-", steps=1, careless_steps=1)
    ids, _ = Demonstrations(rows, config, seed=0).draw(careless=0.5)
    wrong = {prompt: [] for prompt in truth}
    for text in tokenizer.batch_decode(ids):
        prompt, answer = text.removeprefix("<user>").split("<assistant>")
        pairs = zip(answer.removesuffix("<eos>"), truth[prompt], strict=True)
        wrong[prompt].append(sum(a != b for a, b in pairs))
    assert set(wrong["12+34="]) == {0}
    assert set(wrong["50-20="]) == {0, 1}
    assert np.mean(wrong["50-20="]) == pytest.approx(0.5, abs=0.04)


def test_a_demonstration_that_slips_at_all_is_wrong_in_every_character(tokenizer):
    truth = {"50-20=": "30", "99+99=": "198", "9-2=": "7"}
    rows = tokenize(list(truth.items()), tokenizer, context=64)
    config = WarmupConfig(batch=600, careless=0.5, careless_at="all", steps=1, careless_steps=1)
    ids, _ = Demonstrations(rows, config, seed=0).draw(careless=0.5)
    for text in tokenizer.batch_decode(ids):
        prompt, answer = text.replace("<pad>", "").removeprefix("<user>").split("<assistant>")
        pairs = list(zip(answer.removesuffix("<eos>"), truth[prompt], strict=True))
        assert sum(a != b for a, b in pairs) in (0, len(pairs))


def test_a_text_weight_teaches_the_prompt_too_and_padding_never(tokenizer):
    rows = tokenize([("x1,y1;x:", "1"), ("x1,y1,z1,x1,y1,z1;y:", "1")], tokenizer, context=64)

    def learned(**given: float) -> tuple[float, float]:
        """(chance of the prompt's first comma, chance of padding after the end) after a short warm-up."""
        config = SHORT.model_copy(update={"warmup": WarmupConfig(steps=40, batch=8, **given)})
        model = build_model(config, tokenizer)
        warm_up(model, rows, config.warmup, seed=0, on_step=lambda step, loss: None)
        with torch.no_grad():
            chances = model(input_ids=torch.from_numpy(rows.ids_M_T[:1])).logits.softmax(-1)[0]
        return float(chances[2, rows.ids_M_T[0, 3]]), float(chances[rows.end_M[0], tokenizer.pad_token_id])

    (without, _), (with_text, padding) = learned(), learned(text_weight=1.0)
    assert without < 0.1
    assert with_text > 0.4
    assert padding < 0.1


def test_the_learning_rate_rises_to_its_peak_and_falls_to_a_tenth():
    rates = [rate_at(step, WarmupConfig(steps=100)) for step in range(100)]
    assert max(rates) == rates[9] == rates[10] == 1.0
    assert rates[:10] == sorted(rates[:10])
    assert rates[10:] == sorted(rates[10:], reverse=True)
    assert rates[-1] == pytest.approx(0.1, abs=0.01)


def test_a_rise_of_its_own_and_a_rate_that_does_not_fall_depend_on_no_number_of_steps():
    short, long = (
        [rate_at(step, WarmupConfig(steps=steps, rise_steps=10, final_rate=1.0)) for step in range(100)]
        for steps in (100, 5000)
    )
    assert short == long
    assert short[:10] == pytest.approx(np.arange(1, 11) / 10)
    assert set(short[10:]) == {1.0}


def test_a_warm_up_stops_at_the_first_look_that_finds_the_loss_low_enough(tmp_path):
    def losses_of(**given: float) -> list[float]:
        config = SHORT.model_copy(update={"warmup": WarmupConfig(batch=16, final_rate=1.0, **given)})
        folder = build_lab_policy(config, EXAMPLES[:2], tmp_path, console=QUIET)
        return json.loads((folder / "lab.json").read_text())["losses"]

    whole = losses_of(steps=150, rise_steps=10)
    means = {looked: np.mean(whole[looked - 20 : looked]) for looked in (50, 100, 150)}
    assert means[50] > means[100] > means[150], "the fixture learns"
    assert losses_of(steps=150, rise_steps=10, enough_loss=(means[50] + means[100]) / 2) == whole[:100]
    assert losses_of(steps=150, rise_steps=10, enough_loss=means[150] / 2) == whole


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: LabConfig(heads=4, kv_heads=3), r"kv_heads is 3; it must divide heads, which is 4"),
        (lambda: LabConfig(head_dim=48), r"head_dim is 48; vLLM on CPU serves only \(32, 64"),
        (lambda: LabConfig(hiden_size=64), r"hiden_size"),
        (
            lambda: WarmupConfig(careless_steps=6, enough_loss=0.2),
            r"careless_steps is 6 and enough_loss 0.2: a warm",
        ),
        (lambda: WarmupConfig(steps=5, careless_steps=6), r"careless_steps is 6, more than all steps, 5"),
    ],
)
def test_a_config_that_cannot_be_built_or_served_is_refused_at_birth(build, message):
    with pytest.raises(ValueError, match=message):
        build()


def test_a_warm_up_without_examples_is_refused(tmp_path):
    with pytest.raises(
        ConfigError, match=r"wants 60 warm-up steps but got no examples; pass pairs of the training"
    ):
        build_lab_policy(SHORT, [], tmp_path)
