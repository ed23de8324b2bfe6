"""`snooze`: every command, each in the module of its name; none is imported before it is asked for."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

from snoozing_env.errors import SnoozingError, did_you_mean

USAGE = """snooze: RL rollouts where the policy can learn

  snooze train @ recipe.toml [--key value ...]   train; `snooze train --help` lists every key
      --dry-run         check the recipe, load the tasks, print what would run
      --resume          go on from the newest whole checkpoint
      --overwrite       delete an earlier run in the same directory
      --merge-state     accept a checkpoint of a largely different task set
      --arm NAME        run one of the recipe's arms instead of all of them
  snooze eval --environments ID ... [--key value ...]      evaluate a model through an endpoint; `--help` lists every key
      --dry-run, --resume, --overwrite
      --compare RUN_A RUN_B    paired test of two evaluations
  snooze stratify --environments ID ... [--key value ...]  measure how hard each task is: priors, buckets, suspects
      --dry-run, --resume, --overwrite
  snooze report RUN [RUN ...] [--out FILE]        compare runs in one self-contained page
  snooze simulate [@ FILE.toml] [--key value ...] compare schedulers without a model; `--help` lists every key
  snooze serve MODEL [--key value ...]            start a vLLM server that takes weight updates; `--help` lists keys
  snooze init NAME [--path DIR]                   write a small environment package of your own to start from
  snooze check ENVIRONMENT [KEY=VALUE ...]        run the contract check of an environment
  snooze pool FILE ... --evaluation FILE,...      duplicates and contamination, with the evidence; `--help` lists keys

Recipes ship with the package: `@ demo.toml`, `@ smollm2_mawps.toml`, `@ qwen_gsm8k_gpu.toml` are found by name.
"""

COMMANDS = ("train", "eval", "stratify", "report", "simulate", "serve", "init", "check", "pool")
"""Each is a module of this package with `main(arguments)`."""


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
        importlib.import_module(f"snoozing_env.cli.{name}").main(rest)
    except SnoozingError as error:
        _fail(str(error))
    except KeyboardInterrupt:
        _fail("interrupted; pass --resume to go on from what is on disk", code=130)


def _fail(message: str, *, code: int = 2) -> None:
    print(f"snooze: {message}", file=sys.stderr)
    raise SystemExit(code)
