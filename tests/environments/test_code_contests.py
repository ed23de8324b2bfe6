"""Contest formats: which tests are read from a row, and how."""

from __future__ import annotations

import base64
import json
import pickle
import zlib

import pytest
from snooze_code.contests import read_deepcoder, read_livecodebench
from snooze_code.sandbox import close_sandboxes

from tests.environments.code_world import scored, tasks


@pytest.fixture(scope="module", autouse=True)
def _sandboxes_end_with_the_module():
    yield
    close_sandboxes()


@pytest.mark.parametrize(
    "tests",
    [
        {"inputs": ["1\n", "2\n"], "outputs": ["2\n", "4\n"]},
        [{"type": "stdin_stdout", "input": "1\n", "output": "2\n"}, {"type": "stdin_stdout", "input": "2\n", "output": "4\n"}],
        [{"input": "1\n", "output": "2\n", "testtype": "stdin"}, {"input": "2\n", "output": "4\n", "testtype": "stdin"}],
        [{"input": "1\n", "output": "2\n"}, {"input": "2\n", "output": "4\n"}],
    ],
)  # fmt: skip
def test_every_form_of_deepcoder_stdin_tests_is_read(tests):
    row = {
        "problem": "Double the number.",
        "tests": json.dumps(tests),
        "solutions": ["```python\nprint(int(input()) * 2)\n```"],
    }
    read = read_deepcoder(row)
    assert read.suite.cases == (("1\n", "2\n"), ("2\n", "4\n"))
    assert read.reference == "print(int(input()) * 2)"


@pytest.mark.parametrize(
    ("tests", "starter", "entry"),
    [
        ({"fn_name": "double", "inputs": [[3], [4]], "outputs": [[6], [8]]}, "", "double"),
        ([{"type": "function_call", "fn_name": "double", "input": [3], "output": 6}, {"type": "function_call", "fn_name": "double", "input": [4], "output": 8}], "", "double"),
        ([{"testtype": "functional", "input": "3", "output": "6"}, {"testtype": "functional", "input": "4", "output": "8"}], "class Solution:\n    def double(self, x: int) -> int:", "Solution.double"),
    ],
)  # fmt: skip
def test_every_form_of_deepcoder_function_tests_is_read(tests, starter, entry):
    read = read_deepcoder(
        {"problem": "Double.", "tests": tests, "starter_code": starter, "metadata": {"func_name": "double"}}
    )
    assert read.entry == entry
    assert [(call.args, call.expected) for call in read.suite.calls] == [((3,), 6), ((4,), 8)]


def test_livecodebench_grades_private_tests_only_and_unpacks_nothing_but_data():
    private = json.dumps(
        [
            {"input": "1", "output": "2", "testtype": "stdin"},
            {"input": "5", "output": "10", "testtype": "stdin"},
        ]
    )
    packed = base64.b64encode(zlib.compress(pickle.dumps(private))).decode()
    row = {"question_id": "abc_a", "question_content": "Double it.\nSample Input\n1\nSample Output\n2", "starter_code": "",
           "public_test_cases": "[]", "private_test_cases": packed, "metadata": "{}"}  # fmt: skip
    read = read_livecodebench(row)
    assert read.suite.cases == (("5", "10"),)  # the sample is shown
    assert read.id == "abc_a"

    class Evil:
        def __reduce__(self):
            return print, ("run",)

    row["private_test_cases"] = base64.b64encode(zlib.compress(pickle.dumps(Evil()))).decode()
    with pytest.raises(pickle.UnpicklingError, match=r"wants builtins\.print; only plain data"):
        read_livecodebench(row)


def test_contest_files_load_grade_and_are_cut_by_content(tmp_path):
    rows = [
        {"problem": f"Add {n} to the number.", "tests": json.dumps([{"input": "1\n", "output": f"{n + 1}\n"}]),
         "solutions": [f"print(int(input()) + {n})"]}
        for n in range(30)
    ]  # fmt: skip
    path = tmp_path / "deepcoder.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in [*rows, rows[0]]))
    train, held_out = (tasks(source="deepcoder", path=path, split=split) for split in ("train", "eval"))
    assert len(train) + len(held_out) == 30
    assert {task.key for task in train}.isdisjoint(task.key for task in held_out)
    assert scored(held_out[0], held_out[0].gold_reply()).reward == 1.0
    assert scored(held_out[0], "```python\nprint(0)\n```").reward == 0.0
