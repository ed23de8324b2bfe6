"""Random histories of whatever has a law suite, the same ones every time."""

from __future__ import annotations

from typing import Any, Protocol

from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

STEPS = 40


class Examined(Protocol):
    """What is tried, and how often."""

    @property
    def examples(self) -> int: ...


def run_histories(machine: type[RuleBasedStateMachine], subject: Examined) -> None:
    """Try `subject.examples` histories of a machine whose `subject` it becomes; raises what the smallest failing one
    raised."""
    made: Any = type(machine.__name__, (machine,), {"subject": subject})
    run_state_machine_as_test(
        made,
        settings=settings(
            max_examples=subject.examples,
            stateful_step_count=STEPS,
            deadline=None,
            database=None,
            derandomize=True,
            report_multiple_bugs=False,
        ),
    )
