"""Lab policies: language models small enough to train in minutes on one CPU thread, real in every other way.

config     LabConfig: the shape of the model and its warm-up
tokenizer  one token per character, three role markers, a chat template
warmup     supervised steps on (prompt, answer) pairs of the training split
policy     build_lab_policy: all of it, cached by content
"""

from snoozing_env.train.lab.config import LabConfig
from snoozing_env.train.lab.policy import build_lab_policy
from snoozing_env.train.lab.tokenizer import build_tokenizer

__all__ = ["LabConfig", "build_lab_policy", "build_tokenizer"]
