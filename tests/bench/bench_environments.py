"""`make bench-environments`: what the environments, the pool and `snooze eval` do, as a table and one JSON line keyed by number."""

from __future__ import annotations

from tests.bench.light import Part, main

# The longest first: the reduced set shares two cores.
PARTS = (
    Part(
        number="6",
        title="snooze eval of SmolLM2 over all environments (quick: a stub endpoint)",
        module="bench_eval",
        quick=True,
        vllm=True,
    ),
    Part(number="3-4", title="contract of every environment", module="bench_contract", quick=True),
    Part(number="1-3-4", title="grounded QA grader and generator", module="bench_groundedqa", quick=True),
    Part(number="2-3-4", title="refusal detector and grader", module="bench_refusal", quick=True),
    Part(number="5", title="snooze pool", module="bench_pool", quick=True),
    Part(
        number="7", title="a conflicting pair, permanent and N = 2", module="bench_conflict_lab", quick=False
    ),
)


if __name__ == "__main__":
    main(PARTS, "bench-environments")
