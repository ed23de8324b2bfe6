"""The contract suite can fail: each promise, taken out of the source, breaks its law (must-show 9)."""

from pathlib import Path

import pytest

from tests.core.mutations import MUTATIONS, broken_laws


@pytest.mark.parametrize("name", MUTATIONS)
def test_the_contract_suite_notices_the_loss_of(name: str, tmp_path: Path) -> None:
    mutation = MUTATIONS[name]
    kinds = (["uniform"] if mutation.passes else []) + (["band"] if mutation.selectors else [])
    found = broken_laws(mutation, tmp_path, kinds, laws=[mutation.law], examples=15)
    assert found == {kind: [mutation.law] for kind in kinds}


def test_the_same_suite_passes_over_the_source_as_it_is(tmp_path: Path) -> None:
    laws = sorted({mutation.law for mutation in MUTATIONS.values()})
    found = broken_laws(None, tmp_path, ["uniform", "band"], laws=laws, examples=15)
    assert found == {"uniform": [], "band": []}
