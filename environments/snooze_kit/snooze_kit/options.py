"""Which published sets a run reads, and how much of them: the options that every environment with sources shares."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Generic, TypeVar

from pydantic import Field, model_validator

from snooze_kit.factors import FactorOptions
from snooze_kit.rows import Split

NameT = TypeVar("NameT", bound=str)


class SourceOptions(FactorOptions, Generic[NameT]):
    """Base of a task set's config: `class MyConfig(SourceOptions[Literal["made", "gsm8k"]])` with a default `source`."""

    EMBEDDED: ClassVar[tuple[str, ...]] = ()
    """Sources that come with the package, so that no `path` belongs to them."""

    source: NameT
    """The data set."""
    sources: list[NameT] = Field(default_factory=list)
    """Several sets at once, in this order; overrides `source`."""
    path: Path | None = None
    """Local file of `source` with the hub's columns: JSON lines, a JSON list, .csv or .parquet, .gz or not; `{split}`
    in it is replaced. None = the Hugging Face hub."""
    paths: dict[NameT, Path] = Field(default_factory=dict)
    """The same per source, for `sources`."""
    revision: str | None = None
    """Hub commit of `source`; None = the one the environment pins, else the main branch."""
    split: Split = "train"
    """`eval` and `test` are the held-out side."""
    size: int | None = Field(None, gt=0)
    """Tasks per source, drawn by `seed`; None = all."""
    seed: int = 0
    """Draws the sample; a larger size of the same seed is not promised to contain a smaller one."""

    @property
    def chosen(self) -> list[NameT]:
        """The sources of this run."""
        return self.sources or [self.source]

    def file_of(self, source: NameT) -> Path | None:
        """The local file of a source, None = it is read from the hub."""
        return self.paths.get(source, self.path)

    @model_validator(mode="after")
    def _path_has_an_owner(self) -> SourceOptions[NameT]:
        if self.path is not None and (self.sources or self.source in self.EMBEDDED):
            wanted = (
                "paths = {name = file} beside `sources`"
                if self.sources
                else f"a `source` other than {' and '.join(self.EMBEDDED)}"
            )
            raise ValueError(
                f"`path` is {self.path}, but it belongs to a single `source` with a file; give {wanted}"
            )
        return self
