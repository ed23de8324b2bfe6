"""Laws of exclusion and cluster lists in a recipe's environment."""

from __future__ import annotations

import json

import pytest

from snoozing_env.errors import CatalogueError
from snoozing_env.pool.rows import Address
from snoozing_env.pool.text import text_hash
from snoozing_env.rollout.catalogue import EnvironmentConfig, load_catalogue
from snoozing_env.rollout.pool_rows import environment_rows

MATH = {"size": 12, "seed": 3}


@pytest.fixture
def listed(tmp_path):
    """Writes a list and loads twelve arithmetic tasks with it."""

    def load(option: str, lines: list[dict[str, str]]):
        path = tmp_path / f"{option}.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return load_catalogue(EnvironmentConfig(id="snooze-math", taskset=MATH, **{option: str(path)}))

    return load


@pytest.fixture(scope="module")
def plain():
    return load_catalogue(EnvironmentConfig(id="snooze-math", taskset=MATH))


def test_excluded_tasks_are_left_out_by_key_or_by_text_and_counted(listed, plain) -> None:
    by_key, by_text = plain.infos[2], plain.infos[7]
    lines = [
        {"key": by_key.key, "reason": "contaminated: exact"},
        {"key": "another id", "hash": text_hash(by_text.text), "reason": "contaminated: n-grams"},
        {"key": "of another set", "hash": "0" * 16, "reason": "contaminated: exact"},
    ]
    catalogue = listed("exclude", lines)
    assert catalogue.pooled.excluded == 2
    assert [info.key for info in catalogue.infos] == [
        info.key for info in plain.infos if info not in (by_key, by_text)
    ]
    assert [task.key for task in catalogue.tasks] == [info.key for info in catalogue.infos]


def test_a_duplicate_line_never_removes_the_only_copy(listed, plain) -> None:
    text = text_hash(plain.infos[0].text)
    assert len(listed("exclude", [{"key": text, "hash": text, "reason": "duplicate"}])) == len(plain)


def test_clusters_reach_the_scheduler_and_the_rest_keep_their_own(listed, plain) -> None:
    catalogue = listed("clusters", [{"key": plain.infos[4].key, "cluster": "c-9"}])
    assert catalogue.pooled.clustered == 1
    expected = ["c-9" if place == 4 else info.cluster for place, info in enumerate(plain.infos)]
    assert [info.cluster for info in catalogue.infos] == expected


def test_a_list_of_other_data_or_of_everything_is_refused(listed, plain) -> None:
    stranger = {"key": "x", "hash": "f" * 16}
    with pytest.raises(
        CatalogueError, match=r"none of the 1 lines of .*exclude.jsonl names one of the 12 tasks"
    ):
        listed("exclude", [{**stranger, "reason": "contaminated: exact"}])
    with pytest.raises(
        CatalogueError, match=r"none of the 1 lines of .*clusters.jsonl names one of the 12 tasks"
    ):
        listed("clusters", [{**stranger, "cluster": "c"}])
    everything = [{"key": info.key, "reason": "contaminated: exact"} for info in plain.infos]
    with pytest.raises(CatalogueError, match="excludes all 12 tasks; nothing is left"):
        listed("exclude", everything)


def test_a_list_without_lines_changes_nothing(listed, plain) -> None:
    catalogue = listed("exclude", [])
    assert (len(catalogue), catalogue.pooled.excluded) == (len(plain), 0)


def test_an_environment_is_a_source_with_its_durable_keys(plain) -> None:
    rows = list(environment_rows(Address.parse("env:snooze-math?size=12&seed=3")))
    assert [(row.key, row.text) for row in rows] == [(info.key, info.text) for info in plain.infos]
    assert {row.source for row in rows} == {"env:snooze-math"}
