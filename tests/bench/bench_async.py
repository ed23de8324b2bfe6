"""`make bench-async`: replay, success buffers and asynchronous rollouts, as a table and one JSON line keyed by number."""

from __future__ import annotations

from tests.bench.light import Part, main

# The longest first: the reduced set shares two cores.
PARTS = (
    Part(number="2", title="TRL's worker beside ours", module="bench_async_trl", quick=True),
    Part(number="8", title="fifty kills", module="bench_async_kills", quick=True),
    Part(number="6-7", title="replay and stored successes", module="bench_reuse", quick=True),
    Part(
        number="1-3", title="bound and throughput on a jumping clock", module="bench_async_clock", quick=True
    ),
    Part(number="9", title="the loop's own overhead", module="bench_async_overhead", quick=True),
    Part(number="4", title="effective sample size", module="bench_ess", quick=True),
    Part(number="5", title="two vLLM servers, one killed", module="bench_async_fleet", quick=True, vllm=True),
    Part(number="A9", title="where time and tokens go", module="bench_goodput", quick=False),
)


if __name__ == "__main__":
    main(PARTS, "bench-async")
