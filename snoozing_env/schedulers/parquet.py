"""Columns keyed by task as a parquet file in memory."""
# pyright: basic
# pyarrow ships no type information; the two functions below are its typed border.

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray


def dump(keys: Sequence[str], columns: dict[str, NDArray[np.generic]]) -> bytes:
    """One row per key, one column per array."""
    table = pa.table(
        {"key": pa.array(keys, pa.string()), **{name: pa.array(c) for name, c in columns.items()}}
    )
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd", use_dictionary=False)
    return sink.getvalue().to_pybytes()


def parse(payload: bytes) -> tuple[list[str], dict[str, NDArray[np.generic]]]:
    """What `dump` wrote: keys and arrays."""
    table = pq.read_table(pa.BufferReader(payload))
    columns = {name: table.column(name).to_numpy() for name in table.column_names if name != "key"}
    return table.column("key").to_pylist(), columns
