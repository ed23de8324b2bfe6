"""Which image the boxes run, and how an engine gets it: one recipe with a registry, one without."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import docker
import docker.errors

from snoozing_sandboxes.errors import ImageMissing
from snoozing_sandboxes.rootfs import build_archive, recipe_digest

__all__ = ["dockerfile", "ensure_image", "load_packed", "packed_tag"]


def packed_tag(packages: Sequence[str] = ()) -> str:
    """The tag of the image packed from this Python with these packages."""
    version = ".".join(map(str, sys.version_info[:3]))
    return f"snoozing-sandbox:py{version}-{recipe_digest(packages)}"


def ensure_image(client: docker.DockerClient, image: str, packages: Sequence[str] = ()) -> str:
    """The image's name on this engine, brought there if need be.

    "auto" is packed from this machine's Python and loaded (no registry needed, once per engine). Any other name is
    looked for on the engine and pulled if absent; ImageMissing says what to do if that fails.
    """
    if image == "auto":
        tag = packed_tag(packages)
        if not _has(client, tag):
            load_packed(client, tag, packages)
        return tag
    if packages:
        raise ValueError(
            f"packages go into the packed image only; image {image!r} has to bring {list(packages)}"
        )
    if not _has(client, image):
        try:
            client.images.pull(image)
        except docker.errors.APIError as error:
            raise ImageMissing(
                f"image {image!r} is not on the engine and cannot be pulled ({error.explanation}); "
                "pass image='auto' to pack this machine's Python, or load it with `docker load`"
            ) from None
    return image


def load_packed(client: docker.DockerClient, tag: str, packages: Sequence[str] = ()) -> str:
    """Pack, load, and return the image id, which depends on nothing but what went in."""
    with tempfile.TemporaryDirectory(prefix="snoozing-image-") as folder:
        path = Path(folder) / "image.tar"
        image_id = build_archive(tag, packages, path)
        with path.open("rb") as archive:
            loaded = client.images.load(archive)
    if [image.id for image in loaded] != [image_id]:
        raise ImageMissing(f"the engine loaded {[image.id for image in loaded]}, packed was {image_id}")
    return image_id


def dockerfile(base: str = "python:3.12-slim", packages: Sequence[str] = ()) -> str:
    """The recipe for machines with a registry: any Python image will do, since the runner travels in over stdin."""
    install = f"RUN pip install --no-cache-dir {' '.join(sorted(packages))}\n" if packages else ""
    return f"FROM {base}\n{install}RUN mkdir -p -m 1777 /box\nENV LANG=C.UTF-8\n"


def _has(client: docker.DockerClient, name: str) -> bool:
    try:
        client.images.get(name)
    except docker.errors.ImageNotFound:
        return False
    return True
