"""Verdicts cannot be forged, and the forgeries are real: they do pass graders that trust the solution's process."""

from __future__ import annotations

import pytest
from snoozing_sandboxes import open_pool

from tests.sandboxes.forging import FORGERIES, NAIVE, RIGHT, SAFE, WRONG, forged
from tests.sandboxes.running import run

pytestmark = pytest.mark.docker


def test_no_forgery_passes_a_safe_protocol():
    async def tried():
        async with open_pool(boxes=2) as pool:
            return await forged(pool, SAFE)

    assert len(FORGERIES) == 8
    assert run(tried()) == {"stdio": [], "calls": [], "tests": []}


def test_every_naive_protocol_is_forged_so_the_forgeries_can_pass_something():
    async def tried():
        async with open_pool(boxes=2) as pool:
            return await forged(pool, NAIVE)

    passed = run(tried())
    assert all(passed.values()), passed
    assert len(passed["exit code"]) >= 4


@pytest.mark.parametrize(("name", "protocol"), [*SAFE.items(), *NAIVE.items()])
def test_each_protocol_passes_the_right_solution_and_fails_an_honest_wrong_one(name, protocol):
    async def tried():
        async with open_pool(boxes=1, spares=0) as pool:
            return await protocol(pool, RIGHT), await protocol(pool, WRONG)

    assert run(tried()) == (True, False), name
