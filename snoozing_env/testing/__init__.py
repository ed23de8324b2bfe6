"""The contracts of a scheduler and of a buffer as test suites; yours can run them too.

    from snoozing_env.testing import LAWS, Subject

    @pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
    def test_my_scheduler_keeps_the_contract(law):
        law(Subject(build=my_build, floor=0.1))

    @pytest.mark.parametrize("law", BUFFER_LAWS.values(), ids=BUFFER_LAWS)
    def test_my_buffer_keeps_the_contract(law):
        law(BufferSubject(build=my_build, capacity=8, bound=4))

A law raises AssertionError, with what was seen, when it is broken. Only the state machines need hypothesis,
and import it when they run.
"""

from snoozing_env.testing.buffer_laws import BUFFER_LAWS, BufferLaw, check_buffer
from snoozing_env.testing.laws import LAWS, MODES, Build, Law, Subject, check_scheduler, outcome
from snoozing_env.testing.stocks import BUFFERS, BufferSubject, Stock

__all__ = [
    "BUFFERS",
    "BUFFER_LAWS",
    "LAWS",
    "MODES",
    "BufferLaw",
    "BufferSubject",
    "Build",
    "Law",
    "Stock",
    "Subject",
    "check_buffer",
    "check_scheduler",
    "outcome",
]
