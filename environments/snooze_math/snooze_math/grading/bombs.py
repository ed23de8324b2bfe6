"""Answers refused by their structure, before anything evaluates them."""

from __future__ import annotations

import re

MAX_LENGTH = 2000
MAX_DEPTH = 120
MAX_EXPONENT = 2000
MAX_TERMS = 10_000
MAX_DIGITS = 400
MANY = 400
"""Characters an answer may have whatever the gold's length."""

_STRANGE = re.compile(
    "[^\\t\\n\\r -~\\u00a0-\\u02af\\u0370-\\u04ff\\u2000-\\u209f\\u20a0-\\u20bf\\u2100-\\u23ff\\u25a0-\\u25ff\\u2713-\\u2718\\u27c0-\\u27ef"
    "\\u2980-\\u2aff\\ue000-\\uf8ff]"  # the last: marks that clean.py puts
)
"""Not Latin, Greek, Cyrillic, punctuation, currency or a mathematical sign: controls, emoji, other scripts."""
_RUN = re.compile(r"[0-9A-Za-z]{60,}|([-+*/^=<>(){}\[\]|&%$#_])\1{7,}")
_LITERAL = re.compile(r"\d+")
_FACTORIAL = re.compile(r"(\d+|[)}\]])\s*!(\s*\)?\s*!)?")
_POWER = re.compile(r"(?:\^|\*\*)\s*")
_SERIES = re.compile(r"\\(?:sum|prod|bigcup|bigcap|iint|iiint)(?![a-zA-Z])")


def refusal(expression: str) -> str | None:
    """Why sympy must not see this, None where it may."""
    if len(expression) > MAX_LENGTH:
        return f"{len(expression)} characters, at most {MAX_LENGTH}"
    if (depth := _depth(expression)) > MAX_DEPTH:
        return f"brackets nested {depth} deep, at most {MAX_DEPTH}"
    if any(len(digits) > MAX_DIGITS for digits in _LITERAL.findall(expression)):
        return f"a number of more than {MAX_DIGITS} digits"
    return _powers(expression) or _factorials(expression) or _series(expression)


def unlike(gold: str, answer: str) -> str | None:
    """Why no answer to this gold looks like that, None where one may: sympy needs 100 ms to find nothing in noise."""
    if len(answer) > max(MANY, 8 * len(gold)):
        return f"{len(answer)} characters for a gold of {len(gold)}"
    if (strange := _STRANGE.search(answer)) and strange[0] not in gold:
        return f"the character {strange[0]!a}, which no such answer has"
    if (run := _RUN.search(answer)) and not _RUN.search(gold):
        return f"a run of {len(run[0])} characters without a break"
    return None


def _powers(expression: str) -> str | None:
    for match in _POWER.finditer(expression):
        exponent = _operand(expression, match.end())
        numbers = [int(digits) for digits in _LITERAL.findall(exponent)]
        if _POWER.search(exponent) and numbers:
            return "a tower of powers"
        if any(number > MAX_EXPONENT for number in numbers):
            return f"an exponent over {MAX_EXPONENT}"
        if "!" in exponent:
            return "a factorial in an exponent"
        # 9^9^9 without braces is a tower as well.
        if numbers and _POWER.match(expression, match.end() + len(exponent)):
            return "a tower of powers"
    return None


def _operand(expression: str, at: int) -> str:
    opening = expression[at : at + 1]
    if opening not in ("{", "("):
        literal = re.compile(r"[-+]?\s*(?:\d+|\\?[A-Za-z]+|.)", re.S).match(expression, at)
        return literal[0] if literal else ""
    depth = 0
    for end in range(at, len(expression)):
        depth += {"{": 1, "(": 1, "}": -1, ")": -1}.get(expression[end], 0)
        if depth == 0:
            return expression[at : end + 1]
    return expression[at:]


def _factorials(expression: str) -> str | None:
    for match in _FACTORIAL.finditer(expression):
        if match[2]:
            return "a factorial of a factorial"
        if match[1].isdigit() and int(match[1]) > MAX_EXPONENT:
            return f"a factorial over {MAX_EXPONENT}!"
        if not match[1].isdigit() and any(
            int(digits) > MAX_EXPONENT for digits in _LITERAL.findall(expression)
        ):
            return "a factorial of a large expression"
    return None


def _series(expression: str) -> str | None:
    if not (found := _SERIES.findall(expression)):
        return None
    if len(found) > 2:
        return f"{len(found)} nested sums or products"
    for match in re.finditer(r"[\^_]", expression):
        bound = _operand(expression, match.end())
        if any(int(digits) > MAX_TERMS for digits in _LITERAL.findall(bound)) or _POWER.search(bound):
            return f"a sum or product of more than {MAX_TERMS} terms"
    return None


def _depth(expression: str) -> int:
    depth = deepest = 0
    for char in expression:
        depth += {"{": 1, "(": 1, "[": 1, "}": -1, ")": -1, "]": -1}.get(char, 0)
        deepest = max(deepest, depth)
    return deepest
