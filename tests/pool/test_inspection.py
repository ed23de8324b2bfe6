"""Laws of exclusions, their evidence, the sources and the files."""

from __future__ import annotations

import csv
import gzip
import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from snoozing_env.cli import main
from snoozing_env.errors import ConfigError, PoolError
from snoozing_env.pool.config import PoolConfig
from snoozing_env.pool.inspection import inspect_pool
from snoozing_env.pool.lists import read_list
from snoozing_env.pool.output import summarize
from snoozing_env.pool.rows import read_rows

FERRY = "The ferry crosses the wide river nine times a day and carries forty cars on every crossing it makes"
BAKER = (
    "A baker kneads the dough before sunrise and lets it rest twice while the oven slowly warms up to heat"
)


def test_every_exclusion_says_which_rows_collide_and_in_what(inspect) -> None:
    found = inspect([FERRY, FERRY.upper(), BAKER, f"{BAKER} again today"], [f"{BAKER}!"])
    by_row = {e.row.row: e for e in found.exclusions}
    assert {row: e.reason for row, e in by_row.items()} == {
        1: "duplicate",
        2: "contaminated: exact",
        3: "contaminated: near-duplicate",
    }
    copy, leak, near = (by_row[row].evidence[0] for row in (1, 2, 3))
    assert (copy["key"], copy["jaccard"]) == ("train-0", 1.0)
    assert (leak["source"], leak["revision"], leak["row"], leak["jaccard"]) == ("evaluation", "r1", 0, 1.0)
    assert 0.8 < near["jaccard"] < 1.0
    assert near["shared"] == BAKER.lower()
    n_grams = by_row[3].evidence[1]
    assert (n_grams["n"], n_grams["coverage"], n_grams["numbers_changed"]) == (13, 1.0, False)


def test_near_duplicates_within_training_share_a_cluster_and_stay_unless_asked(inspect) -> None:
    texts = [FERRY, f"{FERRY} in June", BAKER]
    found = inspect(texts)
    assert found.exclusions == ()
    assert found.cluster_N[0] == found.cluster_N[1] != found.cluster_N[2]
    dropped = inspect(texts, drop_near=True).exclusions
    assert [(e.row.row, e.reason) for e in dropped] == [(1, "near-duplicate")]


def test_augmentation_is_counted_before_and_after_and_inherits_exclusion(made_rows) -> None:
    original = made_rows([FERRY, BAKER])
    paraphrase = replace(
        made_rows(["Boats go to and fro"])[0], key="aug-0", stage="augmented", parent="train-0"
    )
    variant = replace(made_rows(["Bread rises"])[0], key="aug-1", stage="augmented", parent="train-1")
    found = inspect_pool(
        [*original, paraphrase, variant, *made_rows([FERRY], "evaluation")], PoolConfig(train=["by hand"])
    )
    assert {e.row.key: e.reason for e in found.exclusions} == {
        "train-0": "contaminated: exact",
        "aug-0": "parent excluded",
    }
    summary = summarize(found)
    assert (summary["before augmentation"]["rows"], summary["before augmentation"]["excluded"]) == (2, 1)
    assert (summary["after augmentation"]["rows"], summary["after augmentation"]["excluded"]) == (4, 2)


class LetterCounts:
    """A small real embedder: how often each letter occurs."""

    def embed(self, texts):
        return np.array(
            [[text.lower().count(letter) for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts]
        )


class Broken:
    def embed(self, texts):
        return np.ones(3)


def test_embedding_neighbours_are_hints_and_never_exclude(made_rows) -> None:
    rows = [*made_rows([FERRY, BAKER]), *made_rows([" ".join(reversed(FERRY.split()))], "evaluation")]
    config = PoolConfig(train=["by hand"], evaluation=["by hand"], embedder="letters")
    found = inspect_pool(rows, config, embedder=lambda name: LetterCounts())
    assert [(n.item, n.text, round(n.cosine, 6)) for n in found.neighbours] == [(2, 0, 1.0)]
    assert found.exclusions == ()
    with pytest.raises(PoolError, match=r"gave an array of shape \(3,\) for 3 texts; wanted \[3, D\]"):
        inspect_pool(rows, config, embedder=lambda name: Broken())


@pytest.fixture
def files(tmp_path):
    """The same two texts in every format."""
    lines = [{"id": f"q{n}", "question": text} for n, text in enumerate((FERRY, BAKER))]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / "a.json").write_text(json.dumps(lines))
    with gzip.open(tmp_path / "a.jsonl.gz", "wt") as file:
        file.write("".join(json.dumps(line) + "\n" for line in lines))
    pq.write_table(pa.Table.from_pylist(lines), tmp_path / "a.parquet")
    with (tmp_path / "a.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ["id", "question"])
        writer.writeheader()
        writer.writerows(lines)
    return tmp_path


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.jsonl.gz", "a.parquet", "a.csv"])
def test_every_format_gives_the_same_rows_with_provenance(files, name: str) -> None:
    rows = read_rows(str(files / name), side="train")
    assert [(row.text, row.key, row.row) for row in rows] == [(FERRY, "q0", 0), (BAKER, "q1", 1)]
    assert all(row.revision.startswith("sha256:") and row.source.endswith(name) for row in rows)
    assert [row.key for row in read_rows(f"{files / name}?text=question&limit=1", side="train")] == ["q0"]


def test_a_conversation_is_compared_by_what_the_user_says(tmp_path) -> None:
    turns = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": FERRY}]
    (tmp_path / "t.jsonl").write_text(json.dumps({"prompt": turns}))
    assert read_rows(str(tmp_path / "t.jsonl"), side="train")[0].text == FERRY


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("gsm8k_tarin", r"'gsm8k_tarin' is no source: there is no such file\. Write a file ending in"),
        ("nowhere.jsonl", "there is no file nowhere.jsonl"),
        ("{dir}/a.jsonl?txt=question", r"unknown option 'txt'\. Did you mean 'text'\?"),
        ("{dir}/a.jsonl?text=qestion", r"has no field 'qestion'\. Did you mean 'question'\?"),
        ("{dir}/a.jsonl?limit=none", "limit is 'none'; give a number of rows"),
        ("{dir}/bad.jsonl", "line 2 is not JSON"),
        ("{dir}/list.jsonl", "line 1 is a JSON list, wanted an object"),
        ("{dir}/other.jsonl", r"none of the usual text fields .* Its fields: a, b\."),
        ("{dir}/number.jsonl", r"row 0: the field 'text' holds int, wanted text"),
        ("{dir}/empty.jsonl", "has no rows"),
        ("{dir}/bad.parquet", "is no readable parquet file"),
        ("env:snooze-math", "is an environment; `snooze pool` reads those"),
    ],
)
def test_a_source_that_cannot_be_read_says_what_to_do(files, source: str, message: str) -> None:
    (files / "bad.jsonl").write_text('{"text": "fine"}\n{oops\n')
    (files / "list.jsonl").write_text("[1]\n")
    (files / "other.jsonl").write_text('{"a": 1, "b": 2}\n')
    (files / "number.jsonl").write_text('{"text": 7}\n')
    (files / "empty.jsonl").write_text("")
    (files / "bad.parquet").write_text("PAR")
    with pytest.raises(PoolError, match=message):
        read_rows(source.format(dir=files), side="train")


def test_the_command_writes_lists_that_read_back(files, capsys) -> None:
    (files / "test.jsonl").write_text(json.dumps({"prompt": BAKER.lower()}))
    out = files / "lists"
    main(["pool", str(files / "a.jsonl"), "--evaluation", str(files / "test.jsonl"), "--output", str(out)])
    assert "contaminated: exact" in capsys.readouterr().out
    lines = [json.loads(line) for line in (out / "exclude.jsonl").read_text().splitlines()]
    assert [(line["key"], line["row"], line["reason"]) for line in lines] == [
        ("q1", 1, "contaminated: exact")
    ]
    assert lines[0]["evidence"][0]["source"].endswith("test.jsonl")
    assert read_list(out / "exclude.jsonl", "reason").get("q1", "") == "contaminated: exact"
    members = [json.loads(line) for line in (out / "clusters.jsonl").read_text().splitlines()]
    assert [(m["side"], m["size"], m["most_like"]["jaccard"]) for m in members] == [
        ("train", 2, 1.0),
        ("evaluation", 2, 1.0),
    ]
    assert json.loads((out / "summary.json").read_text())["config"]["near"] == 0.5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["pool"], "no source to look at"),
        (["pool", "x.jsonl", "--near", "0.1"], "greater than or equal to 0.4"),
        (["pool", "x.jsonl", "--embedder", "hashed"], "compares with evaluation sets"),
        (["pool", "x.jsonl", "--shingel", "4"], "shingel"),
    ],
)
def test_a_command_that_means_nothing_is_refused(arguments, message: str, capsys) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    assert message in capsys.readouterr().err


def test_an_option_that_does_not_exist_is_answered_with_the_nearest() -> None:
    from snoozing_env.config import parse_config

    with pytest.raises(ConfigError, match=r"unknown key 'covrage'\. Did you mean 'coverage'\?"):
        parse_config(PoolConfig, {"train": ["x.jsonl"], "covrage": 0.5}, where="pool")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "there is no list"),
        ("{", "line 1 is not JSON"),
        ('{"key": "a"}', r"wanted 'reason' and `key` or `hash`"),
    ],
)
def test_a_list_that_is_none_is_refused(tmp_path, content, message: str) -> None:
    path = tmp_path / "exclude.jsonl"
    if content is not None:
        path.write_text(content)
    with pytest.raises(PoolError, match=message):
        read_list(path, "reason")
