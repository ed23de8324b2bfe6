"""What the command line says of an engine, and the image that needs no registry."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from snoozing_sandboxes import ImageMissing, SandboxError, open_pool
from snoozing_sandboxes.check import self_check
from snoozing_sandboxes.cli import main
from snoozing_sandboxes.image import dockerfile, ensure_image
from snoozing_sandboxes.rootfs import build_archive, recipe_digest
from snoozing_sandboxes.runner import MODULES

from tests.sandboxes.running import run


@pytest.mark.docker
def test_check_prints_every_promise_and_exits_0_where_all_hold(capsys):
    assert main(["check"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) >= 18
    assert all(line.startswith("holds") for line in lines[:-1])
    assert "promises hold" in lines[-1]


def test_check_names_the_leaks_of_the_local_backend_and_exits_1(capsys):
    assert main(["check", "--backend", "local"]) == 1
    printed = capsys.readouterr().out
    assert "LEAKS  init and parent cannot be read or signalled" in printed


def test_check_without_an_engine_says_what_to_do_and_exits_2(capsys, tmp_path):
    assert main(["check", "--host", f"unix://{tmp_path}/none"]) == 2
    assert "Install Docker and start it, or use backend='local' (unsafe)" in capsys.readouterr().err


def test_a_sandbox_in_which_the_probes_do_not_finish_is_no_sandbox():
    async def silent(program: str) -> str:
        return "nothing of use"

    with pytest.raises(SandboxError, match="did not finish"):
        run(self_check(silent))


@pytest.mark.docker
def test_reap_says_how_many_were_left(capsys):
    assert main(["reap"]) == 0
    assert capsys.readouterr().out.startswith("removed ")


def test_two_builds_of_the_image_have_the_same_id(tmp_path: Path):
    one = build_archive("snoozing-sandbox:twice", [], tmp_path / "one.tar")
    os.utime(tmp_path)
    other = build_archive("snoozing-sandbox:twice", [], tmp_path / "other.tar")

    assert one == other
    assert (tmp_path / "one.tar").read_bytes() == (tmp_path / "other.tar").read_bytes()


def test_the_recipe_is_named_by_what_goes_in():
    assert recipe_digest([]) == recipe_digest([])
    assert recipe_digest([]) != recipe_digest(["numpy"])
    with pytest.raises(ImageMissing, match="'no-such-package' is not installed"):
        recipe_digest(["no_such_package"])
    with pytest.raises(ValueError, match="packages go into the packed image only"):
        ensure_image(None, "python:3.12-slim", ["numpy"])  # type: ignore[arg-type]


def test_the_recipe_for_registries_starts_from_any_python_image():
    assert dockerfile("python:3.13-slim", ["pytest", "numpy"]).splitlines()[:2] == [
        "FROM python:3.13-slim",
        "RUN pip install --no-cache-dir numpy pytest",
    ]


@pytest.mark.docker
def test_packages_travel_in_the_image_and_can_be_preloaded():
    async def with_numpy():
        async with open_pool(boxes=1, spares=0, packages=["numpy"], preload=["numpy"]) as pool:
            return await pool.run(
                "import sys; print('numpy' in sys.modules); import numpy; print(numpy.arange(3).sum())"
            )

    assert run(with_numpy()).stdout == "True\n3\n"


def test_the_runner_needs_the_standard_library_only():
    import ast
    import sys

    import snoozing_sandboxes.runner as runner

    folder = Path(runner.__file__).parent
    assert {path.stem for path in folder.glob("*.py")} == {"__init__", *MODULES}
    for path in folder.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                ours = name.startswith("snoozing_sandboxes.runner.")
                assert ours or name.split(".")[0] in sys.stdlib_module_names, f"{path.name} imports {name}"
