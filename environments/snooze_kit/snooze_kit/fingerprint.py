"""The same tasks in every process: keys and data as one digest, made here and in a fresh interpreter (D6).

python -m snooze_kit.fingerprint '{"id": "snooze-math", "size": 40}' 200
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import verifiers.v1 as vf

HASH_SEEDS = ("0", "1")
"""PYTHONHASHSEED of the processes compared."""


class FingerprintError(RuntimeError):
    """A fresh process could not load the task set that this one has."""


def fingerprint(taskset: vf.Taskset, limit: int) -> str:
    """SHA-256 over keys and data of the first `limit` tasks, in order."""
    digest = hashlib.sha256()
    for task in itertools.islice(taskset, limit):
        data = task.data.model_dump(mode="json", exclude_none=True)
        digest.update(json.dumps([task.key, data], sort_keys=True).encode())
    return digest.hexdigest()


def fingerprint_elsewhere(options: Mapping[str, Any], limit: int, *, hash_seed: str) -> str:
    """The fingerprint a fresh interpreter gets for `{"id": environment, **options}` under this PYTHONHASHSEED.

    Raises:
        FingerprintError: it could not load the task set; the message ends with what it said.
    """
    done = subprocess.run(
        [
            sys.executable,
            "-W",
            "ignore",
            "-m",
            "snooze_kit.fingerprint",
            json.dumps(dict(options)),
            str(limit),
        ],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
    )
    if done.returncode:
        raise FingerprintError(f"PYTHONHASHSEED={hash_seed}: {done.stderr.strip()[-500:]}")
    return done.stdout.strip().splitlines()[-1]


def load(options: Mapping[str, Any]) -> vf.Taskset:
    """The task set `{"id": environment, **options}` names."""
    config = vf.taskset_config_type(options["id"]).model_validate(dict(options))
    return vf.load_taskset(config)


if __name__ == "__main__":
    print(fingerprint(load(json.loads(sys.argv[1])), int(sys.argv[2])))
