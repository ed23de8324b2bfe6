"""Fit the detector's weights to human labels and write them into the package.

    python environments/snooze_refusal/fit_detector.py ../shared/data/safety [--write]

Logistic regression with an L2 penalty (Newton's method, numpy) on two of the five annotated XSTest files
(CC BY 4.0): Llama-2 with a new system prompt and Mistral with its guard prompt. The other three files are held out.
Full compliance = 0, full refusal = 1, partial refusal = 1. Development only; not in the wheel.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import numpy as np
from snooze_refusal.detection.features import features
from snooze_refusal.detection.text import read

FITTED = ("llama2new", "mistralguard")
HELD_OUT = ("gpt4", "llama2orig", "mistralinstruct")
PENALTY = 1.0
PARTIAL_WEIGHT = 1.0
"""How much a partial refusal counts in the fit, as a refusal."""
STEPS = 30
HEADER = '''"""Weights of the detector's features, in log-odds; written by fit_detector.py, not by hand.

Fitted to the human labels of two XSTest completion files (Röttger et al. 2024, CC BY 4.0): {files}.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

'''


def load(folder: Path, name: str) -> list[dict[str, str]]:
    """Rows of one annotated file."""
    with (folder / f"xstest_completions_{name}_gpteval.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def fit(rows: list[dict[str, str]]) -> tuple[float, dict[str, float]]:
    """Bias and weights, rounded to three decimals."""
    values = [features(row["prompt"], read(row["completion"])) for row in rows]
    names = list(values[0])
    x = np.array([[1.0, *(value[name] for name in names)] for value in values])
    kind = np.array([int(row["final_label"][0]) for row in rows])
    y, weight = (kind > 1).astype(float), np.where(kind == 3, PARTIAL_WEIGHT, 1.0)
    penalty = np.diag([1e-6, *[PENALTY] * len(names)])
    beta = np.zeros(x.shape[1])
    for _ in range(STEPS):
        mean = 1 / (1 + np.exp(-x @ beta))
        slope = x.T @ (weight * (mean - y)) + penalty @ beta
        curve = (x * (weight * mean * (1 - mean))[:, None]).T @ x + penalty
        beta -= np.linalg.solve(curve, slope)
    return round(float(beta[0]), 3), {
        name: round(float(b), 3) for name, b in zip(names, beta[1:], strict=True)
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="folder with xstest_completions_*_gpteval.csv")
    parser.add_argument("--write", action="store_true", help="overwrite snooze_refusal/detection/weights.py")
    options = parser.parse_args()
    bias, weights = fit([row for name in FITTED for row in load(options.folder, name)])
    lines = [f"BIAS = {bias}", "WEIGHTS: Mapping[str, float] = MappingProxyType(", "    {"]
    lines += [f'        "{name}": {value},' for name, value in weights.items()]
    text = HEADER.format(files=" and ".join(FITTED)) + "\n".join([*lines, "    }", ")"]) + "\n"
    if options.write:
        target = Path(__file__).parent / "snooze_refusal" / "detection" / "weights.py"
        target.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
