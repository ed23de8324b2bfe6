"""The contract of an environment, as findings anyone can read (design: Environments; E3, E4, D6)."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import verifiers.v1 as vf

from snooze_kit.data import SnoozeTask
from snooze_kit.fingerprint import HASH_SEEDS, fingerprint, fingerprint_elsewhere, load
from snooze_kit.fuzz import FuzzReport, grade_fuzzed
from snooze_kit.traces import reply_trace

CONSTANT_REPLIES = (
    "I don't know.",
    "I'm sorry, but I can't help with that.",
    "Sure, here you go.",
    "0",
    "1",
    "Yes",
    "\\boxed{0}",
    "\\boxed{1}",
    "The answer is not in the text.",
)
"""Policies that ignore the prompt: refuse, comply, abstain, always answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One broken promise."""

    rule: str
    """Short name of the law: keys-unique, gold-scores-1, ..."""
    text: str
    """What was seen, what was wanted."""
    key: str = ""
    """The task it was seen on, "" where it concerns the whole set."""


FUZZED = 100
"""Fuzzed replies of an ordinary check; the benchmark grades 10,000."""
ENOUGH = 1000
"""Replies from which a 99th percentile means something."""
SLOW_MS = 50.0
"""What the 99th percentile of fuzzed replies may cost the grader."""


def check(
    taskset: vf.Taskset,
    *,
    limit: int = 200,
    constants: Sequence[str] = CONSTANT_REPLIES,
    fuzzed: int = FUZZED,
) -> list[Finding]:
    """Findings over the first `limit` tasks, [] where the environment keeps its contract. Not from a running loop.

    `constants` are replied to every task, beside the task's own `lazy_replies`; `fuzzed` broken replies are graded, 0 = none.
    """
    return asyncio.run(check_async(taskset, limit=limit, constants=constants, fuzzed=fuzzed))


async def check_async(
    taskset: vf.Taskset,
    *,
    limit: int = 200,
    constants: Sequence[str] = CONSTANT_REPLIES,
    fuzzed: int = FUZZED,
) -> list[Finding]:
    """`check` for callers that have an event loop."""
    tasks = list(itertools.islice(taskset, limit))
    if not tasks:
        return [Finding(rule="not-empty", text="the task set yields no task")]
    findings = [*_keys(tasks), *itertools.chain.from_iterable(_round_trip(task) for task in tasks)]
    for task in tasks:
        findings += await _golds(task)
    policies = {f"replying {reply!r} to everything": [reply] * len(tasks) for reply in constants}
    for policy, replies in {**policies, **_lazy(tasks)}.items():
        findings += await _constant(tasks, policy, replies)
    if fuzzed:
        findings += fuzz_findings(await grade_fuzzed(tasks, fuzzed))
    return findings


def fuzz_findings(report: FuzzReport) -> list[Finding]:
    """Crashes, impossible rewards and slowness as findings."""
    findings = [
        Finding(rule="fuzz-no-crash", text=f"a fuzzed reply crashed the grader: {crash}")
        for crash in report.crashes[:5]
    ]
    findings += [
        Finding(rule="fuzz-reward-range", text=f"a fuzzed reply earned what no reply may: {wrong}")
        for wrong in report.wrong_rewards[:5]
    ]
    if report.replies >= ENOUGH and report.p99_ms > SLOW_MS:
        text = f"the 99th percentile of {report.replies} fuzzed replies took {report.p99_ms:.0f} ms, wanted at most {SLOW_MS:g}; slowest: {report.slowest}"
        findings.append(Finding(rule="fuzz-fast", text=text))
    return findings


def check_processes(options: Mapping[str, Any], *, limit: int = 200) -> list[Finding]:
    """Whether fresh interpreters with other hash seeds load the same tasks from `{"id": environment, **task-set options}`."""
    seen = {seed: fingerprint_elsewhere(options, limit, hash_seed=seed) for seed in HASH_SEEDS}
    seen["this process"] = fingerprint(load(options), limit)
    if len(set(seen.values())) == 1:
        return []
    text = f"keys or data differ between processes (PYTHONHASHSEED: fingerprint): { {k: v[:8] for k, v in seen.items()} }"
    return [Finding(rule="same-in-every-process", text=text)]


def _keys(tasks: Sequence[vf.Task]) -> list[Finding]:
    findings = [
        Finding(rule="keys-unique", key=key, text=f"{count} tasks share this key; keys must tell tasks apart")
        for key, count in Counter(task.key for task in tasks).items()
        if count > 1
    ]
    moved = [task for task in tasks if task.with_data(idx=(task.data.idx or 0) + 1_000_003).key != task.key]
    findings += [
        Finding(
            rule="keys-stable", key=task.key, text="the key changes with the index; make it from the content"
        )
        for task in moved
    ]
    return findings


def _round_trip(task: vf.Task) -> list[Finding]:
    sent = task.data.model_dump(mode="json", exclude_none=True)
    arrived = vf.WireTaskData.model_validate(json.loads(json.dumps(sent, allow_nan=False)))
    received = arrived.model_dump(mode="json", exclude_none=True)
    lost = [name for name, value in sent.items() if received.get(name) != value]
    if type(task.data).model_validate(sent) != task.data:
        lost.append("(the typed data reads back different)")
    text = f"these fields do not survive JSON: {', '.join(lost)}"
    return [Finding(rule="json-round-trip", key=task.key, text=text)] if lost else []


async def _golds(task: vf.Task) -> list[Finding]:
    findings = []
    gold = task.gold_reply() if isinstance(task, SnoozeTask) else None
    if gold is not None and (reward := await _reward(task, gold)) != 1.0:
        text = f"the task's own gold reply {gold[:80]!r} earns {reward:g}, wanted 1"
        findings.append(Finding(rule="gold-scores-1", key=task.key, text=text))
    if (reward := await _reward(task, "")) > 0.5:
        text = f"an empty reply earns {reward:g}, wanted at most 0.5"
        findings.append(Finding(rule="empty-at-most-half", key=task.key, text=text))
    return findings


def _lazy(tasks: Sequence[vf.Task]) -> dict[str, list[str]]:
    """Each lazy policy with its reply to every task; the empty reply where a task gives it none."""
    replies = [task.lazy_replies() if isinstance(task, SnoozeTask) else {} for task in tasks]
    names = dict.fromkeys(name for each in replies for name in each)
    return {f"the policy {name!r}": [each.get(name, "") for each in replies] for name in names}


async def _constant(tasks: Sequence[vf.Task], policy: str, replies: Sequence[str]) -> list[Finding]:
    mean = sum([await _reward(task, reply) for task, reply in zip(tasks, replies, strict=True)]) / len(tasks)
    if mean <= 0.5:
        return []
    text = f"{policy} earns {mean:.2f} on average, wanted at most 0.5"
    return [Finding(rule="constant-at-most-half", text=text)]


async def _reward(task: vf.Task, reply: str) -> float:
    trace = reply_trace(task, reply)
    await task.score(trace)
    return trace.reward
