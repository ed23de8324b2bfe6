"""Replies no policy should be able to hurt a grader with, and what grading them costs (E3).

The clock is the grader's own: CPU seconds of this process plus the seconds the grading pool's workers spent, so that a busy
machine or another test's process is not laid at its door.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import verifiers.v1 as vf

from snooze_kit.pool import pool_seconds
from snooze_kit.traces import reply_trace
from snooze_kit.verdict import GraderError

MEGABYTE_EVERY = 200
"""One reply in this many has a megabyte or two."""
_PIECES = (
    "\\boxed{", "}", "\\frac{", "{", "(", "[", "<answer>", "</answer>", "<think>", "</think>", "```python\n", "```", "$", "$$",
    "\\(", "\\left(", "**", "| a | b |\n", "<div>", "</div>", "<!--", "&amp;", '{"answer": ', '"', "####", "Answer: ", "= ", "+", "-",
    "^", "_", "\\sqrt", "\\text{", "\n", "\t", " ", "0", "7", "1,", "e9", "½", "x", "not ", "I cannot ", "Sure, ", "def f():\n", "%",
)  # fmt: skip
_NUMBERS = ("9" * 5000, "1e999999", "9**9**9", "9^{9^{9^9}}", "-inf", "nan", "0x" + "f" * 900, "1/0", "1_000", "٣", "Ⅷ", "𝟙", "1" + ",000" * 400)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class FuzzReport:
    """What became of the replies."""

    replies: int
    crashes: tuple[str, ...]
    """What a grader raised, with the kind and number of the reply; the first hundred."""
    wrong_rewards: tuple[str, ...]
    """Rewards that are no number in [0, maximum]."""
    unknown: int
    """Replies the grader gave no verdict on (`GraderError`): invalid rollouts, no crash."""
    p99_ms: float
    """99th percentile of the grader's own time, ms."""
    slowest_ms: float
    slowest: str
    """Kind and number of the slowest reply."""


def fuzzed_replies(count: int, *, seed: int = 0, golds: Sequence[str] = ()) -> Iterator[tuple[str, str]]:
    """(kind, reply) pairs: bytes, unicode, surrogates, null bytes, brackets, markup, numbers, megabytes, broken golds.

    The same seed gives the same replies in every process.
    """
    kinds = tuple(_KINDS)
    for number in range(count):
        rng = random.Random(f"{seed}/{number}")
        kind = "megabytes" if number % MEGABYTE_EVERY == MEGABYTE_EVERY - 1 else kinds[number % len(kinds)]
        gold = golds[rng.randrange(len(golds))] if golds else "42"
        make = _megabytes if kind == "megabytes" else _KINDS[kind]
        yield kind, make(rng, gold)


async def grade_fuzzed(
    tasks: Sequence[vf.Task], count: int = 10_000, *, seed: int = 0, maximum: float = 1.0
) -> FuzzReport:
    """Grade `count` fuzzed replies, the tasks taking turns, one at a time (so that each is timed alone).

    The first reply of every task is graded once before the clock starts: a worker's first import is no reply's cost.
    """
    golds = [gold for task in tasks if (gold := _gold(task))]
    await _score(tasks[0], golds[0] if golds else "42")
    crashes: list[str] = []
    wrong: list[str] = []
    seconds: list[tuple[float, str]] = []
    unknown = 0
    for number, (kind, reply) in enumerate(fuzzed_replies(count, seed=seed, golds=golds)):
        task, name = tasks[number % len(tasks)], f"{kind} {number}"
        began = _own_seconds()
        # The one boundary of the check: whatever a grader raises is a finding.
        try:
            reward = await _score(task, reply)
        except Exception as error:  # noqa: BLE001
            if _is_unknown(error):
                unknown += 1
            else:
                crashes.append(f"{name}: {type(error).__name__}: {error}"[:300])
        else:
            if not 0.0 <= reward <= maximum:
                wrong.append(f"{name}: reward {reward}")
        seconds.append((_own_seconds() - began, name))
    seconds.sort()
    slowest_s, slowest = seconds[-1]
    return FuzzReport(
        replies=count, crashes=tuple(crashes[:100]), wrong_rewards=tuple(wrong[:100]), unknown=unknown,
        p99_ms=seconds[min(len(seconds) - 1, len(seconds) * 99 // 100)][0] * 1000,
        slowest_ms=slowest_s * 1000, slowest=slowest,
    )  # fmt: skip


def fuzz_now(tasks: Sequence[vf.Task], count: int = 10_000, *, seed: int = 0) -> FuzzReport:
    """`grade_fuzzed` for callers without an event loop."""
    return asyncio.run(grade_fuzzed(tasks, count, seed=seed))


async def _score(task: vf.Task, reply: str) -> float:
    trace = reply_trace(task, reply)
    await task.score(trace)
    return trace.reward


def _gold(task: vf.Task) -> str | None:
    gold_reply = getattr(task, "gold_reply", None)
    return gold_reply() if gold_reply is not None else None


def _own_seconds() -> float:
    return time.process_time() + pool_seconds()


def _is_unknown(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, GraderError):
            return True
        error = error.__cause__ or error.__context__
    return False


def _bytes(rng: random.Random, gold: str) -> str:
    raw = rng.randbytes(rng.randrange(1, 400))
    return raw.decode("latin-1") if rng.random() < 0.5 else raw.decode("utf-8", "replace")


def _unicode(rng: random.Random, gold: str) -> str:
    blocks = ((0x20, 0x7F), (0x300, 0x36F), (0x590, 0x6FF), (0x2000, 0x206F), (0x2190, 0x22FF), (0x4E00, 0x9FFF), (0xFE00, 0xFEFF), (0x1D400, 0x1D7FF), (0x1F300, 0x1FAFF))  # fmt: skip
    text = "".join(chr(rng.randint(*rng.choice(blocks))) for _ in range(rng.randrange(1, 300)))
    return text if rng.random() < 0.5 else f"{text}{gold}{text[::-1]}"


def _surrogates(rng: random.Random, gold: str) -> str:
    return _spread(rng, gold, [chr(rng.randint(0xD800, 0xDFFF)) for _ in range(rng.randrange(1, 40))])


def _nulls(rng: random.Random, gold: str) -> str:
    return _spread(rng, gold, ["\0"] * rng.randrange(1, 60))


def _brackets(rng: random.Random, gold: str) -> str:
    opening, closing = rng.choice(
        (
            ("(", ")"),
            ("{", "}"),
            ("[", "]"),
            ("\\boxed{", "}"),
            ("\\frac{", "}"),
            ("<b>", "</b>"),
            ("<answer>", "</answer>"),
            ('{"a":', "}"),
            ("\\left(", "\\right)"),
            ("\\sqrt{", "}"),
        )
    )
    depth = rng.choice((10, 100, 1000, 5000))
    return opening * depth + gold + closing * rng.choice((depth, depth - 1, 0))


def _markup(rng: random.Random, gold: str) -> str:
    pieces = [rng.choice(_PIECES) for _ in range(rng.randrange(1, 150))]
    pieces[rng.randrange(len(pieces))] += gold
    return "".join(pieces)


def _numbers(rng: random.Random, gold: str) -> str:
    return f"{gold if rng.random() < 0.3 else ''}{rng.choice(('', 'The answer is ', chr(92) + 'boxed{'))}{rng.choice(_NUMBERS)}{rng.choice(('', '}', ' '))}"


def _spaces(rng: random.Random, gold: str) -> str:
    return "".join(
        rng.choice((" ", "\n", "\t", "\r", "\u00a0", "\u200b", "\u2028")) for _ in range(rng.randrange(2000))
    )


def _broken_gold(rng: random.Random, gold: str) -> str:
    letters = list(gold) or ["?"]
    for _ in range(rng.randrange(1, 6)):
        place, act = rng.randrange(len(letters)), rng.randrange(4)
        if act == 0:
            letters[place] = chr(rng.randint(32, 126))
        elif act == 1:
            letters.insert(place, rng.choice(_PIECES))
        elif act == 2 and len(letters) > 1:
            del letters[place]
        else:
            letters += letters[place:]
    return "".join(letters)


def _spam(rng: random.Random, gold: str) -> str:
    return rng.choice((gold, rng.choice(_PIECES), f"{rng.choice(_PIECES)}{gold}")) * rng.choice(
        (20, 300, 2000)
    )


def _megabytes(rng: random.Random, gold: str) -> str:
    piece = rng.choice(
        (
            gold or "x",
            rng.choice(_PIECES),
            "a",
            " ",
            "\0",
            "( ",
            "9",
            "lorem ipsum dolor ",
            "\\boxed{7} ",
            "\n",
        )
    )
    size = rng.choice((1 << 20, 1 << 21))
    return rng.choice(("", gold, "The answer is ")) + piece * (size // len(piece)) + rng.choice(("", gold))


def _spread(rng: random.Random, gold: str, extra: Sequence[str]) -> str:
    letters = list(f"The answer is {gold}.")
    for piece in extra:
        letters.insert(rng.randrange(len(letters) + 1), piece)
    return "".join(letters)


_KINDS: dict[str, Callable[[random.Random, str], str]] = {
    "bytes": _bytes, "unicode": _unicode, "surrogates": _surrogates, "nulls": _nulls, "brackets": _brackets, "markup": _markup,
    "numbers": _numbers, "spaces": _spaces, "broken gold": _broken_gold, "spam": _spam,
}  # fmt: skip
