"""`snooze check`: the contract every environment keeps."""

from __future__ import annotations

from collections.abc import Sequence

from snoozing_env.errors import SnoozingError


def main(arguments: Sequence[str]) -> None:
    from snoozing_env.rollout.contract import check_environment

    if not arguments or arguments[0].startswith("-"):
        raise SnoozingError(
            "usage: snooze check ENVIRONMENT [KEY=VALUE ...], e.g. snooze check snooze-math source=gsm8k path=train.jsonl"
        )
    findings = check_environment(arguments[0], arguments[1:])
    for finding in findings:
        print(finding)
    if findings:
        raise SystemExit(1)
    print(f"{arguments[0]}: the contract holds")
