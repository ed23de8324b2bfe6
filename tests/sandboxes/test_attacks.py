"""Every attack is contained, and leaves the very box it ran in as if it had never run."""

from __future__ import annotations

import asyncio

import pytest
from snoozing_sandboxes import Pool, open_pool

from tests.sandboxes.attacks import RESOURCES, Attack
from tests.sandboxes.attacks_escape import ESCAPES
from tests.sandboxes.attacks_verdict import VERDICTS

pytestmark = pytest.mark.docker
ATTACKS = (*RESOURCES, *ESCAPES, *VERDICTS)
HEALTH = """
import json, os, random, time
alive = sorted(int(p) for p in os.listdir('/proc') if p.isdigit())
print(len(alive), [os.listdir(d) for d in ('/box', '/tmp', '/dev/shm')], os.environ.get('X'), json.loads('[1]'))
"""
HEALTHY = "3 [[], [], []] None [1]"
"""The supervisor, its fork server and the program itself; nothing in the folders; nothing patched."""


def test_there_are_at_least_54_attacks_with_names_of_their_own():
    assert len({attack.name for attack in ATTACKS}) == len(ATTACKS) >= 54


@pytest.fixture(scope="module")
def loop():
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="module")
def pool(loop: asyncio.Runner):
    """One box and no spare, so that an attack meets the box its predecessors attacked."""
    pool = open_pool(backend="docker", boxes=1, spares=0)
    loop.run(pool.__aenter__())
    yield pool
    loop.run(pool.close())


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_the_attack_is_contained_and_the_box_is_as_good_as_new(
    attack: Attack, pool: Pool, loop: asyncio.Runner
):
    replaced = pool.statistics.replaced

    async def run():
        if attack.before:
            await pool.run(attack.before)
        if attack.tests:
            result = await pool.grade(attack.code, attack.tests, "tests", **attack.options)
        else:
            result = await pool.run(attack.code, **attack.options)
        return result, await pool.run(HEALTH)

    result, health = loop.run(run())

    assert attack.contained(result), result
    assert health.stdout.strip() == HEALTHY, health
    assert pool.statistics.replaced == replaced
