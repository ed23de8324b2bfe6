"""What runs inside a box. Standard library only: these files travel in over stdin, so any Python image will do.

    supervisor (PID 1) ── socket ──→ zygote ── fork ──→ child: drops to its uid, limits, seccomp, runs the program
         │  frames over stdin / stdout                    │
         └── pipes to the child's stdin, stdout, stderr ──┘

The zygote forks before any job data exists and never sees any: what one job knew, no later one can find in memory.
"""

MODULES = (
    "wire",
    "confine",
    "serve",
    "proxies",
    "judge",
    "child",
    "zygote",
    "sweep",
    "meters",
    "job",
    "supervisor",
)
"""In the order in which they may import one another."""
