"""Laws of the task set: what every source yields, what it leaves out, how it refuses, how it scores."""

from __future__ import annotations

import ast
import asyncio
import gzip
import json
import math

import pytest
from pydantic import ValidationError
from snooze_code import CodeConfig, CodeTaskset, Suite
from snooze_code.asserts import call_of, calls_of_check, literal_lists, parsed, visible_calls
from snooze_code.config import DEFAULT_SNOOZE_FACTOR
from snooze_code.evalplus import _retyped, read_humaneval, read_humaneval_plus, read_mbpp, read_mbpp_plus
from snooze_code.faults import FAULTS
from snooze_code.sandbox import close_sandboxes
from snooze_code.sources import SOURCES
from snooze_kit import check, reply_trace
from snooze_kit.rows import SourceError
from verifiers.v1.errors import TaskError

from tests.environments.code_world import LOCAL, scored, tasks

FILES = {
    "humaneval": "data/code/HumanEval.jsonl.gz",
    "humaneval_plus": "data/code/HumanEvalPlus-Mini.jsonl.gz",
    "mbpp": "data/code/sanitized-mbpp.json",
    "mbpp_plus": "data/code/MbppPlus.jsonl.gz",
}


@pytest.fixture(scope="module", autouse=True)
def _sandboxes_end_with_the_module():
    yield
    close_sandboxes()


@pytest.mark.parametrize("config", [{"split": "train"}, {"split": "eval"}, {"levels": [6], "split": "train"}])
def test_the_embedded_problems_keep_the_contract(config):
    assert check(CodeTaskset(CodeConfig(**config, task=LOCAL)), limit=12) == []


@pytest.mark.parametrize("style", ["instruct", "bare"])
def test_expressions_keep_the_contract(style):
    taskset = CodeTaskset(CodeConfig(source="expressions", style=style, split="eval", task=LOCAL))
    assert check(taskset, limit=12) == []


@pytest.mark.shared
@pytest.mark.parametrize("source", sorted(FILES))
def test_every_file_source_keeps_the_contract(source, shared_file):
    config = CodeConfig(source=source, path=shared_file(FILES[source]), split="test", task=LOCAL)
    assert check(CodeTaskset(config), limit=8) == []


def test_all_tests_or_no_reward_and_the_share_is_a_metric():
    task = next(task for task in tasks() if task.data.id == "clamp")
    assert scored(task, task.gold_reply()).reward == 1.0
    part = scored(task, "```python\ndef clamp(value, low, high):\n    return min(value, high)\n```")
    assert part.reward == 0.0
    assert 0 < part.metrics["passed"] < 1
    assert scored(task, "").metrics == {"answered": 0.0, "passed": 0.0, "timeout": 0.0}
    assert "hidden tests passed" in part.info["grading"]["reason"]


def test_a_sandbox_that_cannot_be_had_makes_the_rollout_invalid_never_zero():
    nowhere = {"hosts": ["unix:///nowhere/docker.sock"]}
    task = tasks(task=nowhere, size=1)[0]
    trace = reply_trace(task, task.gold_reply())
    with pytest.raises(TaskError, match=r"GraderError: no verdict for .* no usable Docker engine"):
        asyncio.run(task.score(trace))
    assert trace.rewards == {} or trace.rewards["correct"] is None


def test_hidden_tests_are_in_the_data_and_never_in_the_prompt():
    for task in tasks() + tasks(split="eval"):
        suite = Suite.loads(task.data.tests)
        shown = (
            {repr(args) for args in visible_calls(task.data.prompt_text, task.data.entry)}
            if task.data.entry
            else set()
        )
        assert shown.isdisjoint(repr(call.args) for call in suite.calls), task.data.id
        assert task.data.answer not in task.data.prompt_text
        for given, wanted in suite.cases:
            assert (
                f"Input:\n{given.rstrip()}\nOutput:\n{wanted.rstrip()}\n" not in task.data.prompt_text + "\n"
            )


@pytest.mark.shared
@pytest.mark.parametrize("source", sorted(FILES))
def test_no_published_call_is_both_shown_and_graded(source, shared_file):
    for task in tasks(source=source, path=shared_file(FILES[source]), split="test"):
        suite = Suite.loads(task.data.tests)
        shown = {repr(args) for args in visible_calls(task.data.prompt_text, task.data.entry)}
        assert shown.isdisjoint(repr(call.args) for call in suite.calls), task.data.id
        assert suite.size


def test_curriculum_fields_reach_the_task_data():
    made = tasks(levels=[1, 6], snooze_factors={"strings": math.inf})
    assert {task.data.dataset for task in made} == {"authored"}
    by_level = {level: [t for t in made if t.data.level == level] for level in (1, 6)}
    assert by_level[1][0].data.difficulty_prior > by_level[6][0].data.difficulty_prior
    assert {t.data.snooze_factor for t in made if t.data.domain == "strings"} == {math.inf}
    assert {t.data.snooze_factor for t in made if t.data.domain != "strings"} == {DEFAULT_SNOOZE_FACTOR}
    assert all(t.data.cluster for t in made)


def test_keys_are_unique_stay_with_the_name_and_do_not_meet_across_splits():
    train, held_out = tasks(), tasks(split="eval")
    keys = [task.key for task in train + held_out]
    assert len(set(keys)) == len(keys) >= 120
    assert {task.key for task in tasks(size=20, seed=3)} <= {task.key for task in train}
    assert 0.1 < len(held_out) / len(keys) < 0.3


def test_kinds_choose_functions_or_programs():
    assert all(task.data.entry for task in tasks(kinds=["function"]))
    assert not any(task.data.entry for task in tasks(kinds=["program"]))


@pytest.mark.shared
def test_listed_faults_are_left_out_unless_asked_for(shared_file):
    for source, listed in FAULTS.items():
        config = {"source": source, "path": shared_file(FILES[source]), "split": "test"}
        every = {task.data.id for task in tasks(**config, faulty=True)}
        assert set(listed) <= every
        assert {task.data.id for task in tasks(**config)} == every - set(listed)
        assert all(len(why) > 20 for why in listed.values())


@pytest.mark.shared
def test_mbpp_plus_inputs_have_the_types_of_the_published_asserts(shared_file):
    """For every input that an assert shows as a plain call, undoing JSON gives exactly its arguments."""
    compared = 0
    with gzip.open(shared_file(FILES["mbpp_plus"]), "rt") as lines:
        for row in map(json.loads, lines):
            number, entry = int(row["task_id"].rpartition("/")[2]), row["entry_point"]
            asserts = [
                ast.unparse(node) for node in parsed(row["assertion"]).body if isinstance(node, ast.Assert)
            ]
            calls = [call_of(text, entry) for text in asserts]
            if len(asserts) != len(row["base_input"]):
                continue
            for call, args in zip(calls, row["base_input"], strict=True):
                if call is not None and number not in WRITTEN_OTHERWISE:
                    assert repr(call.args) == repr(tuple(_retyped(number, args))), row["task_id"]
                    compared += 1
    assert compared > 800


WRITTEN_OTHERWISE = frozenset({87, 252, 301})
"""Inputs that differ from the asserts beyond types: 87 was changed in place by EvalPlus' own run, 252 is complex there,
301 has text keys because JSON has no others."""


def test_set_up_code_that_needs_the_solution_comes_after_it():
    row = {
        "task_id": 927,
        "text": "Write a function to find the height of a tree.",
        "code": "class Node:\n    def __init__(self, data):\n        self.data, self.left = data, None\n"
        "def height(node):\n    return 1 + height(node.left) if node else 0",
        "test_setup_code": "root = Node(1)\nroot.left = Node(2)\nleaf = Node(3)",
        "test_list": [
            "assert (height(root)) == 2",
            "assert (height(root.left)) == 1",
            "assert (height(leaf)) == 1",
        ],
    }
    read = read_mbpp(row)
    assert (read.after, read.entry) == (row["test_setup_code"], "height")
    assert "height(root))" in read.prompt
    assert "root.left" not in read.prompt


def test_the_shown_assert_is_not_among_the_graded_ones():
    row = {"task_id": 2, "prompt": "Add.", "code": "def add(a, b):\n    return a + b", "test_imports": [],
           "test_list": ["assert add(1, 2) == 3", "assert add(2, 2) == 4", "assert not add(0, 0)"]}  # fmt: skip
    read = read_mbpp(row)
    assert "add(1, 2) == 3" in read.prompt
    assert read.suite.protocol == "tests"  # equality and truth in one suite
    assert "add(1, 2)" not in read.suite.text
    row["test_list"] = row["test_list"][:1]
    assert read_mbpp(row) is None


def test_an_example_is_shown_without_which_a_constant_does_not_pass():
    row = {"task_id": 760, "prompt": "One element?", "code": "def one(a):\n    return len(set(a)) == 1", "test_imports": [],
           "test_list": ["assert one([1, 1]) == True", "assert one([1, 2]) == False", "assert one([3, 4]) == False"]}  # fmt: skip
    read = read_mbpp(row)
    assert "one([1, 2]) == False" in read.prompt
    assert {call.expected for call in read.suite.calls} == {True, False}


def test_the_hubs_columns_of_evalplus_are_read_like_its_files():
    test = (
        "import numpy as np\ninputs = [[3], [4], [-1]]\nresults = [9, 16, 1]\n"
        "for i, (inp, exp) in enumerate(zip(inputs, results)):\n    assertion(square(*inp), exp, 0)\n"
    )
    mbpp = {"task_id": 7, "code": "def square(x):\n    return x * x", "prompt": "Square it.", "source_file": "", "test_imports": [],
            "test_list": ["assert square(3) == 9"], "test": test}  # fmt: skip
    read = read_mbpp_plus(mbpp)
    assert [call.args for call in read.suite.calls] == [(4,), (-1,)]
    assert read.id == "Mbpp/7"
    humaneval = {"task_id": "HumanEval/0", "prompt": 'def square(x):\n    """Square.\n    >>> square(4)\n    16\n    """\n',
                 "canonical_solution": "    return x * x\n", "entry_point": "square",
                 "test": "def check(candidate):\n" + "".join(f"    {line}\n" for line in test.splitlines())}  # fmt: skip
    read = read_humaneval_plus(humaneval)
    assert [(call.args, call.expected) for call in read.suite.calls] == [((3,), 9), ((-1,), 1)]
    oracle = {**humaneval, "test": "def ref_func(x): return x\ndef check(candidate):\n    inputs = [[1]]\n"}
    assert read_humaneval_plus(oracle).suite.protocol == "tests"


def test_helpers_of_a_prompt_stand_before_tests_that_use_them_so_a_solution_cannot_replace_them():
    row = {
        "task_id": "HumanEval/32", "entry_point": "root", "canonical_solution": "    return 2\n",
        "prompt": 'def poly(x):\n    return x - 2\n\n\ndef root(n):\n    """A root of poly."""\n',
        "test": "def check(candidate):\n    for n in range(3):\n        assert abs(poly(candidate(n))) < 1e-4\n",
    }  # fmt: skip
    read = read_humaneval(row)
    assert read.suite.text.startswith("def poly(x):")
    assert read.before == "def poly(x):\n    return x - 2"


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("assert f(1, [2]) == (3,)", ((1, [2]), (3,))), ("assert f({1: {2}}) is None", (({1: {2}},), None)),
        ("assert f(-1.5) == 2 * 3", ((-1.5,), 6)), ("assert f(float('inf')) == set()", ((math.inf,), set())),
        ("assert f(x) == 1", None), ("assert g(1) == 1", None), ("assert f(1) < 2", None), ("assert f(a=1) == 1", None), ("f(1) == 1", None),
        ("assert f('a' * 10**9) == 1", None), ("assert f(__import__('os')) == 1", None), ("assert f(().__class__) == 1", None),
    ],
)  # fmt: skip
def test_only_plain_calls_with_plain_values_are_read_from_asserts(text, call):
    read = call_of(text, "f")
    assert (None if read is None else (read.args, read.expected)) == call


def test_asserts_of_a_check_are_read_whole_or_not_at_all():
    whole = "def check(candidate):\n    assert True, 'x'\n    assert candidate(1) == 2\n    assert candidate(3) == 4\n"
    assert [call.args for call in calls_of_check(whole)] == [(1,), (3,)]
    assert calls_of_check(whole + "    assert abs(candidate(2)) < 1\n") is None
    assert literal_lists("a = [1]\nb = f(2)\n", "a", "b") == {"a": [1]}
    assert visible_calls("see f(1, (2)) and f(x), f(')')", "f") == [(1, 2), (")",)]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"source": "mbpp", "path": "/nowhere/m.jsonl"}, "there is no file /nowhere/m.jsonl; give `path`"),
        (
            {"source": "mbpp_plus", "path": "/nowhere/m.jsonl"},
            "mbpp_plus is an evaluation set and has no train split",
        ),
        ({"levels": [7]}, r"authored, split 'train', levels \[7\], kinds all: no problem is left"),
        ({"size": 5000}, r"authored has \d+ problems in split 'train', 5000 were asked for"),
    ],
)
def test_a_data_set_that_cannot_be_had_says_which_option_helps(config, message):
    with pytest.raises(SourceError, match=message):
        tasks(**config)


def test_a_file_of_another_format_is_refused_with_its_fields(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"q": "?"}) + "\n")
    with pytest.raises(SourceError, match=r"row 0 of deepcoder has the fields \['q'\]"):
        tasks(source="deepcoder", path=path)
    path.write_text("{not json\n")
    with pytest.raises(SourceError, match="neither JSON lines nor a JSON list"):
        tasks(source="deepcoder", path=path)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"path": "/tmp/x"}, "a `source` other than authored and expressions"),
        ({"sources": ["mbpp", "humaneval"], "path": "/tmp/x"}, "paths = {name = file} beside `sources`"),
        ({"source": "mbpq"}, "mbpp"),
        ({"snooze_factors": {"dp": -1}}, "0 or more"),
        ({"size": 0}, "greater than 0"),
        ({"sorce": "mbpp"}, "sorce"),
        ({"task": {"backend": "podman"}}, "docker"),
        ({"task": {"boxes": 0}}, "greater than or equal to 1"),
    ],
)
def test_a_config_that_means_nothing_is_refused_at_birth(config, message):
    with pytest.raises(ValidationError, match=message):
        CodeConfig(**config)


def test_a_config_with_infinite_factors_reads_back_from_the_json_a_run_saves():
    config = CodeConfig(snooze_factor=math.inf, snooze_factors={"dp": math.inf})
    assert CodeConfig.model_validate_json(config.model_dump_json()) == config


def test_every_named_source_says_where_it_comes_from_and_under_which_licence():
    for name, source in SOURCES.items():
        assert "/" in source.hub, name
        assert source.licence, name


def test_the_hub_unreachable_or_datasets_missing_is_told_with_the_way_out():
    with pytest.raises(SourceError, match=r"give a local JSON-lines file: path=/data/deepcoder.jsonl"):
        tasks(source="deepcoder")


def test_verifiers_finds_the_task_set_and_its_in_process_harness():
    from verifiers.v1.utils.loaders import default_harness_id, harness_class, taskset_class

    assert taskset_class("snooze-code") is CodeTaskset
    assert default_harness_id("snooze-code") == "snooze-code"
    assert harness_class("snooze-code").__name__ == "InprocChatHarness"
