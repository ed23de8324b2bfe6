"""Whose the places of the next batches are, as far ahead as groups may start (M1, M2).

    the scheduler's shares ─▶ one `Places` per step: next · next + 1 · … · next + K
    wanted  places that no group of their dataset is accepted or running for, the next step's first
    free    places that datasets lent, less the groups that are beyond their own dataset's places
    take    each dataset's own places with its oldest groups, then the free ones with the oldest of all

The bound keeps its argument, dataset by dataset: a group of weights v may start only while the steps up to v + K have
a place for it, each step takes the oldest of its dataset, and before a step the places of later ones must suffice for
what still runs.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from snoozing_env.places import Places
from snoozing_env.types import Group


class Quotas:
    """The places of the next steps' batches; `accepted` and `held` are counts by dataset, the latter with what runs."""

    def __init__(
        self,
        ask: Callable[[int, Mapping[str, int] | None], Places],
        settle: Callable[[Places, Sequence[Group]], None],
    ) -> None:
        """`ask`: the places of one more batch of B, in the order of steps, or those with the given shares. `settle` is
        told what became of them."""
        self._ask, self._settle = ask, settle
        self._places: deque[Places] = deque()

    def next(self, batch: int) -> Places:
        """The places of the next step."""
        return self._ahead(1, batch)[0]

    def dataset_of(self, task: int, batch: int) -> str:
        return self.next(batch).dataset_of(task)

    def _ahead(self, steps: int, batch: int) -> list[Places]:
        while len(self._places) < steps:
            self._places.append(self._ask(batch, None))
        return list(islice(self._places, steps))

    def resize(self, batch: int) -> None:
        """Batches of another size from the next step on, in the same proportions."""
        self._places = deque(places.resized(batch) for places in self._places)

    # -- starting ---------------------------------------------------------------------------------------

    def wanted(
        self, held: Mapping[str, int], *, steps: int, batch: int, limit: int | None = None
    ) -> dict[str, int]:
        """Groups to start by dataset for its own places, at most `limit`; the nearest steps' come first."""
        left, wanted = Counter(held), Counter[str]()
        rest = steps * batch if limit is None else limit
        for places in self._ahead(steps, batch):
            for name, share in places.open.items():
                covered = min(left[name], share)
                lacking = min(share - covered, rest)
                left[name] -= covered
                wanted[name] += lacking
                rest -= lacking
        return {name: n for name, n in wanted.items() if n}

    def free(self, held: Mapping[str, int], *, steps: int, batch: int) -> int:
        """Places that a group of any dataset may start for."""
        ahead = self._ahead(steps, batch)
        own = Counter[str]()
        for places in ahead:
            own.update(places.open)
        beyond = sum(max(n - own[name], 0) for name, n in held.items())
        return max(sum(places.free for places in ahead) - beyond, 0)

    def short(self, accepted: Mapping[str, int], batch: int) -> dict[str, int]:
        """Open places of the next step that no finished group fills, by dataset."""
        open_ = self.next(batch).open
        return {n: share - accepted.get(n, 0) for n, share in open_.items() if accepted.get(n, 0) < share}

    def later(self, name: str, horizon: int, batch: int) -> list[int]:
        """[horizon + 1] places of a dataset in the first 0, 1, … steps after the next."""
        sums = [0]
        for places in islice(self._ahead(horizon + 1, batch), 1, None):
            sums.append(sums[-1] + places.open.get(name, 0))
        return sums

    # -- training ---------------------------------------------------------------------------------------

    def filled(self, accepted: Mapping[str, int], batch: int) -> bool:
        """Whether every place of the next step has its group."""
        places = self.next(batch)
        beyond = sum(max(n - places.open.get(name, 0), 0) for name, n in accepted.items())
        return not self.short(accepted, batch) and beyond >= places.free

    def take(self, groups: Sequence[Group], batch: int) -> list[Group]:
        """The next step's batch from finished groups, oldest first; the scheduler owes what places stay empty."""
        self._ahead(1, batch)
        places = self._places.popleft()
        taken = places.choose(groups)
        self._settle(places, taken)
        for later in (
            self._places
        ):  # asked for when nobody knew; one group of a batch is to find out when it gives again
            later.lend(places.barren, filled=dict.fromkeys(places.barren, 1))
        return taken

    # -- state ------------------------------------------------------------------------------------------

    def state(self) -> list[dict[str, Any]]:
        """Shares of the steps that were asked for and not trained, the next one first; JSON-able."""
        return [{"batch": places.batch, "shares": dict(places.shares)} for places in self._places]

    def restore(self, state: Iterable[Mapping[str, Any]]) -> None:
        """Go on with the shares of a saved run, which its scheduler counts as asked for."""
        self._places = deque(self._ask(int(s["batch"]), s["shares"]) for s in state)
