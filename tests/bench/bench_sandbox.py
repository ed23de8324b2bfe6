"""`make bench-sandbox`: the figures of the sandbox and of the environments on it; QUICK=1 for a reduced set."""

from __future__ import annotations

from tests.bench.light import Part, main

# The longest first: the reduced set shares two cores.
PARTS = (
    Part(number="3", title="repair: who earns the reward", module="bench_repair", quick=True),
    Part(
        number="1",
        title="sandbox: speed, forging, limits, leftovers",
        module="bench_sandbox_runs",
        quick=True,
    ),
    Part(number="2", title="references of HumanEval+ and MBPP+", module="bench_code", quick=True),
    Part(number="4", title="repair: many episodes at once", module="bench_repair_many", quick=True),
    Part(number="5", title="lab policy that writes programs", module="bench_code_lab", quick=False),
)

if __name__ == "__main__":
    main(PARTS, title="bench-sandbox")
