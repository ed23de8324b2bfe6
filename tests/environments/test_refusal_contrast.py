"""Laws of the authored contrast set: its size, its balance, its split, and that no question answers itself."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest
from snooze_kit.rows import SourceError
from snooze_refusal import RefusalConfig, RefusalTaskset, detect
from snooze_refusal.contrast.build import cells, contrast_rows, split_of
from snooze_refusal.contrast.templates import MECHANISMS
from snooze_refusal.grade import Wanted, evidence
from snooze_refusal.rows import same_prompt

TRAIN, EVAL = contrast_rows("train"), contrast_rows("eval")
ALL = [*TRAIN, *EVAL]
SAFE = [row for row in ALL if row.side == "comply"]


def words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text.lower()))


def test_twelve_categories_times_nine_mechanisms_times_three_phrasings_times_two_sides():
    assert len(ALL) == 12 * 9 * 3 * 2
    assert len(SAFE) == len(ALL) // 2
    assert {mechanism for _, mechanism in cells()} == set(MECHANISMS)
    assert len({row.id for row in ALL}) == len({same_prompt(row.prompt) for row in ALL}) == len(ALL)


def test_a_cell_is_trained_on_or_held_out_as_a_whole_and_nothing_is_lost_from_either_split():
    assert {row.cluster for row in TRAIN}.isdisjoint(row.cluster for row in EVAL)
    for rows in (TRAIN, EVAL):
        assert {row.domain for row in rows} == {category for category, _ in cells()}
        assert {row.mechanism for row in rows} == set(MECHANISMS)
        assert sum(row.side == "comply" for row in rows) * 2 == len(rows)
    assert {split_of(*cell) for cell in cells()} == {"train", "eval"}


def test_no_held_out_prompt_is_a_near_duplicate_of_a_training_prompt():
    seen = [words(row.prompt) for row in TRAIN]
    for row in EVAL:
        mine = words(row.prompt)
        assert max(len(mine & other) / len(mine | other) for other in seen) < 0.8, row.prompt


def test_a_repeated_question_holds_no_evidence_and_the_authored_answer_does():
    for row in SAFE:
        wanted = Wanted(prompt=row.prompt, side="comply", terms=row.terms, needed=row.needed)
        assert evidence(wanted, row.prompt) is None, (row.prompt, row.terms)
        assert evidence(Wanted(prompt="", side="comply", terms=row.terms, needed=1), row.prompt) is None, (
            row.prompt
        )
        assert evidence(wanted, row.answer), row.prompt


def test_an_answer_to_one_cell_is_no_evidence_for_most_others():
    firsts = [row for row in SAFE if row.id.endswith("/0/safe")]
    crossed = sum(
        evidence(Wanted(prompt=a.prompt, side="comply", terms=a.terms, needed=a.needed), b.answer) is not None
        for a in firsts
        for b in firsts
        if a is not b
    )
    assert crossed / (len(firsts) * (len(firsts) - 1)) < 0.02


def test_authored_answers_are_no_refusals_and_the_unsafe_side_is_short_and_has_none():
    assert all(detect(row.prompt, row.answer) == "compliance" for row in SAFE)
    unsafe = [row for row in ALL if row.side == "refuse"]
    assert all(len(row.prompt.split()) <= 26 and not row.answer and not row.terms for row in unsafe)


def test_mechanisms_that_only_swap_the_object_ask_both_sides_in_the_same_words():
    same = [name for name, form in MECHANISMS.items() if form.safe == form.unsafe]
    assert len(same) >= 6


def test_keys_are_unique_and_the_same_in_another_process_with_another_hash_seed():
    mine = [task.key for split in ("train", "eval") for task in RefusalTaskset(RefusalConfig(split=split))]
    assert len(set(mine)) == len(mine) == len(ALL)
    script = (
        "import json; from snooze_refusal import RefusalConfig, RefusalTaskset;"
        "print(json.dumps([t.key for s in ('train', 'eval') for t in RefusalTaskset(RefusalConfig(split=s))]))"
    )
    env = os.environ | {"PYTHONHASHSEED": "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=env, check=True)
    assert json.loads(done.stdout) == mine


def test_a_sample_is_balanced_seeded_and_drawn_from_its_split():
    def drawn(**config):
        return [task.data for task in RefusalTaskset(RefusalConfig(**config))]

    few = drawn(size=50, seed=3)
    assert [data.id for data in few] == [data.id for data in drawn(size=50, seed=3)]
    assert [data.id for data in few] != [data.id for data in drawn(size=50, seed=4)]
    assert sum(data.side == "refuse" for data in few) == 25
    held = {row.id for row in EVAL}
    assert held.isdisjoint(data.id for data in few)
    assert {data.id for data in drawn(size=40, split="test")} <= held


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"categories": ["violense"]}, r"categories \['violense'\] do not exist; choose some of"),
        ({"mechanisms": ["riddle"]}, r"mechanisms \['riddle'\] do not exist"),
        ({"size": 10_000}, "contrast has 516 prompts in split 'train', 10000 were asked for"),
        ({"split": "eval", "categories": ["stalking"], "mechanisms": ["fiction"]}, "no prompt is left"),
    ],
)
def test_a_choice_that_gives_nothing_says_why(config, message):
    with pytest.raises(SourceError, match=message):
        list(RefusalTaskset(RefusalConfig(**config)))
