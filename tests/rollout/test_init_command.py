"""`snooze init` from a name to an environment that keeps the contract, and how it refuses."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from snoozing_env.cli import main
from snoozing_env.errors import ConfigError
from snoozing_env.rollout.contract import check_environment
from snoozing_env.scaffold import TEMPLATE, scaffold

RUFF = [sys.executable, "-m", "ruff"]


@pytest.fixture(scope="module")
def tide_words(tmp_path_factory) -> Path:
    """A fresh package, written by the command."""
    folder = tmp_path_factory.mktemp("init") / "tide"
    main(["init", "tide-words", "--path", str(folder)])
    return folder


@pytest.fixture
def importable(tide_words, monkeypatch) -> Iterator[Path]:
    """The package as `pip install -e` would make it, here and in child processes, for one test."""
    monkeypatch.syspath_prepend(tide_words)
    inherited = os.environ.get("PYTHONPATH", "")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(tide_words), inherited])))
    yield tide_words
    for name in [name for name in sys.modules if name.partition(".")[0] == "tide_words"]:
        del sys.modules[name]


def run(words: list[str], folder: Path) -> None:
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_name_in_the_package_comes_from_the_one_that_was_given(tide_words):
    files = {str(path.relative_to(tide_words)) for path in tide_words.rglob("*") if path.is_file()}
    assert files == {
        "README.md", "pyproject.toml", "train.toml", "tests/test_tide_words.py", "tide_words/__init__.py",
        "tide_words/config.py", "tide_words/grading.py", "tide_words/harness.py", "tide_words/taskset.py",
        "tide_words/words.py",
    }  # fmt: skip
    texts = [(tide_words / name).read_text(encoding="utf-8") for name in files]
    assert not [found for text in texts for found in re.findall(r"(?i)letters.?template", text)]
    project = tomllib.loads((tide_words / "pyproject.toml").read_text())["project"]
    assert project["name"] == "tide-words"
    assert "snooze-kit>=0.1,<0.2" in project["dependencies"]
    assert (
        '__all__ = ["TideWordsHarness", "TideWordsTaskset"]'
        in (tide_words / "tide_words/__init__.py").read_text()
    )


def test_a_fresh_package_keeps_the_contract(importable):
    assert check_environment("tide-words", []) == []


def test_a_fresh_package_passes_its_own_test(importable):
    run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"], importable)


def test_the_recipe_of_a_fresh_package_loads_its_tasks(importable, capsys, monkeypatch):
    monkeypatch.chdir(importable)
    main(["train", "@", "train.toml", "--dry-run"])
    assert re.search(r"tasks\s+│ 200", capsys.readouterr().out)


@pytest.mark.parametrize("name", ["ab", "tide-words", "a1-b2-c3-d4-e5-f6-g7-h8-i9-j0-kk", "w" * 32])
def test_a_fresh_package_is_clean_for_the_linter_whatever_its_name(tmp_path, name):
    scaffold(name, tmp_path)
    project = TEMPLATE.parents[2] / "pyproject.toml"
    for settings in ([], ["--config", str(project)]):
        run([*RUFF, "check", "--no-cache", *settings, "."], tmp_path)
        run([*RUFF, "format", "--no-cache", "--check", *settings, "."], tmp_path)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("My Words", "no name for an environment: .*; 'my-words' would do"),
        ("2words", "begin with a letter, e.g. my-words$"),
        ("words-", "'words' would do"),
        ("../words", "'words' would do"),
        ("", "no name for an environment"),
        ("class", "imported as 'class', which is Python's own"),
        ("json", "'json', which is Python's own"),
        ("numpy", r"'numpy', and that module exists already \(.*numpy.*\); choose another name"),
        ("snooze-math", "'snooze_math', and that module exists already"),
        ("textarena", "'textarena', and that module exists already .*tasksets"),
        ("w" * 33, "has 33 characters, at most 32 are allowed"),
    ],
)
def test_a_name_that_cannot_be_imported_is_refused_and_nothing_is_written(tmp_path, name, message):
    with pytest.raises(ConfigError, match=message):
        scaffold(name, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_folder_that_holds_anything_is_left_alone(tmp_path, capsys):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(SystemExit, match="2"):
        main(["init", "my-words", "--path", str(tmp_path)])
    assert "is not empty (it has notes.txt); nothing was written; give --path" in capsys.readouterr().err
    with pytest.raises(ConfigError, match=r"notes.txt is a file; give --path a folder"):
        scaffold("my-words", tmp_path / "notes.txt")
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize("words", [[], ["a", "b"], ["--pth", "x"], ["a", "--path"]])
def test_words_that_say_too_little_or_too_much_are_answered_with_the_usage(words, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["init", *words])
    assert "usage: snooze init NAME [--path DIR]" in capsys.readouterr().err


def test_without_a_path_the_folder_has_the_name_and_the_next_steps_are_told(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    main(["init", "moon-words"])
    assert (tmp_path / "moon-words" / "moon_words" / "taskset.py").is_file()
    assert "pip install -e moon-words\n  snooze check moon-words" in capsys.readouterr().out
