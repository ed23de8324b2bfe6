"""`snooze pool`: duplicates, evaluation items in the training data, and lists that a recipe reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from snoozing_env.cli.options import parse_options
from snoozing_env.errors import PoolError, did_you_mean

if TYPE_CHECKING:
    from snoozing_env.pool.config import PoolConfig
    from snoozing_env.pool.neighbours import Embedder
    from snoozing_env.pool.rows import Address, PoolRow, Side, Stage


def main(arguments: Sequence[str]) -> None:
    from rich.console import Console

    from snoozing_env.pool.config import PoolConfig
    from snoozing_env.pool.inspection import inspect_pool
    from snoozing_env.pool.output import write_inspection

    config = parse_options(
        PoolConfig,
        _sources_first(arguments),
        prog="snooze pool",
        description="Duplicates and contamination.",
        where="pool",
    )
    console = Console()
    with _Bar(console) as bar:
        rows = _read(config, bar)
        found = inspect_pool(rows, config, embedder=_embedder, progress=bar.update)
        summary = write_inspection(found, config)
    console.print(_table(summary))
    directory = Path(config.output)
    console.print(f"lists: {directory / 'exclude.jsonl'}, {directory / 'clusters.jsonl'}", soft_wrap=True)
    console.print(
        f'in a recipe: [environment] exclude = "{directory / "exclude.jsonl"}", clusters = "{directory / "clusters.jsonl"}"',
        soft_wrap=True,
        markup=False,
    )


def _sources_first(arguments: Sequence[str]) -> list[str]:
    """`snooze pool a.jsonl b.jsonl --key value` means `--train`."""
    words = list(arguments)
    count = next((at for at, word in enumerate(words) if word.startswith(("-", "@"))), len(words))
    return ["--train", ",".join(words[:count]), *words[count:]] if count else words


def _read(config: PoolConfig, bar: _Bar) -> list[PoolRow]:
    from snoozing_env.pool.rows import read_rows

    def environment(address: Address) -> Iterable[PoolRow]:
        try:
            from snoozing_env.rollout.pool_rows import environment_rows
        except ModuleNotFoundError as error:
            raise PoolError(
                f"env:{address.name} needs the rollout layer: pip install 'snoozing-env[rollout]'"
            ) from error
        return environment_rows(address)

    rows: list[PoolRow] = []

    def read(sources: Sequence[str], side: Side, stage: Stage) -> None:
        for source in sources:
            bar.update(f"reading {source}", 0.0)
            rows.extend(read_rows(source, side=side, stage=stage, environment=environment))

    read(config.train, "train", "original")
    read(config.augmented, "train", "augmented")
    read(config.evaluation, "evaluation", "original")
    return rows


def _embedder(name: str) -> Embedder:
    """The embedder of that kind with its defaults.

    Raises:
        PoolError: no such kind.
    """
    from snoozing_env.embeddings import EndpointConfig, HashedConfig, SentenceConfig

    kinds = {
        kind.model_fields["kind"].default: kind for kind in (HashedConfig, SentenceConfig, EndpointConfig)
    }
    if name not in kinds:
        raise PoolError(
            f"no embedder {name!r}.{did_you_mean(name, kinds)} Embedders: {', '.join(kinds)}, off."
        )
    return kinds[name]().embedder()


def _table(summary: Mapping[str, Any]) -> Any:
    from rich.table import Table

    table = Table("", "what", "count", title="pool", title_justify="left")
    for part, figures in summary.items():
        if isinstance(figures, Mapping):
            for name, value in figures.items():
                table.add_row(part, name, f"{value:,}")
                part = ""
        else:
            table.add_row(part, "", f"{figures:,}")
        table.add_section()
    return table


class _Bar:
    """A progress bar in a terminal, nothing elsewhere."""

    def __init__(self, console: Any) -> None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
        self._progress = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._task = self._progress.add_task("", total=1.0)

    def __enter__(self) -> _Bar:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def update(self, stage: str, share: float) -> None:
        self._progress.update(self._task, description=stage, completed=share)
