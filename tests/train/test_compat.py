"""Each shim is needed by the installed version, and does what it replaces."""

from __future__ import annotations

import importlib.util
from importlib.metadata import version

import numpy as np
import pytest
import torch
from accelerate import Accelerator
from torch.utils.data import IterableDataset

from snoozing_env.train import compat
from snoozing_env.train.compat import async_module

# isort: split
from trl.experimental.async_grpo.packing import TreeRow, tree_attention


def test_the_shims_are_written_against_the_installed_trl() -> None:
    installed = version("trl")
    assert installed.startswith(compat.NEEDED_BY + "."), (
        f"trl {installed} is installed, the shims are of {compat.NEEDED_BY}: check each of them against it"
    )


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has CUDA and so a device name")
def test_trl_1_16_asks_cuda_for_a_name_even_on_cpu() -> None:
    accelerator = Accelerator(cpu=True)
    with pytest.raises((AssertionError, RuntimeError, ValueError), match=r"(?i)cuda|device"):
        async_module.get_peak_flops_per_device(accelerator, "float32")
    with compat.without_cuda():
        assert async_module.get_peak_flops_per_device(accelerator, "float32") is None
    with pytest.raises((AssertionError, RuntimeError, ValueError), match=r"(?i)cuda|device"):
        async_module.get_peak_flops_per_device(accelerator, "float32")


def packed(*sequences: list[int]) -> dict[str, torch.Tensor]:
    row = TreeRow()
    for i, ids in enumerate(sequences):
        ones = np.ones(len(ids), np.int64)
        row.add(
            {
                "input_ids": np.array(ids),
                "completion_mask": ones,
                "old_log_probs": ones.astype(np.float32),
                "advantage": 1.0,
                "group_id": i,
            }
        )
    return row.pack()


@pytest.mark.skipif(
    importlib.util.find_spec("kernels") is not None, reason="`kernels` would fetch from the hub"
)
def test_trl_1_16_attends_through_a_kernel_that_it_fetches() -> None:
    row = packed([1, 2, 3])
    q = torch.zeros(1, 2, 3, 4, dtype=torch.bfloat16)
    names = ("tree_kv_index", "tree_cu_seqlens_q", "tree_cu_seqlens_k")
    with pytest.raises(ImportError, match="kernels"):
        tree_attention(
            torch.nn.Linear(1, 1), q, q, q, None,
            tree_max_seqlen_q=3, tree_max_seqlen_k=3, **{name: row[name] for name in names},
        )  # fmt: skip


@pytest.mark.parametrize("window", [None, 2])
def test_packed_sequences_attend_as_if_each_stood_alone(window: int | None) -> None:
    """Four query heads over two key heads; three sequences, two of which share a prefix and one is its continuation."""
    sequences = ([1, 2, 3, 4], [1, 2, 3, 5, 6], [7, 8, 9])
    row = packed(*sequences)
    torch.manual_seed(0)
    table = {name: torch.randn(10, 5, heads, 8) for name, heads in (("q", 4), ("k", 2), ("v", 2))}

    def looked_up(name: str, ids: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        return table[name][ids, positions].transpose(0, 1)[None]

    q, k, v = (looked_up(name, row["input_ids"], row["position_ids"]) for name in "qkv")
    names = ("tree_kv_index", "tree_cu_seqlens_q", "tree_cu_seqlens_k")
    got, _ = compat.sdpa_attention(
        torch.nn.Identity(),
        q,
        k,
        v,
        None,
        scaling=0.3,
        sliding_window=window,
        **{name: row[name] for name in names},
    )
    assert len(row["input_ids"]) < sum(map(len, sequences)), "the prefix is forwarded once"
    for ids in sequences:
        alone = _alone(looked_up, ids, window)
        for depth in range(len(ids)):
            here = [
                i
                for i in range(len(row["input_ids"]))
                if row["input_ids"][i] == ids[depth] and row["position_ids"][i] == depth
            ]
            assert here
            for place in here:
                assert torch.allclose(got[0, place], alone[depth], atol=1e-5), (ids, depth)


def _alone(looked_up, ids: list[int], window: int | None) -> torch.Tensor:
    """[n, heads, d] plain attention over one sequence."""
    at = torch.arange(len(ids))
    q, k, v = (looked_up(name, torch.tensor(ids), at)[0] for name in "qkv")
    scores = 0.3 * q @ k.repeat_interleave(2, 0).transpose(-1, -2)
    distance = at[:, None] - at[None, :]
    seen = (distance >= 0) & (distance < (window or len(ids)))
    weights = scores.masked_fill(~seen, float("-inf")).softmax(-1)
    return (weights @ v.repeat_interleave(2, 0)).transpose(0, 1)


def test_a_cap_on_attention_logits_is_refused() -> None:
    row = packed([1, 2])
    q = torch.zeros(1, 1, 2, 4)
    with pytest.raises(ValueError, match=r"softcap 30\.0 needs TRL's own kernel"):
        compat.sdpa_attention(
            torch.nn.Identity(), q, q, q, None, softcap=30.0,
            tree_kv_index=row["tree_kv_index"], tree_cu_seqlens_q=row["tree_cu_seqlens_q"],
            tree_cu_seqlens_k=row["tree_cu_seqlens_k"],
        )  # fmt: skip


class Counting(IterableDataset):
    """Batches that say how many were asked for."""

    def __init__(self) -> None:
        self.asked = 0

    def __iter__(self):
        while True:
            self.asked += 1
            yield torch.tensor([self.asked])


def test_accelerates_dispatcher_asks_for_a_batch_ahead_and_ours_does_not() -> None:
    ahead, ours = Counting(), Counting()
    accelerator = Accelerator(cpu=True)
    accelerator.dataloader_config.dispatch_batches = True
    accelerator.dataloader_config.split_batches = True
    prepared = accelerator.prepare(torch.utils.data.DataLoader(ahead, batch_size=1))
    next(iter(prepared))
    next(iter(compat.no_prefetch(ours, lambda examples: examples)))
    assert (ahead.asked, ours.asked) == (2, 1)
