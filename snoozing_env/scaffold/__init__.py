"""A small working environment under a name of your own (E6).

`template/` is itself an installable package with tests: what `scaffold` writes is a copy of it under another name, so the
linter and the tests of this project look at the very files that users get.
"""

from __future__ import annotations

import keyword
import re
import sys
from importlib.util import find_spec
from pathlib import Path

from snoozing_env.errors import ConfigError

TEMPLATE = Path(__file__).parent / "template"
STAND_IN = "letters-template"
"""What the template calls itself, in three spellings."""
LONGEST = 32
"""Characters of a name: its class names must fit on one formatted line."""
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_TEXTS = (".py", ".md", ".toml")


def scaffold(name: str, folder: Path) -> list[Path]:
    """Write an environment package called `name` into `folder` and return its files, sorted.

    Raises:
        ConfigError: the name cannot be a package's, belongs to another module, or the folder is a file or not empty.
    """
    check_name(name, folder)
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"{folder} is a file; give --path a folder that is empty or does not exist")
    if folder.is_dir() and (found := sorted(path.name for path in folder.iterdir())):
        raise ConfigError(
            f"{folder} is not empty (it has {', '.join(found[:3])}{', ...' if len(found) > 3 else ''}); nothing was "
            "written; give --path a folder that is empty or does not exist"
        )
    written: list[Path] = []
    for source in sorted(TEMPLATE.rglob("*")):
        if source.suffix not in _TEXTS:
            continue
        target = folder / renamed(str(source.relative_to(TEMPLATE)), name)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(renamed(source.read_text(encoding="utf-8"), name), encoding="utf-8")
        written.append(target)
    return sorted(written)


def renamed(text: str, name: str) -> str:
    """A text of the template with every spelling of its name replaced."""
    for spell in (str, module_name, class_prefix):
        text = text.replace(spell(STAND_IN), spell(name))
    return text


def module_name(name: str) -> str:
    """my-words → my_words"""
    return name.replace("-", "_")


def class_prefix(name: str) -> str:
    """my-words → MyWords"""
    return "".join(part.capitalize() for part in name.split("-"))


def check_name(name: str, folder: Path) -> None:
    """Raises `ConfigError` unless `name` can be installed and imported beside everything that already is."""
    if not _NAME.fullmatch(name):
        better = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
        hint = f"; {better!r} would do" if _NAME.fullmatch(better) else ""
        raise ConfigError(
            f"{name!r} is no name for an environment: use small letters, digits and single hyphens, and begin with a "
            f"letter, e.g. my-words{hint}"
        )
    if len(name) > LONGEST:
        raise ConfigError(f"the name {name!r} has {len(name)} characters, at most {LONGEST} are allowed")
    module = module_name(name)
    if keyword.iskeyword(module) or module in sys.stdlib_module_names or module == "tests":
        raise ConfigError(
            f"{name!r} would be imported as {module!r}, which is Python's own; choose another name"
        )
    if (owner := _owner(module)) is not None and folder.resolve() not in owner.resolve().parents:
        raise ConfigError(
            f"{name!r} would be imported as {module!r}, and that module exists already ({owner}); choose another name"
        )


def _owner(module: str) -> Path | None:
    """Where a module of this name already is: installed, or among the task sets that verifiers looks through first."""
    spec = find_spec(module)
    if spec is not None and spec.origin is not None:  # a folder without __init__.py is nobody's
        return Path(spec.origin)
    verifiers = find_spec("verifiers")
    if verifiers is None or verifiers.origin is None:
        return None
    tasksets = Path(verifiers.origin).parent / "v1" / "tasksets"
    return next((path for path in (tasksets / module, tasksets / f"{module}.py") if path.exists()), None)
