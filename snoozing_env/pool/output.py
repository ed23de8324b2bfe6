"""An inspection as files: clusters.jsonl, exclude.jsonl, summary.json."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from snoozing_env.errors import PoolError
from snoozing_env.pool.config import PoolConfig
from snoozing_env.pool.inspection import Inspection
from snoozing_env.pool.lists import write_lines

TEXT_SHOWN = 300
"""Characters of a text repeated in the lists; provenance finds the rest."""


def write_inspection(found: Inspection, config: PoolConfig) -> dict[str, Any]:
    """Write the three files; the summary is returned too.

    Raises:
        PoolError: the output directory cannot be written.
    """
    directory = Path(config.output).expanduser()
    summary = summarize(found)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        write_lines(directory / "clusters.jsonl", _cluster_lines(found))
        write_lines(directory / "exclude.jsonl", _exclusion_lines(found))
        document = {"config": config.model_dump(mode="json"), **summary}
        (directory / "summary.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise PoolError(f"cannot write {directory}: {error}; choose another --output") from error
    return summary


def summarize(found: Inspection) -> dict[str, Any]:
    """Counts, the training side before augmentation and after it apart."""
    sizes = found.cluster_sizes
    stages = {"before augmentation": ("original",), "after augmentation": ("original", "augmented")}
    if not any(row.stage == "augmented" for row in found.rows):
        stages = {"training": ("original",)}
    evaluation = [row for row in found.rows if row.side == "evaluation"]
    return {
        **{name: _side(found, members) for name, members in stages.items()},
        "evaluation": {"rows": len(evaluation), "texts": len({row.hash for row in evaluation})},
        "clusters": {"of two or more rows": sum(size > 1 for size in sizes.values()), "largest": max(sizes.values(), default=0)},
        "contaminated evaluation items": len(_contaminated_items(found)),
        "embedding neighbours": len(found.neighbours),
    }  # fmt: skip


def _side(found: Inspection, stages: tuple[str, ...]) -> dict[str, Any]:
    rows = [row for row in found.rows if row.side == "train" and row.stage in stages]
    reasons = Counter(e.reason for e in found.exclusions if e.row.stage in stages)
    excluded = reasons.total()
    return {
        "rows": len(rows), "texts": len({row.hash for row in rows}), "excluded": excluded, "kept": len(rows) - excluded,
        **dict(reasons.most_common()),
    }  # fmt: skip


def _contaminated_items(found: Inspection) -> set[tuple[str, int]]:
    return {
        (evidence["source"], evidence["row"])
        for exclusion in found.exclusions
        if exclusion.reason.startswith("contaminated")
        for evidence in exclusion.evidence
        if "cosine" not in evidence
    }


def _cluster_lines(found: Inspection) -> Iterator[dict[str, Any]]:
    """A line per row of a cluster of two or more, with the row that it is most like."""
    sizes, links = found.cluster_sizes, _links(found)
    for place, (row, cluster) in enumerate(zip(found.rows, found.cluster_N, strict=True)):
        if sizes[cluster] > 1:
            other, similarity = links[place]
            like = found.rows[other]
            yield {
                "cluster": cluster, "size": sizes[cluster], **row.provenance, "side": row.side, "stage": row.stage,
                "most_like": {**like.provenance, "jaccard": round(similarity, 4)}, "text": row.text[:TEXT_SHOWN],
            }  # fmt: skip


def _links(found: Inspection) -> dict[int, tuple[int, float]]:
    """Per row of a cluster, the row it is most like (the first copy for later copies) and their similarity."""
    links: dict[int, tuple[int, float]] = {}
    for pair in found.pairs:
        for one, other in ((pair.one, pair.other), (pair.other, pair.one)):
            if one not in links or pair.similarity > links[one][1]:
                links[one] = (other, pair.similarity)
    first: dict[str, int] = {}
    for place, row in enumerate(found.rows):
        original = first.setdefault(row.hash, place)
        if original != place:
            links[place] = (original, 1.0)
            links.setdefault(original, (place, 1.0))
    return links


def _exclusion_lines(found: Inspection) -> Iterator[dict[str, Any]]:
    for exclusion in found.exclusions:
        row = exclusion.row
        yield {
            **row.provenance, "reason": exclusion.reason, "stage": row.stage, "text": row.text[:TEXT_SHOWN],
            "evidence": list(exclusion.evidence),
        }  # fmt: skip
