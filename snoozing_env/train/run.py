"""A recipe from start to report: build the parts, train, measure, write.

run_recipe ─┬─ arms ─▶ one process per arm, side by side ─▶ report over all of them
            └─ none ─▶ policy → server → engine → Session ⇄ TRL trainer ─▶ report
"""

from __future__ import annotations

import logging
import os
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from snoozing_env.errors import SaturationError, StateError
from snoozing_env.goodput import Undone
from snoozing_env.report.console import TrainProgress
from snoozing_env.report.html import write_report
from snoozing_env.report.runlog import FILE_NAME, EndRecord, RunLog, RunRecord, StepRecord, read
from snoozing_env.rollout.catalogue import Catalogue, load_catalogue
from snoozing_env.rollout.evaluation import check_held_out
from snoozing_env.train.recipe import Recipe

if TYPE_CHECKING:
    from snoozing_env.train.session import Session

REPORT = "report.html"
STOPPED = "stopped"
"""How the reason of a run begins that was asked to stop before its last step."""
TRACKED = ("snoozing-env", "snooze-math", "verifiers", "trl", "transformers", "torch", "numpy")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How to treat what a run directory already holds."""

    resume: bool = False
    """Go on from the newest whole checkpoint."""
    overwrite: bool = False
    """Delete an earlier run in the same directory."""
    merge_state: bool = False
    """Accept a checkpoint of a largely different task set and keep what matches."""
    arm: str = ""
    """Name in logs and reports."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """What a run starts from, loaded and checked before anything heavy is imported."""

    recipe: Recipe
    options: RunOptions
    catalogue: Catalogue
    held_out: Catalogue
    policy: str
    """Checkpoint directory or hub name of the initial weights."""
    checkpoint: tuple[Path, int] | None
    """Where to go on from, and its step."""
    undone: Undone
    """What was logged after it."""

    @property
    def first_step(self) -> int:
        return self.checkpoint[1] if self.checkpoint else 0


def train(recipe: Recipe, options: RunOptions, *, console: Console | None = None) -> Path:
    """Train one arm and write its report; returns the report's path.

    Raises:
        SnoozingError: with what came, what was wanted and what to do.
    """
    console = console or Console()
    prepared = _prepare(recipe, options, console)
    _quiet_libraries(recipe.train.threads)
    title = recipe.name + (f"/{options.arm}" if options.arm else "")
    progress = TrainProgress(recipe.train.steps, title=title, first_step=prepared.first_step, console=console)
    started = time.monotonic()
    with RunLog(recipe.directory / FILE_NAME) as log, ExitStack() as stack:
        log.truncate_after(prepared.first_step)
        log.append(_run_record(prepared))
        reason = _train(prepared, log, progress, stack)
        log.append(EndRecord(reason=reason, seconds=time.monotonic() - started))
    return write_report([recipe.directory], recipe.directory / REPORT)


def end_of(directory: Path) -> str:
    """Why the run in a directory ended last; "" where it has not."""
    ends = [r.reason for r in read(directory / FILE_NAME) if isinstance(r, EndRecord)]
    return ends[-1] if ends else ""


def _prepare(recipe: Recipe, options: RunOptions, console: Console) -> Prepared:
    checkpoint = _checkpoint_to_resume(recipe, options)
    held_out, catalogue = load_held_out(recipe), load_catalogue(recipe.environment)
    check_held_out(catalogue, held_out)
    if catalogue.priors is not None:
        console.print(f"priors {catalogue.priors}", soft_wrap=True, markup=False)
    return Prepared(
        recipe=recipe,
        options=options,
        catalogue=catalogue,
        held_out=held_out,
        policy=policy_path(recipe, console),
        checkpoint=checkpoint,
        undone=_undone(recipe, checkpoint[1] if checkpoint else 0),
    )


def load_held_out(recipe: Recipe) -> Catalogue:
    """The evaluation tasks: the same environment with `[evaluation.taskset]` over it."""
    environment = recipe.environment.model_copy(update={"limit": recipe.evaluation.limit, "priors": ""})
    return load_catalogue(environment, recipe.evaluation.taskset)


def policy_path(recipe: Recipe, console: Console) -> str:
    """Checkpoint directory (or hub name) of the initial policy; builds the lab and SmolLM2 ones into the cache."""
    policy = recipe.policy
    if policy.kind == "checkpoint":
        return policy.path
    if policy.kind == "smollm2":
        from snoozing_env.train.lab.policy import default_cache_dir
        from snoozing_env.train.smollm2 import load_smollm2

        return str(load_smollm2(default_cache_dir().parent))
    from snoozing_env.train.lab import build_lab_policy

    warmup = load_catalogue(
        recipe.environment.model_copy(update={"limit": None, "priors": ""}), policy.warmup_taskset
    )
    check_held_out(warmup, load_held_out(recipe))
    pairs = [(task.data.prompt_text, str(getattr(task.data, "answer", ""))) for task in warmup.tasks]
    return str(build_lab_policy(policy.lab, pairs, console=console))


def _train(prepared: Prepared, log: RunLog, progress: TrainProgress, stack: ExitStack) -> str:
    """Build engine, session and trainer, and drive them; returns why the run ended."""
    from transformers import AutoModelForCausalLM, AutoTokenizer, set_seed

    from snoozing_env.train.assemble import LossReporter, build_engine, build_loop, build_trainer, save_now
    from snoozing_env.train.session import Session, StopAsked

    recipe, policy = prepared.recipe, prepared.policy
    set_seed(recipe.seed)
    tokenizer = AutoTokenizer.from_pretrained(policy, padding_side="left")
    model = AutoModelForCausalLM.from_pretrained(policy, dtype="float32")
    loop = build_loop(recipe)
    built = build_engine(recipe, policy, model, tokenizer, stack, loop, say=progress.say)
    session = Session(
        recipe,
        train=prepared.catalogue,
        held_out=prepared.held_out,
        engine=built.engine,
        transfer=built.transfer,
        log=log,
        progress=progress,
        merge_state=prepared.options.merge_state,
        undone=prepared.undone,
        loop=loop,
        keep_alive=built.keep_alive,
    )
    stack.callback(session.close)
    if prepared.checkpoint is None:
        session.outcomes.cut(0)
        if said := session.supply.start():
            progress.say(said)
    session.open()
    reporter = LossReporter(session)
    trainer = build_trainer(recipe, policy, model, tokenizer, session, reporter)
    reason = ""
    with progress, _stop_on_signal(session):
        try:
            trainer.train(resume_from_checkpoint=str(prepared.checkpoint[0]) if prepared.checkpoint else None)
        except SaturationError as error:
            reason = f"saturated: {error}"
        except StopAsked:
            save_now(trainer)
        step, model = trainer.state.global_step, trainer.accelerator.unwrap_model(trainer.model)
        if session.health.collapse:
            return f"collapsed at step {step}: {session.health.collapse}"
        if step < recipe.train.steps and not reason:
            return f"{STOPPED} at step {step}; pass --resume to go on"
        with suppress(StopAsked):  # asked during the last evaluation, which a resume would do again
            session.finish(step, model)
    trainer.save_model(str(recipe.directory / "final"))
    tokenizer.save_pretrained(str(recipe.directory / "final"))
    return reason or "all steps done"


def _checkpoint_to_resume(recipe: Recipe, options: RunOptions) -> tuple[Path, int] | None:
    """The checkpoint to go on from, or None for a fresh start in an empty directory."""
    from snoozing_env.train.checkpoints import last_whole_checkpoint

    directory = recipe.directory
    if options.overwrite and directory.exists():
        shutil.rmtree(directory)
    found = last_whole_checkpoint(directory)
    if options.resume:
        return found
    if found is not None or (directory / FILE_NAME).exists():
        at = f" at step {found[1]}" if found else ""
        raise StateError(
            f"{directory} already holds a run{at}; pass --resume to go on, or --overwrite to start anew"
        )
    return None


def _undone(recipe: Recipe, step: int) -> Undone:
    """What the run log holds beyond the checkpoint of `step`, before it is cut back to there.

    Tokens are gone where no journal kept the groups: in a synchronous run, and before the first checkpoint.
    """
    path = recipe.directory / FILE_NAME
    steps = [r for r in read(path) if isinstance(r, StepRecord)] if path.exists() else []
    kept = [r.seconds or 0.0 for r in steps if r.step <= step]
    gone = [r for r in steps if r.step > step]
    journal = recipe.pacing.max_staleness and step
    return Undone(
        seconds=max((r.seconds or 0.0 for r in gone), default=0.0) - max(kept, default=0.0) if gone else 0.0,
        tokens=0 if journal else sum(int((r.goodput or {}).get("tokens/generated", 0)) for r in gone),
    )


def _run_record(prepared: Prepared) -> RunRecord:
    recipe = prepared.recipe
    return RunRecord(
        name=recipe.name,
        arm=prepared.options.arm or recipe.scheduler.snooze.mode,
        seed=recipe.seed,
        recipe=recipe.model_dump(mode="json"),
        versions=dict(_versions()),
        n_tasks=len(prepared.catalogue),
        datasets=tuple(sorted({info.dataset for info in prepared.catalogue.infos})),
    )


def _versions() -> Iterator[tuple[str, str]]:
    for name in TRACKED:
        try:
            yield name, version(name)
        except PackageNotFoundError:
            continue


def _quiet_libraries(threads: int) -> None:
    """No notices in the progress, one thread per process, no look-ups for models that are on this disk."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    import torch
    import transformers

    torch.set_num_threads(threads)
    transformers.utils.logging.set_verbosity_error()
    # A row that carries nothing has no reward on purpose; TRL warns about each batch that holds one.
    logging.getLogger("trl.trainer.grpo_trainer").setLevel(logging.ERROR)
    transformers.utils.logging.disable_progress_bar()


@contextmanager
def _stop_on_signal(session: Session) -> Iterator[None]:
    """SIGTERM finishes the step, or the wait for its groups, saves a checkpoint and ends the run."""

    def ask(*_: object) -> None:
        session.stop_asked = True

    previous = signal.signal(signal.SIGTERM, ask)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)
