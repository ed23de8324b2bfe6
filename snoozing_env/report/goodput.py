"""Goodput in numbers: the shares of a run's time and tokens, side by side with other runs' (A9)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from snoozing_env.goodput import LOST, PHASES, STATES, Cause
from snoozing_env.goodput.account import LEVELS, goodput
from snoozing_env.report.compare import Run, count
from snoozing_env.report.scale import share, short

LOST_TO = {"staleness": "lost to staleness", "filters": "lost to filters", "failures": "lost to failures"}
CAUSES: Mapping[Cause, str] = {
    "over_age": "finished too old", "expired": "waited too long", "all_max": "all correct", "all_min": "all wrong",
    "no_spread": "equal rewards", "out_of_band": "outside the band", "invalid": "no verdict",
    "too_few_valid": "too few verdicts", "undone": "undone by a kill",
}  # fmt: skip
"""In words; the time of cancelled groups is lost too, but nobody counted their tokens."""

TRAINER: Mapping[str, tuple[str, ...]] = {
    "training": ("time/training_s",),
    "waiting for rollouts": ("time/waiting_s",),
    "syncing weights": ("time/syncing_s",),
    "evaluating": ("time/evaluating_s",),
    "saving": ("time/saving_s",),
    "starting": ("time/starting_s",),
    "undone by kills": ("time/undone_s",),
}
ENGINE: Mapping[str, tuple[str, ...]] = {
    "generating, trained": ("work/trained_s",),
    "generating, not yet trained": ("work/waiting_s", "work/in_flight_s"),
    **{f"generating, {LOST_TO[family]}": (f"work/lost_{family}_s",) for family in LOST},
    "waiting for the trainer": ("engine/waiting_s",),
    "taking weights": ("engine/paused_s",),
    "evaluating": ("engine/evaluating_s",),
    "failed": ("engine/failed_s",),
    "undone by kills": ("engine/undone_s",),
}
TOKENS: Mapping[str, tuple[str, ...]] = {
    "trained": ("tokens/trained",),
    **{
        name: (key,)
        for family, causes in LOST.items()
        for name, key in (
            (LOST_TO[family], f"tokens/lost_{family}"),
            *((f"· {CAUSES[c]}", f"tokens/lost_{family}/{c}") for c in causes if c in CAUSES),
        )
    },
    "not yet trained": ("tokens/waiting",),
}
MAIN = (
    "goodput, time", "goodput, tokens", "trainer, waiting for rollouts", "engine, waiting for the trainer",
    *(f"tokens, {name}" for name in LOST_TO.values()),
)  # fmt: skip
"""What the terminal shows, too."""
GOODPUT = {
    "time": "time",
    "trainer": "time of the trainer",
    "engine": "time of the engine",
    "tokens": "tokens",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One measure of every run."""

    side: str
    """ "goodput", "trainer", "engine" or "tokens": what it is a share of."""
    name: str
    cells: tuple[str, ...]

    @property
    def title(self) -> str:
        """The name where lines of all sides stand together."""
        return f"{self.side}, {self.name}"


def totals(run: Run) -> dict[str, float]:
    """What the steps of a run add up to, and the levels at its end; empty for a log without an account."""
    logged = [step.goodput for step in run.steps if step.goodput]
    names = dict.fromkeys(name for step in logged for name in step)
    return {
        name: logged[-1].get(name, 0.0) if name in LEVELS else sum(step.get(name, 0.0) for step in logged)
        for name in names
    }


def wall(found: Mapping[str, float]) -> float:
    """Seconds of a step or a whole run."""
    return sum(found.get(f"time/{phase}_s", 0.0) for phase in PHASES)


def lines(runs: Sequence[Run]) -> list[Line]:
    """Shares of time and tokens, a cell for each run; what is nothing in every run is left out."""
    found = [totals(run) for run in runs]
    engine = [sum(t.get(f"engine/{state}_s", 0.0) for state in STATES) for t in found]
    rows = [
        Line(side="goodput", name=name, cells=tuple(_share(goodput(t).get(f"goodput/{key}")) for t in found))
        for key, name in GOODPUT.items()
    ]
    rows += _lines("trainer", TRAINER, found, [wall(t) for t in found])
    rows += _lines("engine", ENGINE, found, engine)
    flights = (
        t.get("engine/flight_s", 0.0) / whole if whole else None
        for t, whole in zip(found, engine, strict=True)
    )
    rows.append(
        Line(
            side="engine",
            name="groups in flight, mean",
            cells=tuple("–" if n is None else short(round(n, 2)) for n in flights),
        )
    )
    made = [t.get("tokens/generated", 0.0) for t in found]
    rows.append(
        Line(side="tokens", name="generated", cells=tuple(count(round(n)) if n else "–" for n in made))
    )
    rows += _lines("tokens", TOKENS, found, made)
    rows += _lines("tokens", {"trained once more": ("tokens/replayed",)}, found, made)
    return [row for row in rows if any(cell not in ("–", "0", "0 %") for cell in row.cells)]


def _lines(
    side: str,
    measures: Mapping[str, Sequence[str]],
    found: Sequence[Mapping[str, float]],
    wholes: Sequence[float],
) -> list[Line]:
    return [
        Line(
            side=side,
            name=name,
            cells=tuple(
                _share(sum(t.get(key, 0.0) for key in keys) / whole if whole else None)
                for t, whole in zip(found, wholes, strict=True)
            ),
        )
        for name, keys in measures.items()
    ]


def _share(value: float | None) -> str:
    return "–" if value is None else share(value)
