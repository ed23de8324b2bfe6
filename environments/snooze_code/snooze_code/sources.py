"""Where problems come from: one `Source` per data set, each row read into the same `Row`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from snooze_code.config import Split
from snooze_code.contests import read_deepcoder, read_livecodebench
from snooze_code.evalplus import mbpp_split, read_humaneval, read_humaneval_plus, read_mbpp, read_mbpp_plus
from snooze_code.rows import Row


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A data set, by hub name and by the columns it has there and in the usual local file."""

    hub: str
    """Hugging Face name."""
    read: Callable[[Mapping[str, Any]], Row | None]
    """None for a row without a test that the prompt does not show."""
    licence: str
    subset: str | None = None
    splits: Mapping[Split, str] = field(default_factory=dict)
    """Our split → the hub's. A missing "test" is cut from "train": one problem in five, by content."""
    split_of: Callable[[Mapping[str, Any]], str] | None = None
    """The hub's split of a row, for local files that hold all of them."""

    @property
    def cut(self) -> bool:
        """Whether train and held-out rows are told apart by content, not by the publisher."""
        return "test" not in self.splits

    @property
    def evaluation_only(self) -> bool:
        return "train" not in self.splits


_TEST_ONLY: Mapping[Split, str] = MappingProxyType({"eval": "test", "test": "test"})

SOURCES: Mapping[str, Source] = MappingProxyType(
    {
        "mbpp": Source(
            hub="google-research-datasets/mbpp",
            subset="sanitized",
            read=read_mbpp,
            splits=MappingProxyType({"train": "train", "eval": "validation", "test": "test"}),
            split_of=mbpp_split,
            licence="CC BY 4.0",
        ),
        "mbpp_plus": Source(
            hub="evalplus/mbppplus", read=read_mbpp_plus, splits=_TEST_ONLY, licence="Apache-2.0"
        ),
        "humaneval": Source(
            hub="openai/openai_humaneval", read=read_humaneval, splits=_TEST_ONLY, licence="MIT"
        ),
        "humaneval_plus": Source(
            hub="evalplus/humanevalplus", read=read_humaneval_plus, splits=_TEST_ONLY, licence="Apache-2.0"
        ),
        "deepcoder": Source(
            hub="agentica-org/DeepCoder-Preview-Dataset",
            subset="primeintellect",
            read=read_deepcoder,
            splits=MappingProxyType({"train": "train"}),
            licence="MIT",
        ),
        "livecodebench": Source(
            hub="livecodebench/code_generation_lite",
            read=read_livecodebench,
            splits=_TEST_ONLY,
            licence="CC",
        ),
    }
)
