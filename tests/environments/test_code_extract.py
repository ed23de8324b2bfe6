"""Laws of finding the program in a reply."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from snooze_code.extract import defines, extract, parses

F = "def f(x):\n    return x + 1"
G = "def g(x):\n    return 0"


def fenced(code: str, tag: str = "python") -> str:
    return f"```{tag}\n{code}\n```"


@pytest.mark.parametrize("tag", ["python", "Python", "py", "python3", ""])
def test_a_fenced_block_is_the_program_whatever_python_is_called(tag):
    assert extract(f"Here it is.\n\n{fenced(F, tag)}\nIt adds one.", "f") == F


@pytest.mark.parametrize(
    ("reply", "program"),
    [
        (f"First try:\n{fenced(G)}\nBetter:\n{fenced(F)}", F),
        (f"{fenced(F)}\nOutput:\n{fenced('2', 'text')}", F),
        (f"{fenced(F)}\nRun it:\n{fenced('pip install x', 'bash')}", F),
        (f"{fenced(F)}\nExample:\n{fenced('print(f(1))')}", F),
        (f"{fenced(F)}\nwhich prints\n{fenced('>>> f(1)', '')}", F),
        (f"Thoughts.\n```python\n{F}", F),
        (f"~~~python\n{F}\n~~~", F),
        (f"````python\n{F}\n````", F),
        (f"1. Step:\n\n   ```python\n   {F.replace(chr(10), chr(10) + '   ')}\n   ```", F),
        (fenced(F).replace("\n", "\r\n"), F),
        (f"<think>\n{fenced(G)}\n</think>\n{fenced(F)}", F),
        (f"some thought</think>{chr(10)}{fenced(F)}", F),
        (f'```python\ndoc = """\n```python\n"""\n{F}\n```', f'doc = """\n```python\n"""\n{F}'),
    ],
)
def test_the_last_python_block_that_defines_the_function_counts(reply, program):
    assert extract(reply, "f") == program


@pytest.mark.parametrize(
    ("reply", "program"),
    [
        (F, F),
        (f"    {F.replace(chr(10), chr(10) + '    ')}", F),
        (f"Sure, here you go:\n\n{F}", F),
        (f"{F}\n\nThis adds one to x.", F),
        (f"The solution:\nimport math\n\n{F}\n\nDone, I hope.", f"import math\n\n{F}"),
    ],
)
def test_without_a_fence_the_reply_or_the_longest_program_in_it_counts(reply, program):
    assert extract(reply, "f") == program


def test_for_a_program_the_last_block_counts_and_what_runs_only_as_a_script_stays_in_it():
    main = 'def main():\n    print(1)\n\nif __name__ == "__main__":\n    main()'
    assert extract(f"{fenced('x = 1')}\n{fenced(main)}") == main


@pytest.mark.parametrize(
    "reply", ["", "  \n", "I don't know.", f"<think>\n{fenced(F)}", fenced("a b", "text"), "<think></think>"]
)
def test_a_reply_without_a_program_has_none(reply):
    assert extract(reply, "f") == ""


def test_a_block_that_does_not_parse_is_still_the_answer_and_fails_on_its_own():
    broken = "def f(x)\n    return 1"
    assert extract(fenced(broken), "f") == broken
    assert not parses(broken)


@pytest.mark.parametrize(
    ("code", "entry", "found"),
    [
        (F, "f", True), (F, "g", False), ("f = lambda x: x", "f", True), ("class Solution:\n    pass", "Solution.run", True),
        ("def outer():\n    def f(x):\n        pass", "f", False), ("async def f(x):\n    pass", "f", True), ("def f(", "f", False),
    ],
)  # fmt: skip
def test_only_a_name_bound_at_the_top_level_is_defined(code, entry, found):
    assert defines(code, entry) is found


@settings(max_examples=40, deadline=None)
@given(st.text(max_size=200), st.text(max_size=80))
def test_no_reply_raises_and_a_fenced_program_is_found_after_any_prose(prose, tail):
    extract(prose, "f")
    plain = prose.replace("`", "").replace("~", "").replace("<", "").replace("\r", "")
    assert (
        extract(f"{plain}\n{fenced(F)}\n{tail.replace('`', '').replace('~', '').replace('<', '')}", "f") == F
    )
