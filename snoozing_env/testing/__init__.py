"""The contract of a scheduler as a test suite; yours can run it too.

    from snoozing_env.testing import LAWS, Subject

    @pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
    def test_my_scheduler_keeps_the_contract(law):
        law(Subject(build=my_build, floor=0.1))

A law raises AssertionError, with what was seen, when it is broken. Only the state machine needs hypothesis,
and imports it when it runs.
"""

from snoozing_env.testing.laws import LAWS, MODES, Build, Law, Subject, check_scheduler, outcome

__all__ = ["LAWS", "MODES", "Build", "Law", "Subject", "check_scheduler", "outcome"]
