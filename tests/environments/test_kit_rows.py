"""Laws of the reader of published sets: formats, places, draws, and what is said when a set cannot be had."""

from __future__ import annotations

import csv
import gzip
import io
import json
import logging
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from snooze_kit.options import SourceOptions
from snooze_kit.rows import RowReader, Source, SourceError, SplitSource, no_split

READER = RowReader(package="snooze-riddles", noun="riddles", logger=logging.getLogger("riddles"))
SOURCE = Source(hub="owner/riddles", licence="CC0")
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
ROWS = st.lists(st.fixed_dictionaries({"prompt": TEXT, "label": TEXT}), min_size=1, max_size=6)


def as_csv(rows: list[dict[str, str]]) -> bytes:
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, ["prompt", "label"], quoting=csv.QUOTE_ALL)
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue().encode()


def as_parquet(rows: list[dict[str, str]]) -> bytes:
    import pyarrow
    from pyarrow import parquet

    file = io.BytesIO()
    parquet.write_table(pyarrow.Table.from_pylist(rows), file)
    return file.getvalue()


def as_lines(rows: list[dict[str, str]]) -> bytes:
    return "\r\n\n".join(json.dumps(row, ensure_ascii=False) for row in rows).encode()


FORMATS = {
    ".jsonl": as_lines,
    ".json": lambda rows: json.dumps(rows, ensure_ascii=False, indent=1).encode(),
    ".csv": as_csv,
    ".parquet": as_parquet,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("rows")


@settings(deadline=None)
@given(rows=ROWS, zipped=st.booleans(), ending=st.sampled_from(sorted(FORMATS)))
def test_rows_are_the_same_in_every_format_whatever_characters_they_hold(folder, rows, zipped, ending):
    data = FORMATS[ending](rows)
    file = folder / f"riddles{ending}{'.gz' if zipped else ''}"
    file.write_bytes(gzip.compress(data) if zipped else data)
    assert READER.from_file("riddles", file) == rows


def test_a_byte_order_mark_is_no_part_of_the_first_column(tmp_path):
    file = tmp_path / "r.csv"
    file.write_bytes(b"\xef\xbb\xbfprompt,label\nWho?,me\n")
    assert READER.parse(file) == [{"prompt": "Who?", "label": "me"}]


def test_a_path_names_the_file_of_each_split_and_the_home_directory(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "test_riddles.jsonl").write_text('{"prompt": "Who?"}\n')
    found = READER.from_file("riddles", Path("~/{split}_{what}.jsonl"), split="test", what="riddles")
    assert found == [{"prompt": "Who?"}]
    with pytest.raises(
        SourceError, match=r"riddles: there is no file \S+/train_riddles.jsonl; give `path` a .*{split}"
    ):
        READER.find("riddles", Path("~/{split}_riddles.jsonl"), split="train")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("r.jsonl", b'\n{"a": 1}\n{not json\n', "r.jsonl is neither .* nor a JSON list: line 3 is not JSON"),
        ("r.json", b'[{"a": 1},\n{not json]', "line 2 is not JSON"),
        ("r.csv", b"\xff\xfe\x00", "r.csv cannot be read .UnicodeDecodeError.*; give `path` a JSON-lines"),
        ("r.jsonl.gz", b"plain", "r.jsonl.gz cannot be read .BadGzipFile"),
        ("r.jsonl.gz", gzip.compress(b'{"a": 1}')[:-9], "r.jsonl.gz cannot be read .EOFError"),
        ("r.parquet", b"plain", "r.parquet is not a parquet file"),
    ],
)
def test_a_file_that_is_not_what_its_name_says_is_refused_with_the_place(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(SourceError, match=message):
        READER.parse(tmp_path / name)


def read(row: Mapping[str, Any]) -> str:
    return row["prompt"].strip()


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"q": "?", "a": 1}, r"row 1 of riddles has the fields \['a', 'q'\], .*\(KeyError: 'prompt'\); give a "),
        ({"prompt": 3}, r"row 1 of riddles has the fields \['prompt'\], .*AttributeError.* format of owner/riddles"),
        ({"prompt": "x", None: ["y"]}, None),
        ([1, 2], "row 1 of riddles is a list"),
        ("text", "row 1 of riddles is a str"),
    ],
)  # fmt: skip
def test_a_row_of_another_format_is_refused_with_its_place_and_fields(bad, message):
    rows = [{"prompt": " Who? "}, bad]
    if message is None:
        assert READER.typed("riddles", SOURCE, rows, read) == ["Who?", "x"]
        return
    with pytest.raises(SourceError, match=message):
        READER.typed("riddles", SOURCE, rows, read)


def test_a_bug_of_a_reader_is_not_taken_for_a_strange_row():
    with pytest.raises(ZeroDivisionError, match="division by zero"):
        READER.typed("riddles", SOURCE, [{}], lambda row: 1 / len(row))


@given(count=st.integers(1, 40), data=st.data(), seed=st.integers(0, 3))
def test_a_draw_is_some_of_the_rows_each_at_most_once_and_the_same_for_the_same_seed(count, data, seed):
    rows = [f"r{place}" for place in range(count)]
    size = data.draw(st.integers(1, count))
    drawn = READER.drawn("riddles", rows, split="train", size=size, seed=seed)
    assert len(drawn) == len(set(drawn)) == size
    assert set(drawn) <= set(rows)
    assert drawn == READER.drawn("riddles", rows, split="train", size=size, seed=seed)


def test_sets_splits_and_seeds_draw_differently_and_no_size_means_all_in_order():
    rows = list(range(200))
    choices = [
        ("riddles", "train", 0),
        ("jokes", "train", 0),
        ("riddles", "test", 0),
        ("riddles", "train", 1),
    ]
    drawn = {tuple(READER.drawn(name, rows, split=split, size=20, seed=s)) for name, split, s in choices}
    assert len(drawn) == len(choices)
    assert READER.drawn("riddles", rows, split="train", size=None, seed=0) == rows
    with pytest.raises(SourceError, match="riddles has 200 riddles in split 'train', 201 were asked for"):
        READER.drawn("riddles", rows, split="train", size=201, seed=0)


def test_rows_left_out_are_counted_by_reason_in_the_environments_own_log(caplog):
    with caplog.at_level(logging.INFO, "riddles"):
        READER.left_out("set", {"repeated": 2, "without an answer": 0, "that rhyme": 1})
    assert [record.getMessage() for record in caplog.records] == [
        "set: left out 2 riddles repeated",
        "set: left out 1 riddles that rhyme",
    ]


def test_a_choice_or_a_split_that_does_not_exist_names_what_to_change():
    assert str(READER.nothing_left("set", "split 'train'", "path and levels")) == (
        "set, split 'train': no riddle is left; check path and levels"
    )
    assert "has no train split; use split='test'" in str(no_split("set", "train"))


def test_a_table_is_read_from_where_the_hub_name_points(tmp_path, monkeypatch):
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "test.jsonl").write_text('{"prompt": "Who?"}\n{"prompt": "Why?"}\n')
    source = Source(hub=str(tmp_path / "set"), licence="CC0")
    raw = READER.from_hub("riddles", source, subset=None, split="test", revision=None)
    assert READER.typed("riddles", source, raw, read) == ["Who?", "Why?"]


@pytest.mark.parametrize(
    ("gated", "message"),
    [
        (None, r"check the network and, for gated sets, HF_TOKEN, or give a local file: path=/data/riddles.jsonl"),
        (False, "check the network, or give a local file"),
        (True, r"owner/riddles is gated: accept its terms at https://huggingface.co/datasets/owner/riddles and"),
    ],
)  # fmt: skip
def test_a_hub_out_of_reach_is_told_with_the_way_in_and_the_way_round(gated, message):
    source = Source(hub="owner/riddles", licence="CC0", gated=gated)
    with pytest.raises(SourceError, match=f"riddles: the Hugging Face hub did not give .*; {message}"):
        READER.from_hub("riddles", source, subset=None, split="test", revision=None)


def test_a_missing_library_is_named_with_the_extra_that_brings_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)  # what an absent module looks like to `import`
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(SourceError, match=r"pip install 'snooze-riddles\[hub\]', or give a local file"):
        READER.from_hub("riddles", SOURCE, subset=None, split="test", revision=None)
    (tmp_path / "r.parquet").write_bytes(b"")
    with pytest.raises(
        SourceError, match=r"r.parquet is read with pyarrow: pip install 'snooze-riddles\[hub\]'"
    ):
        READER.parse(tmp_path / "r.parquet")


def test_what_the_publisher_did_not_split_is_cut_and_what_has_no_train_side_is_for_evaluation():
    whole = SplitSource(hub="a/b", licence="MIT", read=read, splits={"train": "train"})
    test_only = SplitSource(hub="a/b", licence="MIT", read=read, splits={"eval": "test", "test": "test"})
    assert (whole.cut, whole.evaluation_only) == (True, False)
    assert (test_only.cut, test_only.evaluation_only) == (False, True)


def test_the_reader_needs_no_verifiers():
    script = "import snooze_kit.rows, sys; print([m for m in ('verifiers', 'datasets', 'pyarrow') if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "[]"


class RiddleConfig(SourceOptions[Literal["made", "old", "new"]]):
    EMBEDDED: ClassVar[tuple[str, ...]] = ("made",)
    source: Literal["made", "old", "new"] = "made"


def test_each_source_has_its_own_file_or_the_one_of_the_single_source():
    assert RiddleConfig().chosen == ["made"]
    one = RiddleConfig(source="old", path="/data/old.jsonl")
    assert (one.chosen, one.file_of("old")) == (["old"], Path("/data/old.jsonl"))
    two = RiddleConfig(sources=["old", "made"], paths={"old": "/data/old.jsonl"})
    assert (two.chosen, two.file_of("old"), two.file_of("made")) == (
        ["old", "made"], Path("/data/old.jsonl"), None,
    )  # fmt: skip
    assert RiddleConfig.model_validate_json(two.model_dump_json()) == two


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"path": "/x"}, "`path` is /x, but .*; give a `source` other than made"),
        ({"sources": ["old", "new"], "path": "/x"}, "give paths = {name = file} beside `sources`"),
        ({"paths": {"older": "/x"}}, "'made', 'old' or 'new'"),
        ({"sources": ["older"]}, "'made', 'old' or 'new'"),
        ({"size": 0}, "greater than 0"),
        ({"split": "dev"}, "'train', 'eval' or 'test'"),
    ],
)
def test_options_that_mean_nothing_are_refused_at_birth(config, message):
    with pytest.raises(ValidationError, match=message):
        RiddleConfig(**config)
