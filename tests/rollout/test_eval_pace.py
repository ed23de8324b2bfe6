"""How fast an endpoint is asked: pure decisions, with the clock brought along."""

from __future__ import annotations

from email.utils import formatdate
from time import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snoozing_env.evaluate.pace import LONGEST_S, Pace, exhausted, retry_pause, span


def test_after_a_429_nothing_goes_until_the_endpoint_s_pause_is_over() -> None:
    pace = Pace(8, backoff_s=0.5)
    pace.limited(100.0, 7.0)
    assert pace.wait(100.0) == 7.0
    assert pace.wait(106.0) == pytest.approx(1.0)
    assert pace.wait(107.0) == 0.0


def test_without_a_word_from_the_endpoint_pauses_double_and_a_success_ends_that() -> None:
    pace, now, pauses = Pace(8, backoff_s=0.5), 0.0, []
    for _ in range(4):
        pace.limited(now, None)
        pauses.append(pace.wait(now))
        now = pace.opens_at
    assert pauses == [0.5, 1.0, 2.0, 4.0]
    pace.succeeded(now, {})
    pace.limited(now, None)
    assert pace.wait(now) == 0.5


def test_the_requests_that_were_in_flight_when_the_limit_hit_count_as_one() -> None:
    pace = Pace(32, backoff_s=1.0)
    for _ in range(32):
        pace.limited(10.0, None)
    assert pace.cap == 16
    assert pace.wait(10.0) == 1.0


def test_the_cap_recovers_by_one_per_cap_s_worth_of_successes() -> None:
    pace = Pace(4, backoff_s=1.0)
    pace.limited(0.0, 0.0)
    assert pace.cap == 2
    for _ in range(3):
        pace.succeeded(1.0, {})
    assert 3 <= pace.cap < 4
    for _ in range(50):
        pace.succeeded(1.0, {})
    assert pace.cap == 4


@given(st.lists(st.sampled_from(["limited", "succeeded"]), max_size=60), st.integers(1, 40))
def test_it_never_stops_for_good_and_never_exceeds_the_configured_number(
    events: list[str], most: int
) -> None:
    pace, now = Pace(most, backoff_s=0.5), 0.0
    for event in events:
        now += 0.3
        pace.limited(now, None) if event == "limited" else pace.succeeded(now, {})
        assert 1 <= pace.cap <= most
        assert pace.opens_at - now <= LONGEST_S
    assert pace.wait(now + LONGEST_S) == 0.0
    pace.running = most
    assert pace.wait(now + LONGEST_S) is None


def test_an_allowance_that_is_used_up_pauses_before_the_429() -> None:
    pace = Pace(4, backoff_s=1.0)
    pace.succeeded(50.0, {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "3s"})
    assert pace.wait(50.0) == 3.0
    pace = Pace(4, backoff_s=1.0)
    pace.succeeded(50.0, {"x-ratelimit-remaining-requests": "9", "x-ratelimit-reset-requests": "3s"})
    assert pace.wait(50.0) == 0.0


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("12", 12.0),
        ("1.5s", 1.5),
        ("88ms", 0.088),
        ("6m0s", 360.0),
        ("1h2m3s", 3723.0),
        ("soon", None),
        ("", None),
    ],
)
def test_reset_headers_are_read_as_they_are_spelled(text: str, seconds: float | None) -> None:
    assert span(text) == (None if seconds is None else pytest.approx(seconds))


def test_retry_after_is_seconds_milliseconds_or_a_date() -> None:
    assert retry_pause({"Retry-After": "7"}) == 7.0
    assert retry_pause({"retry-after-ms": "250", "Retry-After": "7"}) == 0.25
    date = retry_pause({"Retry-After": formatdate(time() + 20, usegmt=True)})
    assert date is not None
    assert 18 < date <= 20
    assert retry_pause({"Retry-After": "whenever"}) is None
    assert retry_pause({}) is None


def test_the_longer_of_two_used_up_allowances_counts() -> None:
    headers = {
        "x-ratelimit-remaining-requests": "0",
        "x-ratelimit-reset-requests": "1s",
        "x-ratelimit-remaining-tokens": "0",
        "x-ratelimit-reset-tokens": "6m0s",
    }
    assert exhausted(headers) == 360.0
    assert retry_pause(headers) == 360.0
