"""`snooze simulate`: schedulers × learners × seeds, as a table, JSON lines and a page."""

from __future__ import annotations

from collections.abc import Sequence

from snoozing_env.cli.options import parse_options


def main(arguments: Sequence[str]) -> None:
    from rich.console import Console

    from snoozing_env.report.simulation import Files, SimulationProgress, results_table
    from snoozing_env.sim.compare import SimulationConfig, simulate_all

    config = parse_options(
        SimulationConfig,
        arguments,
        prog="snooze simulate",
        description="Compare schedulers without a model.",
        where="simulation",
    )
    console, files, runs = Console(), Files(config.output), []
    try:
        with SimulationProgress(config.runs, steps=config.loop.steps, console=console) as progress:
            for run in simulate_all(config, progress.begin, progress.update):
                files.add(run)
                runs.append(run)
    finally:
        files.close()
    for learner in dict.fromkeys(run.summary.learner for run in runs):
        console.print(results_table([run.summary for run in runs], learner))
    console.print(f"report: {files.page(runs, config)}", soft_wrap=True)
