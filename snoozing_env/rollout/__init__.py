"""From a task index to graded, token-exact trajectories (needs verifiers)."""
