"""Laws of the repair task set that need no sandbox: projects, operators, the bank, prompts, options."""

from __future__ import annotations

import ast
import json
import random
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import snooze_repair.bank as bank_module
from pydantic import ValidationError
from snooze_kit import check
from snooze_repair import RepairConfig, RepairTask, RepairTaskset
from snooze_repair.authored import HELD_OUT, projects
from snooze_repair.bank import BankError, bank
from snooze_repair.checks import CheckError, parse_checks, read_failure
from snooze_repair.edits import EditError, Source, applied
from snooze_repair.operators import HARDNESS, OPERATORS, edits
from snooze_repair.prompt import task_prompt
from snooze_repair.scripted import repair


def tasks(**config: object) -> list[RepairTask]:
    return list(RepairTaskset(RepairConfig(**config)))


class TestProjects:
    def test_there_are_forty_or_more_of_one_to_four_files(self) -> None:
        assert len(projects()) >= 40
        for project in projects().values():
            assert 1 <= len(project.files) <= 4, project.name
            assert 30 <= project.lines <= 190, (project.name, project.lines)
            assert len(project.checks.blocks) >= 10, project.name

    def test_every_held_out_name_is_a_project_and_the_rest_is_four_fifths(self) -> None:
        assert set(HELD_OUT) <= set(projects())
        assert 0.1 < len(HELD_OUT) / len(projects()) < 0.25

    def test_the_hidden_tests_are_python_and_no_module_shadows_the_standard_library(self) -> None:
        for project in projects().values():
            ast.parse(project.checks.tests())
            modules = {path.removesuffix(".py") for path in project.files}
            assert modules.isdisjoint(sys.stdlib_module_names), project.name

    def test_checks_that_cannot_be_read_say_which_line(self) -> None:
        head = "About.\n\nimport m\n\n# words\n"
        with pytest.raises(CheckError, match=r"'m\.f' is to give '', which is neither a literal"):
            parse_checks(head + ">>> m.f\n")
        with pytest.raises(CheckError, match=r"'x = = 1' is no line of Python"):
            parse_checks(head + "x = = 1\n")
        with pytest.raises(CheckError, match="checks need a sentence"):
            parse_checks("import m\n")

    def test_a_failure_is_read_back_as_block_and_step(self) -> None:
        seen = read_failure("test_7", "AssertionError: 2|gives 'a|b'")
        assert seen is not None
        assert (seen.block, seen.step, seen.what) == (7, 2, "gives 'a|b'")
        assert read_failure("load", "ImportError: no module") is None

    def test_what_was_seen_names_no_address_of_memory(self) -> None:
        seen = read_failure("test_0", "AssertionError: 0|gives <generator f at 0x7f3b72be4820>")
        assert seen is not None
        assert seen.what == "gives <generator f>"
        assert not any(" at 0x" in bug.shown.what for bug in bank().values())


class TestOperators:
    TEXT = "def f(a, b):\n    if a < b:\n        return b\n    total = 0\n    for i in range(a):\n        total += i\n    return max(total, b)\n"

    def test_each_finds_its_places(self) -> None:
        made = {(edit.kind, edit.old.strip(), edit.new.strip()) for edit in edits("m.py", self.TEXT)}
        assert ("boundary", "<", "<=") in made
        assert ("operator", "+=", "-=") in made
        assert ("lost update", "+=", "=") in made
        assert ("wrong function", "max", "min") in made
        assert ("swapped arguments", "total, b", "b, total") in made
        assert ("removed branch", "if a < b:\n        return b", "") in made
        assert ("early return", "", "return max(total, b)") in made
        assert ("off by one", "a", "a + 1") in made
        assert ("wrong variable", "a", "b") in made

    def test_every_edit_changes_the_program_and_its_inverse_changes_it_back(self) -> None:
        for project in random.Random(0).sample(list(projects().values()), 3):
            for path, text in project.files.items():
                for edit in edits(path, text):
                    broken = edit.apply(text)
                    assert ast.dump(ast.parse(broken)) != ast.dump(ast.parse(text)), edit
                    assert edit.inverse().apply(broken) == text

    def test_every_kind_has_a_hardness_and_all_of_them_occur_in_the_projects(self) -> None:
        sources = [Source(*item) for project in projects().values() for item in project.files.items()]
        found = {edit.kind for source in sources for operator in OPERATORS for edit in operator(source)}
        assert found == set(HARDNESS)

    def test_an_edit_refuses_a_file_that_it_was_not_made_for(self) -> None:
        [edit, *_] = edits("m.py", self.TEXT)
        with pytest.raises(EditError, match=r"m\.py has .* this edit replaces"):
            edit.apply("# other\n" + self.TEXT)
        with pytest.raises(EditError, match="outside ASCII"):
            edits("m.py", "x = '\u00e9'\n")


class TestBank:
    def test_every_bug_applies_breaks_two_promises_and_leaves_some(self) -> None:
        assert len(bank()) >= 500
        for bug in bank().values():
            home = bug.home()
            assert bug.files() != home.files
            assert bug.edit.kind in HARDNESS
            assert 2 <= len(bug.fails) < len(home.checks.blocks), bug.id
            assert bug.shown.block in bug.fails

    def test_no_two_bugs_are_the_same_program(self) -> None:
        programs = Counter(json.dumps([bug.project, bug.files()]) for bug in bank().values())
        assert programs.most_common(1)[0][1] == 1

    def test_no_two_bugs_read_the_same(self) -> None:
        prompts = Counter(task_prompt(bug, 30) for bug in bank().values())
        assert prompts.most_common(1)[0][1] == 1

    def test_levels_and_kinds_are_spread(self) -> None:
        levels = Counter(bug.level for bug in bank().values())
        assert set(levels) == {1, 2, 3, 4, 5}
        assert min(levels.values()) >= 20, levels
        assert len({bug.edit.kind for bug in bank().values()}) >= 12

    def test_every_project_gave_bugs(self) -> None:
        assert {bug.project for bug in bank().values()} == set(projects())

    def test_the_scripted_repair_gives_back_the_working_program(self) -> None:
        for bug in bank().values():
            call = repair(bug).arguments
            broken = bug.files()[call["path"]]
            assert broken.count(call["old_str"]) == 1, bug.id
            repaired = broken.replace(call["old_str"], call["new_str"])
            assert repaired == bug.home().files[call["path"]], bug.id

    def test_a_bank_of_other_projects_is_refused(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        head, *lines = bank_module.BANK.read_text().splitlines()
        changed = json.loads(head)
        changed["projects"]["lru_cache"] = "0" * 16
        (tmp_path / "bank.jsonl").write_text("\n".join([json.dumps(changed), *lines]))
        monkeypatch.setattr(bank_module, "BANK", tmp_path / "bank.jsonl")
        with pytest.raises(BankError, match=r"another text of lru_cache; verify it again"):
            bank.__wrapped__()


class TestTasks:
    def test_both_splits_keep_the_contract(self) -> None:
        for split in ("train", "eval"):
            assert check(RepairTaskset(RepairConfig(split=split, size=30)), limit=30) == []

    def test_splits_share_no_project(self) -> None:
        train, held_out = ({task.data.cluster for task in tasks(split=split)} for split in ("train", "eval"))
        assert held_out == set(HELD_OUT)
        assert train == set(projects()) - set(HELD_OUT)

    def test_the_prompt_tells_a_symptom_and_not_the_bug(self) -> None:
        for task in [*tasks(), *tasks(split="eval")]:
            prompt, bug = task.data.prompt, task.bug
            assert bug.home().checks.blocks[bug.shown.block].words in prompt
            assert bug.shown.what in prompt
            assert bug.edit.kind not in prompt
            assert repair(bug).arguments["new_str"].strip() not in prompt
            hidden = [b.words for n, b in enumerate(bug.home().checks.blocks) if n != bug.shown.block]
            assert not any(words in prompt for words in hidden)

    def test_neither_tests_nor_repair_are_in_the_task_data(self) -> None:
        task = tasks(size=1)[0]
        wire = task.data.model_dump_json()
        assert "def test_" not in wire
        assert json.dumps(repair(task.bug).arguments["new_str"])[1:-1] not in wire

    def test_harder_levels_have_lower_priors_and_longer_durations(self) -> None:
        by_level = {task.data.level: task.data for task in tasks(turn_s=2.0)}
        ordered = [by_level[level] for level in sorted(by_level)]
        assert [d.difficulty_prior for d in ordered] == sorted(
            (d.difficulty_prior for d in ordered), reverse=True
        )
        assert [d.duration_s for d in ordered] == sorted(d.duration_s for d in ordered)
        assert ordered[0].duration_s == 12.0
        assert {d.snooze_factor for d in ordered} == {8.0}

    def test_a_sample_is_drawn_by_its_seed_and_keys_do_not_move(self) -> None:
        one, same, other = (tasks(size=20, seed=seed) for seed in (1, 1, 2))
        assert [t.key for t in one] == [t.key for t in same]
        assert [t.key for t in one] != [t.key for t in other]
        assert {t.key for t in one} <= {t.key for t in tasks()}

    @pytest.mark.parametrize(
        ("config", "message"),
        [
            ({"levels": [0, 6]}, r"levels go from 1 to 5, got \[0, 6\]"),
            ({"snooze_factor": -1}, "0 or more"),
            ({"task": {"turns": 5}}, "greater than or equal to 20"),
            ({"task": {"turns": 51}}, "less than or equal to 50"),
            ({"task": {"sandbox": {"backend": "none"}}}, "docker"),
            ({"splt": "eval"}, "splt"),
        ],
    )
    def test_a_config_that_means_nothing_is_refused_at_birth(self, config: dict, message: str) -> None:
        with pytest.raises(ValidationError, match=message):
            RepairConfig(**config)

    def test_asking_for_more_than_there_is_says_how_many_there_are(self) -> None:
        with pytest.raises(
            ValueError, match=r"100000 tasks were asked for, the eval split has \d+ at levels"
        ):
            tasks(split="eval", size=100_000)

    def test_an_infinite_factor_reads_back_from_the_json_a_run_saves(self) -> None:
        config = RepairConfig(snooze_factor=float("inf"))
        assert RepairConfig.model_validate_json(config.model_dump_json()) == config


def test_an_edit_is_frozen_data() -> None:
    bug = next(iter(bank().values()))
    assert replace(bug.edit) == bug.edit
    assert applied(bug.files(), bug.edit.inverse()) == bug.home().files
