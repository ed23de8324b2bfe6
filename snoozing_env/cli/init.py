"""`snooze init`: a small working environment package to start from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from snoozing_env.errors import SnoozingError

USAGE = "usage: snooze init NAME [--path DIR], e.g. snooze init my-words; DIR is ./NAME unless given"


def main(arguments: Sequence[str]) -> None:
    from snoozing_env.scaffold import scaffold

    words, folder = list(arguments), None
    if "--path" in words:
        at = words.index("--path")
        if at + 1 == len(words):
            raise SnoozingError(f"--path needs a folder; {USAGE}")
        folder = Path(words[at + 1]).expanduser()
        del words[at : at + 2]
    if words and words[0] in ("-h", "--help"):
        print(USAGE)
        return
    if len(words) != 1 or words[0].startswith("-"):
        raise SnoozingError(USAGE)
    (name,) = words
    folder = folder or Path(name)
    for path in scaffold(name, folder):
        print(f"wrote {path}")
    print(
        f"\nnext:\n  pip install -e {folder}\n  snooze check {name}\n  snooze train @ {folder / 'train.toml'}"
        f"\nthen put your own problems and grader in their place ({folder / 'README.md'})"
    )
