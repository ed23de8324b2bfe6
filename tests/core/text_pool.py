"""Word problems whose difficulty depends on their text, and on something that no text tells.

logit of the failure rate = topic + wording + how many steps + noise; the noise is the part that stays hidden.
"""

from dataclasses import dataclass

import numpy as np

from snoozing_env import TaskInfo

TOPICS = {
    "sharing apples among friends": -1.6,
    "buying tickets with a discount": -0.6,
    "trains that meet on a track": 0.6,
    "mixing salt solutions": 1.2,
    "the age of two brothers": 0.0,
    "areas of painted walls": 0.4,
    "interest on a loan": 1.6,
    "counting coins in a jar": -1.2,
}
WORDINGS = {
    "Here is a story about {}.": 0.0,
    "Think carefully about {}.": -0.3,
    "Consider, hypothetically, {}.": 0.4,
}
STEPS = {"First": 0.0, "Then": 0.35, "Later": 0.35, "Meanwhile": 0.5, "Finally": 0.35}
NAMES = ("Ann", "Bo", "Cleo", "Dmitri", "Esra", "Femi", "Gus", "Hana", "Ivo", "June")


@dataclass(frozen=True)
class TextPool:
    tasks: list[TaskInfo]
    difficulty_N: np.ndarray
    """[N] true failure rates."""


def text_pool(n: int, seed: int, *, noise: float = 0.5) -> TextPool:
    """n tasks; `noise` is the deviation of what the text does not tell, in logits. The rest has one of about 1.3."""
    rng = np.random.default_rng([seed, 3])
    texts, logits = [], []
    for i in range(n):
        topic, wording = str(rng.choice(list(TOPICS))), str(rng.choice(list(WORDINGS)))
        steps = list(STEPS)[: int(rng.integers(1, len(STEPS) + 1))]
        said = [f"{s} {rng.choice(NAMES)} changes it by {rng.integers(2, 99)}." for s in steps]
        texts.append(" ".join([wording.format(topic), *said, f"What is the answer to number {i}?"]))
        logits.append(TOPICS[topic] + WORDINGS[wording] + sum(STEPS[s] for s in steps) - 0.8)
    hidden = np.array(logits) + noise * rng.standard_normal(n)
    tasks = [TaskInfo(key=str(i), text=text) for i, text in enumerate(texts)]
    return TextPool(tasks, 1 / (1 + np.exp(-hidden)))
