"""How a task is put to a model: one reply per turn, in this process."""

from snooze_kit import InprocChatHarness


class LettersTemplateHarness(InprocChatHarness):
    """Exported so that verifiers takes it by default; its stock harness starts a process per rollout."""
