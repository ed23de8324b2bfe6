"""A verifiers v1 task set that knows nothing of this project: no curriculum fields, verifiers' own default keys."""

import asyncio

import verifiers.v1 as vf


class EchoData(vf.TaskData):
    word: str


class EchoTask(vf.Task[EchoData]):
    @vf.reward
    async def echoed(self, trace: vf.Trace) -> float:
        """1 for the word; the word "nan" is graded by a broken grader, "boom" by a crashing one, "slow" never."""
        reply = trace.last_reply.strip()
        if reply == "boom":
            raise ZeroDivisionError("the grader fell over")
        if reply == "slow":
            await asyncio.sleep(3600)
        return float("nan") if reply == "nan" else float(reply == self.data.word)


class EchoConfig(vf.TasksetConfig):
    words: tuple[str, ...] = ("red", "green", "blue", "black")
    twice: bool = False
    """Yield every task twice, which makes duplicate keys."""


class EchoTaskset(vf.Taskset[EchoTask, EchoConfig]):
    def load(self):
        words = self.config.words
        for word in words * 2 if self.config.twice else words:
            yield EchoTask(EchoData(prompt=f"Say {word}", word=word))


class Shell(vf.Task[EchoData]):
    """A task that prepares a runtime and therefore needs a harness."""

    async def setup(self, trace, runtime):
        await runtime.run(["true"], {})


__all__ = ["EchoTaskset"]
