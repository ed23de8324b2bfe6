"""The contract suite over every buffer, and the proof that it can fail."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from snoozing_env.buffers.fresh import FreshConfig
from snoozing_env.testing import BUFFER_LAWS, BUFFERS, BufferLaw, BufferSubject, check_buffer
from snoozing_env.testing.stocks import TASKS, FreshStock, Stock
from tests.core.mutations import run_over_a_copy


@pytest.mark.parametrize("law", BUFFER_LAWS.values(), ids=BUFFER_LAWS)
@pytest.mark.parametrize("name", BUFFERS)
def test_every_buffer_keeps_the_law(name: str, law: BufferLaw) -> None:
    law(BUFFERS[name])


def test_a_buffer_from_elsewhere_can_run_the_suite_in_one_call() -> None:
    def build(seed: int) -> Stock:
        return FreshStock(FreshConfig(max_staleness=5, capacity=3))

    check_buffer(BufferSubject(build=build, capacity=3, bound=5, examples=5))


def test_a_promise_that_is_not_kept_is_named_with_what_was_seen() -> None:
    promises_too_much = replace(BUFFERS["fresh"], capacity=TASKS + 1)
    with pytest.raises(AssertionError, match=f"after {TASKS + 1} puts it holds {TASKS} of {TASKS + 1}"):
        check_buffer(promises_too_much)


# -- the suite can fail -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """One promise, taken out of the source."""

    file: str
    """Below snoozing_env/buffers."""
    old: str
    """Regular expression, which must stand there once."""
    new: str
    law: str
    """Law that must be broken by it; others may be too."""
    kinds: tuple[str, ...]
    """Buffers that have this code."""


SUCCESS = ("success, importance", "success, anchor")
LOSSES = {
    "the age bound of the surplus": Loss(
        file="fresh.py",
        old=r"version - g\.outcome\.version <= self\.config\.max_staleness",
        new="version - g.outcome.version <= self.config.max_staleness + 1",
        law="nothing_past_its_age",
        kinds=("fresh",),
    ),
    "the room of the surplus": Loss(
        file="fresh.py",
        old=r"max\(len\(self\._groups\) - self\.config\.capacity, 0\)",
        new="0",
        law="never_more_than_its_capacity",
        kinds=("fresh",),
    ),
    "that surplus is given once": Loss(
        file="fresh.py",
        old=r"taken, self\._groups = self\._groups\[:n\], self\._groups\[n:\]",
        new="taken = self._groups[:n]",
        law="each_once_in_a_step",
        kinds=("fresh",),
    ),
    "the age bound of replay": Loss(
        file="replay.py",
        old=r"version - g\.outcome\.version > bound\]",
        new="version - g.outcome.version > bound + 1]",
        law="nothing_past_its_age",
        kinds=("replay",),
    ),
    "the oldest leaving first": Loss(
        file="replay.py",
        old=r"max\(len\(self\._groups\) - self\.config\.capacity, 0\)",
        new="0",
        law="never_more_than_its_capacity",
        kinds=("replay",),
    ),
    "leaving out what the batch has": Loss(
        file="replay.py",
        old=r" if id not in without\]",
        new="]",
        law="what_a_step_has_is_left_out",
        kinds=("replay",),
    ),
    "that a step gets distinct groups": Loss(
        file="replay.py",
        old=r"self\._rng\.permutation\(len\(ids\)\)\[:n\]\.tolist\(\)",
        new="self._rng.integers(0, len(ids), min(n, len(ids))).tolist()",
        law="each_once_in_a_step",
        kinds=("replay",),
    ),
    "the save of chance": Loss(
        file="replay.py",
        old=r'self\._rng\.bit_generator\.state = state\["rng"\]',
        new="pass",
        law="a_restored_buffer_goes_on_alike",
        kinds=("replay",),
    ),
    "the draw itself, of group 0 alone": Loss(
        file="replay.py",
        old=r"self\._rng\.permutation\(len\(ids\)\)",
        new="np.arange(len(ids))",
        law="everyone_has_a_turn",
        kinds=("replay",),
    ),
    "a bit of the log-probs in the file": Loss(
        file="store.py",
        old=r'"logprobs": pa\.list_\(pa\.float64\(\)\)',
        new='"logprobs": pa.list_(pa.float32())',
        law="a_restored_buffer_goes_on_alike",
        kinds=("fresh", "replay", *SUCCESS),
    ),
    "the age bound of successes": Loss(
        file="success.py",
        old=r"age > self\.config\.max_staleness",
        new="age > self.config.max_staleness + 1",
        law="nothing_past_its_age",
        kinds=("success, importance",),
    ),
    "that anchors do not age": Loss(
        file="success.py",
        old=r'self\.config\.use == "importance" and age',
        new="age",
        law="nothing_past_its_age",
        kinds=("success, anchor",),
    ),
    "dropping what the grader rejects": Loss(
        file="success.py",
        old=r"self\._forget\(success\)\n            self\.dropped \+= 1",
        new="self.dropped += 1",
        law="what_the_grader_rejects_is_dropped",
        kinds=SUCCESS,
    ),
    "believing a verdict that is none": Loss(
        file="success.py",
        old=r"return bool\(verdict\)",
        new="return verdict is not False",
        law="what_the_grader_rejects_is_dropped",
        kinds=SUCCESS,
    ),
    "the turns": Loss(
        file="success.py",
        old=r"self\._turns\[key\] = self\._turn",
        new="pass",
        law="everyone_has_a_turn",
        kinds=SUCCESS,
    ),
    "the save of the turns": Loss(
        file="success.py",
        old=r'self\._turn = int\(state\["turn"\]\)',
        new="pass",
        law="a_restored_buffer_goes_on_alike",
        kinds=SUCCESS,
    ),
    "keeping successes only": Loss(
        file="success.py",
        old=r"if not trajectory\.valid or reward < self\.config\.threshold - 1e-6",
        new="if not trajectory.valid",
        law="only_successes_are_kept",
        kinds=SUCCESS,
    ),
    "that no two are alike": Loss(
        file="success.py",
        old=r"np\.array\(self\.trajectory\.completion_ids, np\.int64\)",
        new="np.array(self.trajectory.version, np.int64)",
        law="only_successes_are_kept",
        kinds=SUCCESS,
    ),
    "the room of successes": Loss(
        file="success.py",
        old=r"surplus = len\(self\._of_task\) - self\.config\.tasks",
        new="surplus = 0",
        law="never_more_than_its_capacity",
        kinds=SUCCESS,
    ),
}

SUITE = """
import json, os, sys
from snoozing_env.testing import BUFFER_LAWS, BUFFERS

kinds, laws = json.loads(sys.argv[1])
broken = {}
for kind in kinds:
    broken[kind] = []
    for law in laws:
        try:
            BUFFER_LAWS[law](BUFFERS[kind])
        except AssertionError:
            broken[kind].append(law)
print(json.dumps(broken), flush=True)
os._exit(0)  # pyarrow's threads now and then abort an interpreter that ends while they start
"""


@pytest.mark.parametrize("name", LOSSES)
def test_the_contract_suite_notices_the_loss_of(name: str, tmp_path: Path) -> None:
    loss = LOSSES[name]
    change = (f"buffers/{loss.file}", loss.old, loss.new)
    found = run_over_a_copy(SUITE, [loss.kinds, [loss.law]], tmp_path, change)
    assert found == {kind: [loss.law] for kind in loss.kinds}


def test_the_state_machine_alone_notices_a_bound_that_is_one_too_large(tmp_path: Path) -> None:
    for name, kind in (
        ("the age bound of the surplus", "fresh"),
        ("the age bound of replay", "replay"),
        ("the age bound of successes", "success, importance"),
    ):
        loss = LOSSES[name]
        change = (f"buffers/{loss.file}", loss.old, loss.new)
        found = run_over_a_copy(SUITE, [[kind], ["any_buffer_history"]], tmp_path / kind, change)
        assert found == {kind: ["any_buffer_history"]}


def test_the_same_suite_passes_over_the_source_as_it_is(tmp_path: Path) -> None:
    laws = sorted({loss.law for loss in LOSSES.values()})
    assert run_over_a_copy(SUITE, [list(BUFFERS), laws], tmp_path, None) == {kind: [] for kind in BUFFERS}
