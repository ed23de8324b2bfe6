"""The `[scheduler]` table: one union by kind, uniform where none is named."""

from typing import Self

import pytest
from pydantic import model_validator

from snoozing_env import KINDS, ConfigError, TaskInfo, build_scheduler
from snoozing_env.config import FrozenConfig, parse_config
from snoozing_env.schedulers import SchedulerConfig, UniformConfig


class Table(FrozenConfig):
    """A recipe with nothing but a scheduler."""

    scheduler: SchedulerConfig = UniformConfig()


def test_a_table_without_a_kind_is_uniform() -> None:
    table = parse_config(Table, {"scheduler": {"snooze": {"skip_passes": 2}}})
    assert table.scheduler == UniformConfig(snooze={"skip_passes": 2})


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_kind_is_in_the_union_and_survives_a_round_trip(kind: str) -> None:
    table = parse_config(Table, {"scheduler": {"kind": kind}})
    assert type(table.scheduler) is KINDS[kind]
    assert parse_config(Table, table.model_dump()) == table


@pytest.mark.parametrize(
    ("scheduler", "message"),
    [
        (
            {"snooze": {"skip_pases": 3}},
            r"unknown key 'scheduler\.snooze\.skip_pases'\. Did you mean 'skip_passes'\?",
        ),
        ({"kind": "band", "hii": 0.5}, r"unknown key 'scheduler\.hii'\. Did you mean 'hi'\?"),
        ({"kind": "bnad"}, r"'scheduler\.kind' 'bnad' is unknown\. Did you mean 'band'\?"),
        ({"kind": "band", "epsilon": 0}, r"'scheduler\.epsilon': .*greater than 0 \(got 0\)"),
        ({"kind": "staged", "inner": {"kind": "staged"}}, r"'scheduler\.inner\.kind' 'staged' is unknown\."),
        ({"kind": "staged", "inner": {"snooze": {}}}, r"unknown key 'scheduler\.inner\.snooze'"),
    ],
)
def test_mistakes_are_named_as_the_recipe_spells_them(scheduler: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_config(Table, {"scheduler": scheduler})


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"kind": "band", "lo": 0.6}, r"lo 0\.6, target 0\.5, hi 0\.8: they must be in this order"),
        ({"kind": "staged", "edges": [0.5, 0.2]}, r"edges \[0\.5, 0\.2\]: ascending pass rates"),
    ],
)
def test_values_that_contradict_each_other_are_refused(config: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        build_scheduler(config, [TaskInfo(key="a")], 0)


class Pair(FrozenConfig):
    """Two keys that do not go together."""

    low: float = 0.0
    high: float = 1.0

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.low > self.high:
            raise ValueError(f"low {self.low:g} is above high {self.high:g}")
        return self


class Nest(FrozenConfig):
    pair: Pair = Pair()


def test_keys_that_do_not_go_together_are_named_without_their_table() -> None:
    with pytest.raises(ConfigError, match=r"^config: low 2 is above high 1$"):
        parse_config(Pair, {"low": 2})
    with pytest.raises(ConfigError, match=r"^config: 'pair': low 2 is above high 1$"):
        parse_config(Nest, {"pair": {"low": 2}})
