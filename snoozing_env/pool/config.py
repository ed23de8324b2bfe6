"""What `snooze pool` may be told."""

from __future__ import annotations

from pydantic import Field, model_validator

from snoozing_env.config import FrozenConfig


class PoolConfig(FrozenConfig):
    """Sources, thresholds, output."""

    train: list[str] = Field(default_factory=list)
    """Sources to train on: files (`gsm8k_train.jsonl`, `x.parquet?text=problem`), `hub:openai/gsm8k?subset=main&split=train`,
    `env:snooze-math?source=gsm8k&path=…`."""
    augmented: list[str] = Field(default_factory=list)
    """Sources made from `train` by augmentation (a `parent` field names the key of the row each was made from); counted apart,
    so that before and after can be compared. A row whose parent is excluded is excluded with it."""
    evaluation: list[str] = Field(default_factory=list)
    """Sources nothing in `train` may contain."""
    output: str = "pool"
    """Directory of clusters.jsonl, exclude.jsonl and summary.json."""
    shingle: int = Field(default=3, ge=1, le=13)
    """Words in a gram of the near-duplicate comparison."""
    near: float = Field(default=0.5, ge=0.4, le=1.0)
    """Jaccard similarity of two texts' gram sets from which they are near-duplicates: one cluster, and contamination across sides."""
    drop_near: bool = False
    """Also exclude all but the first of near-duplicates within training; by default they only share a cluster."""
    ngram: int = Field(default=13, ge=9, le=50)
    """Words in an n-gram of the contamination search."""
    coverage: float = Field(default=0.6, gt=0.0, le=1.0)
    """Share of an evaluation item's own words (no boilerplate) that shared n-grams must cover."""
    common: int = Field(default=10, ge=1)
    """Unrelated texts that may share an n-gram before it counts as boilerplate; in pools over 10,000 texts one per thousand."""
    ignore_numbers: bool = True
    """Also find copies with other numbers."""
    templates: list[str] = Field(default_factory=list)
    """More boilerplate: regular expressions over lower-case words joined by blanks, punctuation gone."""
    embedder: str = "off"
    """Also list each evaluation item's nearest training text by this embedder (`hashed` needs no model); a hint, never an exclusion."""
    cosine: float = Field(default=0.85, ge=0.0, le=1.0)
    """Similarity from which a nearest text is listed."""
    seed: int = Field(default=1, ge=0, lt=2**31)
    """Seeds the permutations of the candidate search."""

    @model_validator(mode="after")
    def _has_rows_to_judge(self) -> PoolConfig:
        if not (self.train or self.augmented):
            raise ValueError(
                'no source to look at; give train = ["FILE"], e.g. snooze pool train.jsonl --evaluation test.jsonl'
            )
        if self.embedder != "off" and not self.evaluation:
            raise ValueError(
                f"embedder {self.embedder!r} compares with evaluation sets; give `evaluation` or leave it off"
            )
        return self

    def common_texts(self, texts: int) -> int:
        """`common` for a pool of that many texts."""
        return max(self.common, texts // 1000)
