"""The laws of `buffers/base.py`, one function each."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable

import numpy as np

from snoozing_env.buffers.store import dump_groups, parse_groups
from snoozing_env.testing.stocks import BufferSubject, Stock
from snoozing_env.types import Group, GroupOutcome, Trajectory

BufferLaw = Callable[[BufferSubject], None]


def finished(id: int, *, version: int = 0, key: str | None = None) -> Group:
    """A group of three rollouts, one of which succeeded; its numbers tell it from every other."""
    rng = np.random.default_rng([17, id])
    trajectories = tuple(_rollout(id, place, rng, version=version) for place in range(3))
    outcome = GroupOutcome(
        task=id, rewards_G=np.array([0.0, 1.0, 0.0]), version=version, last_version=version, tokens=6
    )
    return Group(
        id=id,
        key=key or f"task-{id}",
        outcome=outcome,
        trajectories=trajectories,
        prompt=f"What is {id}?",
        gold=str(id),
    )


def _rollout(id: int, place: int, rng: np.random.Generator, *, version: int) -> Trajectory:
    return Trajectory(
        prompt_ids=(1, id),
        completion_ids=(id, 10_000 + place),
        logprobs=tuple(np.log(rng.random(2)).tolist()),
        mask=(1, 1),
        reward=float(place == 1),
        version=version,
        last_version=version,
        text=f"answer {place} to {id}",
    )


def substance(group: Group) -> tuple[object, ...]:
    """What the trainer would see of a group, to the last bit; marks of the buffer left out."""
    return (group.key, *(_content(t) for t in group.trajectories))


def _content(t: Trajectory) -> tuple[object, ...]:
    return (t.prompt_ids, t.completion_ids, t.logprobs, t.mask, t.reward, t.valid, t.version, t.text)


def belongs_to(taken: Group, put: Iterable[Group]) -> bool:
    """Whether a group that was handed out is one that was put in, or one rollout of it."""
    rollouts = [_content(t) for t in taken.trajectories]
    return any(
        group.key == taken.key
        and all(r in [_content(t) for t in group.trajectories] for r in rollouts)
        and len(rollouts) in (1, len(group.trajectories))
        for group in put
    )


def reborn(subject: BufferSubject, stock: Stock, *, seed: int) -> Stock:
    """What a killed run finds: a new buffer with another seed, restored from files."""
    index_of = {group.key: group.outcome.task for group in stock.groups}
    groups = parse_groups(dump_groups(stock.groups), index_of)
    twin = subject.build(seed)
    twin.restore(json.loads(json.dumps(stock.state(), allow_nan=False)), groups)
    return twin


def filled(subject: BufferSubject, n: int, *, version: int = 0, seed: int = 0) -> Stock:
    stock = subject.build(seed)
    for id in range(n):
        stock.put(finished(id, version=version))
    return stock


def check_buffer(subject: BufferSubject) -> None:
    """Every law in turn."""
    for law in BUFFER_LAWS.values():
        law(subject)


def any_buffer_history(subject: BufferSubject) -> None:
    """Random puts, takes, verdicts, weight updates and restarts: the bounds hold, nothing is invented or given twice,
    and a restart goes on bit for bit."""
    from snoozing_env.testing.buffer_machine import run_buffer_machine

    run_buffer_machine(subject)


def never_more_than_its_capacity(subject: BufferSubject) -> None:
    """The buffer is full after `capacity` puts and stays so; of one task it keeps its quota, the newest."""
    stock = subject.build(0)
    for id in range(3 * subject.capacity):
        stock.put(finished(id, key=f"task-{id // subject.per_task}"))
        least = min(id + 1, subject.capacity - subject.per_task + 1)
        assert least <= len(stock) <= subject.capacity, (
            f"after {id + 1} puts it holds {len(stock)} of {subject.capacity}"
        )
        assert len(stock.groups) == len(stock)
    if subject.per_task > 1:
        one = subject.build(0)
        for id in range(subject.per_task + 2):
            one.put(finished(id, key="task"))
        kept = {group.trajectories[0].completion_ids[0] for group in one.groups}
        assert kept == set(range(2, subject.per_task + 2)), f"of one task it keeps {sorted(kept)}"


def nothing_past_its_age(subject: BufferSubject) -> None:
    """A group is handed out at the bound exactly and not one weight update later; without a bound it always is."""
    bound = 50 if subject.bound is None else subject.bound
    assert len(filled(subject, 1).take(1, version=bound)) == 1, f"nothing was left at a lag of {bound}"
    late = filled(subject, 1)
    wanted = int(subject.bound is None)
    assert len(late.take(1, version=bound + 1)) == wanted, f"a lag of {bound + 1} was handed out"
    assert len(late) == wanted, "what is too old stayed"
    assert filled(subject, 2).expire(version=bound + 1) == 2 * (1 - wanted)


def what_goes_in_comes_out(subject: BufferSubject) -> None:
    """Tokens, log-probs, masks, rewards and versions come back to the last bit; full requests are met."""
    n = subject.tasks
    stock = filled(subject, n)
    taken = stock.take(n, version=0)
    assert len(taken) == n, f"{n} groups were in it, {len(taken)} came out"
    for group in taken:
        assert belongs_to(group, map(finished, range(n))), f"nobody put {substance(group)} in"


def each_once_in_a_step(subject: BufferSubject) -> None:
    """One step never gets a group twice, and a group that may not be given again is gone."""
    stock = filled(subject, subject.tasks)
    first = [substance(g) for g in stock.take(2 * subject.capacity, version=0)]
    assert len(set(first)) == len(first), "a step got a group twice"
    again = [substance(g) for g in stock.take(2 * subject.capacity, version=0)]
    if subject.gives_again:
        assert sorted(map(str, again)) == sorted(map(str, first)), "what may be given again was not"
    else:
        assert not again, f"{len(again)} groups were given to two steps"


def what_a_step_has_is_left_out(subject: BufferSubject) -> None:
    """Ids that the batch holds already are not added to it, where the same group may be given again."""
    if not subject.gives_again or subject.verifies:
        return
    n = subject.tasks
    without = set(range(0, n, 2))
    taken = {g.id for g in filled(subject, n).take(n, version=0, without=without)}
    assert taken == set(range(n)) - without, f"asked for all but {sorted(without)}, got {sorted(taken)}"


def a_restored_buffer_goes_on_alike(subject: BufferSubject) -> None:
    """Groups, turns, uses and chance are in the files: a twin hands out the same for many steps."""
    original = filled(subject, subject.tasks)
    original.take(2, version=0)  # turns and chance have moved on
    twin = reborn(subject, original, seed=99)
    assert list(map(substance, twin.groups)) == list(map(substance, original.groups))
    for step in range(6):
        mine, theirs = ([substance(g) for g in stock.take(2, version=0)] for stock in (original, twin))
        assert mine == theirs, f"take {step + 1} after a restart differs"
        original.put(finished(100 + step))
        twin.put(finished(100 + step))
    assert twin.state() == original.state()


def seeds_decide_what_is_drawn(subject: BufferSubject) -> None:
    """The same seed hands out the same; where chance decides, a neighbouring one does not."""
    takes: list[list[tuple[object, ...]]] = []
    for seed in (0, 0, 1):
        stock = filled(subject, subject.tasks, seed=seed)
        takes.append([substance(g) for _ in range(6) for g in stock.take(2, version=0)])
    assert takes[0] == takes[1], "one seed, two different draws"
    if subject.draws:
        assert takes[0] != takes[2], "two seeds, one draw"


def everyone_has_a_turn(subject: BufferSubject) -> None:
    """Nothing that is held starves while it is young enough."""
    stock = filled(subject, subject.tasks)
    seen = {g.key for _ in range(40) for g in stock.take(1, version=0)}
    assert len(seen) == subject.tasks, f"{subject.tasks} tasks were held, 40 steps saw only {sorted(seen)}"


def what_the_grader_rejects_is_dropped(subject: BufferSubject) -> None:
    """A poisoned entry is never handed out, is gone at once and stays gone after a restart; one that the grader cannot
    judge waits; every hand-out is verified anew."""
    if not subject.verifies:
        return
    stock = filled(subject, 2)
    assert stock.take(9, version=0, verify=lambda group: None) == [], "handed out without a verdict"
    assert len(stock) == 2, "an entry without a verdict was dropped"
    good = stock.take(9, version=0, verify=lambda group: group.key != "task-0")
    assert [g.key for g in good] == ["task-1"], f"task-0 was rejected, {[g.key for g in good]} came out"
    assert [g.key for g in stock.groups] == ["task-1"], "a rejected entry stayed"
    twin = reborn(subject, stock, seed=1)
    assert [g.key for g in twin.take(9, version=0)] == ["task-1"]
    assert twin.take(9, version=0, verify=lambda group: False) == [], "an earlier verdict was trusted"
    assert len(twin) == 0


def only_successes_are_kept(subject: BufferSubject) -> None:
    """Of a group, a buffer of verified successes keeps the valid ones that reached the reward, no two alike, newest
    behaviour first."""
    if not subject.verifies:
        return
    stock = filled(subject, 1)
    assert [t.reward for g in stock.groups for t in g.trajectories] == [1.0]
    stock.put(finished(0, version=2))
    assert len(stock) == 1, "the same completion is held twice"
    assert [g.outcome.version for g in stock.groups] == [2], "the older of two equal ones was kept"


BUFFER_LAWS: dict[str, BufferLaw] = {
    law.__name__: law
    for law in (
        any_buffer_history,
        never_more_than_its_capacity,
        nothing_past_its_age,
        what_goes_in_comes_out,
        each_once_in_a_step,
        what_a_step_has_is_left_out,
        a_restored_buffer_goes_on_alike,
        seeds_decide_what_is_drawn,
        everyone_has_a_turn,
        what_the_grader_rejects_is_dropped,
        only_successes_are_kept,
    )
}
