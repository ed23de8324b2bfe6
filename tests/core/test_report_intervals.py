"""Intervals against published values and against the coverage they promise; axes that a person can read."""

from __future__ import annotations

import math
import re
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from snoozing_env.intervals import clustered, over_seeds, wilson
from snoozing_env.report.scale import nice_ticks, share, short, spread
from snoozing_env.report.svg import MAX_POINTS, Axis, Series, buckets, line_chart

finite = st.floats(-1e9, 1e9, allow_nan=False)
COUNT = Axis(label="y", show=short)


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [
        # Newcombe 1998, Statistics in Medicine 17, table I, method 3 (Wilson, no continuity correction).
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
        (29, 29, 0.8830, 1.0),
    ],
)
def test_wilson_gives_the_published_intervals(successes: int, n: int, low: float, high: float) -> None:
    assert wilson(successes, n) == pytest.approx((low, high), abs=6e-5)


@given(n=st.integers(1, 5000), share_of=st.floats(0, 1))
def test_wilson_holds_its_estimate_and_mirrors(n: int, share_of: float) -> None:
    successes = round(n * share_of)
    low, high = wilson(successes, n)
    assert 0 <= low <= successes / n <= high <= 1
    assert wilson(n - successes, n) == pytest.approx((1 - high, 1 - low), abs=1e-9)


@pytest.mark.parametrize(("successes", "n"), [(1, 0), (-1, 5), (6, 5), (math.nan, 5)])
def test_wilson_refuses_impossible_counts(successes: float, n: int) -> None:
    with pytest.raises(ValueError, match=r"successes of .*; wanted 0 ≤ successes ≤ n and n ≥ 1"):
        wilson(successes, n)


@pytest.mark.parametrize(
    ("n", "t"), [(2, 12.7062), (3, 4.30265), (4, 3.18245), (6, 2.57058), (11, 2.22814), (31, 2.04227)]
)
def test_clustered_is_the_t_interval_of_the_task_means(n: int, t: float) -> None:
    means_N = 0.5 + 0.004 * np.arange(n)
    half = t * means_N.std(ddof=1) / math.sqrt(n)
    centre = means_N.mean()
    assert clustered(means_N) == pytest.approx((centre - half, centre + half), rel=2e-4)


def test_clustered_is_wider_than_pooling_answers_that_agree() -> None:
    means_N = np.array([1.0] * 30 + [0.0] * 20)
    low, high = clustered(means_N)
    pooled_low, pooled_high = wilson(30 * 8, 50 * 8)
    assert high - low > 2 * (pooled_high - pooled_low)


def test_clustered_covers_the_truth_95_times_in_100() -> None:
    rng = np.random.default_rng(5)
    truth, hits = 0.5, 0
    for _ in range(2000):
        low, high = clustered(rng.binomial(4, rng.beta(2, 2, 60)) / 4)
        hits += low <= truth <= high
    assert 0.93 <= hits / 2000 <= 0.97


def test_tasks_without_spread_are_not_taken_for_certainty() -> None:
    assert clustered([1.0] * 12) == wilson(12, 12)
    assert clustered([0.25]) == wilson(0.25, 1)


def test_few_runs_have_a_wide_interval() -> None:
    low, high = over_seeds([0.1, 0.2, 0.3])
    assert (low, high) == pytest.approx((0.2 - 4.3027 * 0.1 / 3**0.5, 0.2 + 4.3027 * 0.1 / 3**0.5), abs=1e-4)
    with pytest.raises(ValueError, match="N ≥ 2 runs"):
        over_seeds([0.1])


@pytest.mark.parametrize("means", [[], [[0.5]], [0.5, math.nan], [1.2]])
def test_clustered_refuses_what_are_no_means(means: list[float]) -> None:
    with pytest.raises(ValueError, match=r"wanted a non-empty \[N\] array within \[0, 1\]"):
        clustered(means)


@given(low=finite, high=finite)
def test_ticks_cover_the_range_with_few_even_round_steps(low: float, high: float) -> None:
    low, high = min(low, high), max(low, high)
    ticks = nice_ticks(low, high)
    slack = 1e-6 * max(1.0, abs(low), abs(high))
    assert ticks[0] <= low + slack
    assert ticks[-1] >= high - slack
    assert 2 <= len(ticks) <= 8
    step = ticks[1] - ticks[0]
    assert np.allclose(np.diff(ticks), step, rtol=1e-4)
    if high - low > 1e-3 * max(1.0, abs(low)):  # below that the difference of two ticks is mostly rounding
        assert f"{step:.2e}"[:4] in ("1.00", "2.00", "2.50", "5.00")


def test_numbers_are_written_shortly() -> None:
    assert [short(v) for v in (0, 3, -0.0287, 0.5, 1234.4, 12_500, 2.5e6, 2e-5)] == [
        "0", "3", "−0.029", "0.5", "1234", "12.5k", "2.5M", "2.0e-05",
    ]  # fmt: skip
    assert [share(v) for v in (0, 0.5, 0.1234, 1)] == ["0 %", "50 %", "12.3 %", "100 %"]


@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 1000), finite), max_size=300, unique_by=lambda p: p[0]).map(sorted),
        max_size=4,
    )
)
def test_a_chart_of_any_finite_series_stays_in_its_frame(curves: list[list[tuple[int, float]]]) -> None:
    series = [
        Series(label=f"<{i}>", x=[p[0] for p in c], y=[p[1] for p in c], colour=i)
        for i, c in enumerate(curves)
    ]
    drawing = line_chart(series, x=COUNT, y=COUNT, smooth=True)
    assert bool(drawing) == any(curves), "no data, no frame"
    assert "nan" not in drawing.replace("inan", "")
    assert "<0>" not in drawing
    paths = " ".join(re.findall(r'class="line[^>]* d="([^"]*)"', drawing))
    for x, y in re.findall(r"[ML](-?[\d.]+) (-?[\d.]+)", paths):
        assert 45.9 <= float(x) <= 406.1
        assert 11.9 <= float(y) <= 222.1


@given(n=st.integers(1, 10_000), most=st.integers(2, 200))
def test_thinning_keeps_the_ends_and_repeats_nothing(n: int, most: int) -> None:
    picked = spread(n, most)
    assert (picked[0], picked[-1], len(picked)) == (0, n - 1, min(n, most))
    assert picked == sorted(set(picked))


@example([float(i * i) for i in range(1000)])
@given(st.lists(finite, min_size=1, max_size=600))
def test_a_long_curve_keeps_where_it_began_and_ended(ys: list[float]) -> None:
    points = buckets(range(len(ys)), ys)
    assert points[0] == (0, ys[0])
    assert points[-1] == (len(ys) - 1, ys[-1])
    assert len(points) == min(len(ys), MAX_POINTS)
    assert all(a <= b for (a, _), (b, _) in pairwise(points))


def test_every_step_of_a_short_series_can_be_hovered() -> None:
    drawing = line_chart([Series(label="loss", x=[1, 2, 3], y=[0.5, 0.25, 4.0])], x=COUNT, y=COUNT)
    titles = re.findall(r"<title>(.*?)</title>", drawing, re.DOTALL)
    assert titles == ["y 1\nloss: 0.5", "y 2\nloss: 0.25", "y 3\nloss: 4"]
