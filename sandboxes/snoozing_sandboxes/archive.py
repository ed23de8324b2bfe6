"""A docker-archive, written here: what `docker load` reads, with nothing in it that varies."""

from __future__ import annotations

import hashlib
import io
import json
import platform
import tarfile
from pathlib import Path

__all__ = ["ARCHITECTURES", "write_archive"]

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
"""The machine's name for itself, and Docker's."""


def write_archive(layer: bytes, tag: str, path: Path) -> str:
    """Write one layer (a tar) as an image named `tag`; returns the id it has wherever it is loaded."""
    layer_id = hashlib.sha256(layer).hexdigest()
    born = "1970-01-01T00:00:00Z"
    config = {
        "architecture": ARCHITECTURES[platform.machine()],
        "os": "linux",
        "created": born,
        "config": {
            "Env": ["PATH=/usr/local/bin:/usr/bin:/bin", "LD_LIBRARY_PATH=/usr/local/lib", "LANG=C.UTF-8"],
            "Cmd": ["python3"],
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer_id}"]},
        "history": [{"created": born, "created_by": "snoozing-sandboxes image"}],
    }
    text = json.dumps(config, sort_keys=True).encode()
    image_id = hashlib.sha256(text).hexdigest()
    manifest = [{"Config": f"{image_id}.json", "RepoTags": [tag], "Layers": [f"{layer_id}/layer.tar"]}]
    members = {
        f"{image_id}.json": text,
        f"{layer_id}/layer.tar": layer,
        "manifest.json": json.dumps(manifest).encode(),
    }
    with tarfile.open(path, "w") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return f"sha256:{image_id}"
