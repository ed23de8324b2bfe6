"""One token per character, so a tiny policy can see digits and any text fits without training a vocabulary.

A chat renders as markers around bare content, the shortest form that still separates the roles:

    [{"role": "user", "content": "23+45="}]  →  <user>23+45=<assistant>
    ... an assistant turn ends in <eos>; system and tool turns open with <system> and <tool>
"""

from __future__ import annotations

import string
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

VOCAB_SIZE = 128
"""Every id decodes to something: the table is filled up with reserved markers, so no sampled id is a hole."""

CONTROL = ("<pad>", "<bos>", "<eos>", "<unk>")
ROLES = ("<system>", "<user>", "<assistant>", "<tool>")
CHARACTERS = string.digits + string.ascii_letters + string.punctuation + " \n"

CHAT_TEMPLATE = (
    "{%- for message in messages -%}"
    "{{ '<' + message['role'] + '>' }}{{ message['content'] if message['content'] else '' }}"
    "{%- if message['role'] == 'assistant' -%}{{ '<eos>' }}{%- endif -%}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{ '<assistant>' }}{%- endif -%}"
)


def build_tokenizer(context: int = 256) -> PreTrainedTokenizerFast:
    """The lab tokenizer; ASCII round-trips exactly, any other character becomes `<unk>`."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    known = [*CONTROL, *ROLES, *CHARACTERS]
    markers = [*ROLES, *(f"<reserved_{i}>" for i in range(VOCAB_SIZE - len(known)))]
    vocab = {token: i for i, token in enumerate([*CONTROL, *ROLES, *CHARACTERS, *markers[len(ROLES) :]])}
    raw = Tokenizer(models.WordLevel(vocab, unk_token="<unk>"))
    raw.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), behavior="isolated")
    raw.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(
        tokenizer_object=raw,
        pad_token="<pad>",
        bos_token="<bos>",
        eos_token="<eos>",
        unk_token="<unk>",
        extra_special_tokens=markers,
        model_max_length=context,
        padding_side="left",
        clean_up_tokenization_spaces=False,
        chat_template=CHAT_TEMPLATE,
    )
