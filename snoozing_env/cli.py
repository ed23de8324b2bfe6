"""`snooze`: train a recipe, write a report, check an environment."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from snoozing_env.errors import ConfigError, SnoozingError, did_you_mean

USAGE = """snooze: RL rollouts where the policy can learn

  snooze train @ recipe.toml [--key value ...]   train; `snooze train --help` lists every key
      --dry-run         check the recipe, load the tasks, print what would run
      --resume          go on from the newest whole checkpoint
      --overwrite       delete an earlier run in the same directory
      --merge-state     accept a checkpoint of a largely different task set
      --arm NAME        run one of the recipe's arms instead of all of them
  snooze report RUN [RUN ...] [--out FILE]        compare runs in one self-contained page
  snooze simulate [@ FILE.toml] [--key value ...] compare schedulers without a model; `--help` lists every key
  snooze serve MODEL [--key value ...]            start a vLLM server that takes weight updates; `--help` lists keys
  snooze check ENVIRONMENT [KEY=VALUE ...]        run the contract check of an environment

Recipes ship with the package: `@ demo.toml`, `@ smollm2_mawps.toml`, `@ qwen_gsm8k_gpu.toml` are found by name.
"""


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point of the console script."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(USAGE, end="")
        return
    name, rest = arguments[0], arguments[1:]
    if name not in COMMANDS:
        _fail(f"no command {name!r}.{did_you_mean(name, COMMANDS)} Commands: {', '.join(COMMANDS)}.")
    try:
        COMMANDS[name](rest)
    except SnoozingError as error:
        _fail(str(error))
    except KeyboardInterrupt:
        _fail("interrupted; pass --resume to go on from the last checkpoint", code=130)


def _fail(message: str, *, code: int = 2) -> None:
    print(f"snooze: {message}", file=sys.stderr)
    raise SystemExit(code)


@dataclass(slots=True)
class _Flags:
    """Flags of `train` that are no recipe keys."""

    dry_run: bool = False
    resume: bool = False
    overwrite: bool = False
    merge_state: bool = False
    arm: str = ""


def train(arguments: Sequence[str]) -> None:
    """`snooze train`: one arm here, several in processes of their own."""
    from rich.console import Console

    from snoozing_env.train.recipe import load_recipe

    flags, rest = _split_flags(arguments)
    recipe = load_recipe(rest)
    if flags.resume and flags.overwrite:
        raise SnoozingError("--resume and --overwrite exclude each other")
    console = Console()
    if flags.dry_run:
        from snoozing_env.train.dry_run import describe

        console.print(describe(recipe))
        return
    from snoozing_env.report.console import compare_table
    from snoozing_env.train.arms import train_arms
    from snoozing_env.train.run import RunOptions
    from snoozing_env.train.run import train as train_one

    if recipe.arms and not flags.arm:
        report = train_arms(recipe, arguments, console=console)
    else:
        one = recipe.for_arm(flags.arm) if flags.arm else recipe
        options = RunOptions(
            resume=flags.resume, overwrite=flags.overwrite, merge_state=flags.merge_state, arm=flags.arm
        )
        report = train_one(one, options, console=console)
        console.print(compare_table([one.directory]))
    console.print(f"report: {report}", soft_wrap=True)


def _split_flags(arguments: Sequence[str]) -> tuple[_Flags, list[str]]:
    flags, rest = _Flags(), list[str]()
    queue = list(arguments)
    while queue:
        word = queue.pop(0)
        name = word.removeprefix("--").replace("-", "_")
        if word == "--arm":
            if not queue:
                raise SnoozingError("--arm needs the name of an arm")
            flags.arm = queue.pop(0)
        elif word.startswith("--") and name in ("dry_run", "resume", "overwrite", "merge_state"):
            setattr(flags, name, True)
        else:
            rest.append(word)
    return flags, rest


def report(arguments: Sequence[str]) -> None:
    """`snooze report`: one page over finished or running runs."""
    from rich.console import Console

    from snoozing_env.report.console import compare_table
    from snoozing_env.report.html import write_report

    runs, out = list(arguments), Path("report.html")
    if "--out" in runs:
        at = runs.index("--out")
        if at + 1 == len(runs):
            raise SnoozingError("--out needs a file name")
        out = Path(runs[at + 1])
        del runs[at : at + 2]
    if not runs or any(r.startswith("-") for r in runs):
        raise SnoozingError(
            "usage: snooze report RUN [RUN ...] [--out FILE]; a run is a directory or its metrics.jsonl"
        )
    console = Console()
    console.print(compare_table(runs))
    console.print(f"report: {write_report(runs, out)}", soft_wrap=True)


def check(arguments: Sequence[str]) -> None:
    """`snooze check`: the contract every environment keeps."""
    from snoozing_env.rollout.contract import check_environment

    if not arguments or arguments[0].startswith("-"):
        raise SnoozingError(
            "usage: snooze check ENVIRONMENT [KEY=VALUE ...], e.g. snooze check snooze-math source=gsm8k path=train.jsonl"
        )
    findings = check_environment(arguments[0], arguments[1:])
    for finding in findings:
        print(finding)
    if findings:
        raise SystemExit(1)
    print(f"{arguments[0]}: the contract holds")


def simulate(arguments: Sequence[str]) -> None:
    """`snooze simulate`: schedulers × learners × seeds, as a table, JSON lines and a page."""
    from pydantic import ValidationError
    from pydantic_config import ConfigFileError, cli
    from rich.console import Console

    from snoozing_env.config import explain
    from snoozing_env.report.simulation import Files, SimulationProgress, results_table
    from snoozing_env.sim.compare import SimulationConfig, simulate_all

    try:
        config = cli(  # pyright: ignore[reportCallIssue]  # its overloads leave out prog and description
            SimulationConfig,
            args=list(arguments),
            prog="snooze simulate",
            description="Compare schedulers without a model.",
        )
    except ConfigFileError as error:
        cause = error.__cause__
        if isinstance(cause, ValidationError):
            raise ConfigError("\n".join(explain(SimulationConfig, cause, where="simulation"))) from error
        raise ConfigError(str(error)) from error
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


def serve(arguments: Sequence[str]) -> None:
    """`snooze serve`: a vLLM server in the foreground, until Ctrl-C."""
    import signal

    from pydantic_config import ConfigFileError, cli

    from snoozing_env.rollout.server import VllmServer, VllmServerConfig

    words = list(arguments)
    if words and not words[0].startswith("-"):
        words[:1] = ["--model", words[0]]
    try:
        config = cli(VllmServerConfig, args=words)
    except ConfigFileError as error:
        raise SnoozingError(str(error)) from error
    if not config.model:
        raise SnoozingError(
            "usage: snooze serve MODEL [--key value ...]; MODEL is a checkpoint directory or hub name"
        )
    with VllmServer(config, progress=print) as server:
        print(f"serving {config.model} as {config.name!r} at {server.base_url}; Ctrl-C stops it")
        signal.sigwait({signal.SIGINT, signal.SIGTERM})


COMMANDS: dict[str, Callable[[Sequence[str]], None]] = {
    "train": train,
    "report": report,
    "simulate": simulate,
    "serve": serve,
    "check": check,
}
