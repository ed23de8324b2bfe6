"""HumanEval and MBPP, and their EvalPlus versions, as the hub has them and as EvalPlus' own files have them.

The prompt shows some calls; those are never graded. EvalPlus' files hold inputs only: what is expected is then what
the reference returns. Its inputs went through JSON, which has no tuples; `_TUPLES` says where they were.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from snooze_code.asserts import call_of, calls_of_check, literal_lists, parsed, visible_calls
from snooze_code.rows import Row, function_prompt
from snooze_code.suite import Call, Suite

_ABS_TOL, _REL_TOL = 1e-6, 1e-7
"""EvalPlus' own, for floats."""


def read_humaneval(row: Mapping[str, Any]) -> Row | None:
    """openai/openai_humaneval: task_id, prompt, canonical_solution, entry_point, test."""
    prompt, entry = row["prompt"], row["entry_point"]
    calls = calls_of_check(row["test"])
    before = before_entry(prompt, entry)
    suite = _published_suite(calls, visible_calls(prompt, entry))
    if suite is None:
        # The helpers stand before the tests too: a solution that redefines them must not change the tests.
        suite = Suite(protocol="tests", text=f"{before}\n\n{row['test']}")
    return _completion(row, suite, before)


def read_humaneval_plus(row: Mapping[str, Any]) -> Row | None:
    """evalplus/humanevalplus (`test` with inputs and results), or EvalPlus' file (base_input, plus_input)."""
    prompt, entry = row["prompt"], row["entry_point"]
    before = before_entry(prompt, entry)
    if "base_input" in row:
        calls = [
            Call(args=tuple(args), known=False) for args in [*row["base_input"], *_plus(row["plus_input"])]
        ]
        suite = _evalplus_suite(calls, visible_calls(prompt, entry), entry, row["atol"])
    else:
        suite = _suite_of_test(row["test"], visible_calls(prompt, entry), entry, before)
    return _completion(row, suite, before)


def read_mbpp_plus(row: Mapping[str, Any]) -> Row | None:
    """evalplus/mbppplus (code, test_list, test), or EvalPlus' file (canonical_solution, base_input, assertion)."""
    if "base_input" not in row:
        number, code, asserts = row["task_id"], row["code"], row["test_list"]
        entry = _entry_of(asserts, code)
        example = asserts[_to_show(asserts, entry)]
        shown = call_of(example, entry)
        suite = _suite_of_test(row["test"], [shown.args] if shown else [], entry, "")
        return _mbpp_row(f"Mbpp/{number}", row["prompt"], code, entry, example, suite)
    number, entry = int(row["task_id"].rpartition("/")[2]), row["entry_point"]
    statement, asserts = _split_prompt(row["prompt"])[0], _asserts(row["assertion"])
    published = {repr(c.args): c for line in asserts if (c := call_of(line, entry)) is not None}
    place = _to_show(asserts, entry)
    base = [tuple(_retyped(number, args)) for args in row["base_input"]]
    plus = [tuple(_retyped(number, args)) for args in _plus(row["plus_input"])]
    calls = [published.get(repr(args), Call(args=args, known=False)) for args in base]
    calls += [Call(args=args, known=False) for args in plus]
    shown = call_of(asserts[place], entry)
    # An assert that is no plain call ("set(f(x)) == ...") shows its input all the same.
    visible = [*base[place : place + 1], *([shown.args] if shown else [])]
    suite = _evalplus_suite(calls, visible, entry, row["atol"])
    return _mbpp_row(row["task_id"], statement, row["canonical_solution"], entry, asserts[place], suite)


def read_mbpp(row: Mapping[str, Any]) -> Row | None:
    """google-research-datasets/mbpp, full or sanitized: one assert is shown, the others are graded."""
    asserts, code = row["test_list"], row["code"]
    entry = _entry_of(asserts, code)
    imports = "\n".join(row.get("test_imports") or [])
    setup = str(row.get("test_setup_code") or "").strip()
    example = asserts[_to_show(asserts, entry)]
    hidden = [text for text in asserts if text.strip() != example.strip()]
    read = [call_of(text, entry) for text in hidden]
    calls = [call for call in read if call is not None]
    suite = _published_suite(calls, []) if len(calls) == len(hidden) and not setup else None
    if suite is None:
        suite = Suite(protocol="tests", text="\n".join([imports, *hidden]).strip() if hidden else "")
    statement = row.get("prompt") or row["text"]
    return _mbpp_row(f"Mbpp/{row['task_id']}", statement, code, entry, example, suite, after=setup)


def _to_show(asserts: Sequence[str], entry: str) -> int:
    """Place of the first assert without which the others still want different values, else of the first of all.

    The only list with one distinct element in Mbpp/760 is in its first assert: a constant passes all the others.
    """
    calls = [call_of(text, entry) for text in asserts]
    for place in range(len(calls)):
        others = [repr(call.expected) for call in calls[:place] + calls[place + 1 :] if call is not None]
        if len(set(others)) > 1:
            return place
    return 0


def mbpp_split(row: Mapping[str, Any]) -> str:
    """The publisher's split by task id."""
    number = int(row["task_id"])
    return (
        "prompt" if number <= 10 else "test" if number <= 510 else "validation" if number <= 600 else "train"
    )


def before_entry(prompt: str, entry: str) -> str:
    """What stands before the function to complete: imports and helpers."""
    for node in parsed(prompt).body:
        if isinstance(node, ast.FunctionDef) and node.name == entry:
            return "\n".join(prompt.split("\n")[: node.lineno - 1]).strip()
    return ""


def _completion(row: Mapping[str, Any], suite: Suite, before: str) -> Row | None:
    if not suite.size:
        return None
    prompt = row["prompt"].strip("\n")
    return Row(
        id=row["task_id"],
        prompt=f"Complete this function:\n```python\n{prompt}\n```",
        suite=suite,
        entry=row["entry_point"],
        before=before,
        reference=row["prompt"].rstrip() + "\n" + row["canonical_solution"].strip("\n"),
        domain="function",
    )


def _mbpp_row(
    name: str, statement: str, code: str, entry: str, example: str, suite: Suite, after: str = ""
) -> Row | None:
    if not suite.size:
        return None
    shown = example.strip().removeprefix("assert").strip()
    return Row(
        id=name,
        prompt=function_prompt(statement.strip(), signature_of(code, entry), shown),
        suite=suite,
        entry=entry,
        after=after,
        reference=code.strip("\n"),
        domain="function",
    )


def signature_of(code: str, entry: str) -> str:
    """`entry(a, b)` as the reference defines it."""
    for node in ast.walk(parsed(code)):
        if isinstance(node, ast.FunctionDef) and node.name == entry:
            return f"{entry}({ast.unparse(node.args)})"
    return entry


def _evalplus_suite(
    calls: Sequence[Call], visible: Iterable[tuple[Any, ...]], entry: str, atol: float
) -> Suite:
    return Suite(
        protocol="calls",
        calls=_hidden(calls, visible),
        abs_tol=float(atol) or _ABS_TOL,
        rel_tol=_REL_TOL,
        view="set" if entry in _AS_SET else "truth" if entry in _AS_TRUTH else "value",
    )


def _published_suite(calls: Sequence[Call] | None, visible: Iterable[tuple[Any, ...]]) -> Suite | None:
    """Asserts as calls; None where they say different kinds of things about a result."""
    if not calls or len({call.truth for call in calls}) > 1:
        return None
    return Suite(
        protocol="calls",
        calls=_hidden(calls, visible),
        abs_tol=_ABS_TOL,
        rel_tol=_REL_TOL,
        view="truth" if calls[0].truth else "value",
    )


def _suite_of_test(test: str, visible: Iterable[tuple[Any, ...]], entry: str, before: str) -> Suite:
    """The hub's `test` text: calls where inputs and results are literals, else tests in the judge's process."""
    lists = literal_lists(test, "inputs", "results")
    if len(lists) < 2 or len(lists["inputs"]) != len(lists["results"]):
        return Suite(protocol="tests", text=f"{before}\n\n{test}")
    calls = [Call(args=tuple(a), expected=r) for a, r in zip(lists["inputs"], lists["results"], strict=True)]
    tolerance = next((float(x) for x in ("0.0001", "1e-06") if f", {x})" in test), 0.0)
    return _evalplus_suite(calls, visible, entry, tolerance)


def _hidden(calls: Sequence[Call], visible: Iterable[tuple[Any, ...]]) -> tuple[Call, ...]:
    """The calls whose arguments the prompt does not show, each once."""
    seen = {repr(args) for args in visible}
    kept = []
    for call in calls:
        if repr(call.args) not in seen:
            seen.add(repr(call.args))
            kept.append(call)
    return tuple(kept)


def _plus(value: Any) -> list[Any]:
    """EvalPlus writes {} where it has no more inputs."""
    value = json.loads(value) if isinstance(value, str) else value
    return list(value) if value else []


def _split_prompt(prompt: str) -> tuple[str, str]:
    """MBPP+'s docstring: the statement, and the assert that ends it."""
    text = prompt.strip().strip('"').strip()
    at = text.find("\nassert ")
    return (text[:at], text[at + 1 :]) if at >= 0 else (text, "")


def _asserts(text: str) -> list[str]:
    return [ast.unparse(node) for node in parsed(text).body if isinstance(node, ast.Assert)]


def _entry_of(asserts: Sequence[str], code: str) -> str:
    """The function of the solution that the first assert calls."""
    defined = {node.name for node in ast.walk(parsed(code)) if isinstance(node, ast.FunctionDef)}
    for node in ast.walk(parsed(asserts[0])):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in defined:
            return node.func.id
    raise KeyError(f"no function of the solution is called by {asserts[0][:80]!r}")


def _retyped(number: int, args: Sequence[Any]) -> list[Any]:
    """The inputs of an MBPP+ task with the types they had before they became JSON."""
    for change, numbers in _TUPLES:
        if number in numbers:
            return change(list(args))
    return list(args)


def _deep(value: Any) -> Any:
    return tuple(map(_deep, value)) if isinstance(value, list) else value


def _items(value: Sequence[Any]) -> list[Any]:
    return [tuple(item) if isinstance(item, list) else item for item in value]


def _sets(value: Sequence[Any]) -> list[Any]:
    return [set(item) if isinstance(item, list) and item else {} for item in value]


_TUPLES: Sequence[tuple[Callable[[list[Any]], list[Any]], frozenset[int]]] = (
    (lambda a: [tuple(x) for x in a],
     frozenset({2, 116, 132, 143, 222, 261, 273, 394, 399, 421, 424, 429, 470, 560, 579, 596, 616, 630, 726, 740, 744, 809})),
    (lambda a: [_items(x) for x in a],
     frozenset({63, 64, 70, 94, 120, 237, 272, 299, 400, 409, 417, 438, 473, 614, 780})),
    (lambda a: [_items(a[0]), *a[1:]], frozenset({75, 140, 413, 444, 753})),
    (lambda a: [a[0], tuple(a[1])], frozenset({106, 750})),
    (lambda a: [_sets(a[0])], frozenset({115})),
    (lambda a: [float(a[0]), complex(a[1])], frozenset({124})),
    (lambda a: [tuple(a[0]), *a[1:]], frozenset({104, 145, 250, 307, 405, 446, 617, 720, 763, 808})),
    (lambda a: [tuple(_items(x)) for x in a], frozenset({259, 401, 445})),
    (lambda a: [tuple(_items(a[0]))], frozenset({278})),
    (lambda a: [{key: tuple(x) for key, x in a[0].items()}, *a[1:]], frozenset({722})),
    (lambda a: [complex(a[0])], frozenset({252})),
    (lambda a: [_deep(x) for x in a], frozenset({580, 615, 791})),
)  # fmt: skip
"""How to undo JSON, by MBPP task; facts of EvalPlus' loader, checked against the published asserts by a test."""

_AS_SET = frozenset({
    "similar_elements", "find_char_long", "common_in_nested_lists", "extract_singly", "larg_nnum",
    "intersection_array", "find_dissimilar", "Diff",
})  # fmt: skip
"""MBPP+ functions whose order of results is free, as in EvalPlus."""
_AS_TRUTH = frozenset({"check_str", "text_match_three", "text_starta_endb"})
"""MBPP+ functions whose reference returns a match object where the asserts only want something true."""
