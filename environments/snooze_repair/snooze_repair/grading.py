"""The hidden tests of a project on some files, and what their verdict says."""

from __future__ import annotations

from collections.abc import Mapping

from snoozing_sandboxes import GradeResult, Pool

from snooze_repair.authored import Project
from snooze_repair.checks import Seen, read_failure

MEMORY_MB = 256


async def grade(pool: Pool, project: Project, files: Mapping[str, str], *, cpu_s: float = 2.0) -> GradeResult:
    """In a fresh box. `cpu_s` is for all tests together; the working programs need a tenth of a second.

    Raises sandboxes.SandboxError where no box could decide.
    """
    return await pool.grade(files, project.checks.tests(), "tests", cpu_s=cpu_s, memory_mb=MEMORY_MB)


def failures(graded: GradeResult) -> list[Seen] | None:
    """Broken promises in order; None where the tests did not run to their end."""
    seen = [read_failure(name, why) for name, why in graded.details]
    return None if any(one is None for one in seen) else [one for one in seen if one is not None]
