"""Where problems come from: one `CodeSource` per data set, each row read into the same `Row`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from snooze_kit.rows import Split, SplitSource

from snooze_code.contests import read_deepcoder, read_livecodebench
from snooze_code.evalplus import mbpp_split, read_humaneval, read_humaneval_plus, read_mbpp, read_mbpp_plus
from snooze_code.rows import Row


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeSource(SplitSource[Row | None]):
    """A data set; `read` gives None for a row without a test that the prompt does not show."""

    split_of: Callable[[Mapping[str, Any]], str] | None = None
    """The hub's split of a row, for local files that hold all of them."""


_TEST_ONLY: Mapping[Split, str] = MappingProxyType({"eval": "test", "test": "test"})

SOURCES: Mapping[str, CodeSource] = MappingProxyType(
    {
        "mbpp": CodeSource(
            hub="google-research-datasets/mbpp",
            subset="sanitized",
            read=read_mbpp,
            splits=MappingProxyType({"train": "train", "eval": "validation", "test": "test"}),
            split_of=mbpp_split,
            licence="CC BY 4.0",
        ),
        "mbpp_plus": CodeSource(
            hub="evalplus/mbppplus", read=read_mbpp_plus, splits=_TEST_ONLY, licence="Apache-2.0"
        ),
        "humaneval": CodeSource(
            hub="openai/openai_humaneval", read=read_humaneval, splits=_TEST_ONLY, licence="MIT"
        ),
        "humaneval_plus": CodeSource(
            hub="evalplus/humanevalplus", read=read_humaneval_plus, splits=_TEST_ONLY, licence="Apache-2.0"
        ),
        "deepcoder": CodeSource(
            hub="agentica-org/DeepCoder-Preview-Dataset",
            subset="primeintellect",
            read=read_deepcoder,
            splits=MappingProxyType({"train": "train"}),
            licence="MIT",
        ),
        "livecodebench": CodeSource(
            hub="livecodebench/code_generation_lite",
            read=read_livecodebench,
            splits=_TEST_ONLY,
            licence="CC",
        ),
    }
)
