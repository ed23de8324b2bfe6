"""Operations on the letters of made-up words, for the verifiers v1 format.

verifiers finds the task set, and the harness it uses by default, through `__all__`.
"""

from letters_template.harness import LettersTemplateHarness
from letters_template.taskset import LettersTemplateTaskset

__all__ = ["LettersTemplateHarness", "LettersTemplateTaskset"]
