"""A task set whose grader meets what graders meet: a worker process that dies, a box that is lost, a hang."""

import asyncio
import threading

import verifiers.v1 as vf
from snooze_kit import GradingPool

RELEASE = threading.Event()
"""Ends what "stalls"."""
POOL = GradingPool(workers=1, deadline_s=5.0)


class FaultyData(vf.TaskData):
    word: str
    pooled: bool


class FaultyTask(vf.Task[FaultyData]):
    @vf.reward
    async def graded(self, trace: vf.Trace) -> float:
        """1 for the word. "hangs" gets no verdict, "lost" loses its box, "stalls" blocks the event loop for a while,
        "dies" ends the worker process that grades it."""
        reply = trace.last_reply.strip()
        if reply == "hangs":
            await asyncio.sleep(3600)
        if reply == "lost":
            raise vf.SandboxError("the box is gone")
        if reply == "stalls":
            RELEASE.wait(20.0)
        if self.data.pooled:
            grading = await POOL.call_async(
                *(("os:_exit", 3) if reply == "dies" else ("builtins:len", reply))
            )
            if grading.status != "value":
                raise vf.TaskError(f"the grading worker ended with {grading.status}: {grading.detail}")
        return float(reply == self.data.word)


class FaultyConfig(vf.TasksetConfig):
    words: tuple[str, ...] = ("red", "green", "blue", "black")
    pooled: bool = False
    """Grade in a worker process."""


class FaultyTaskset(vf.Taskset[FaultyTask, FaultyConfig]):
    def load(self):
        for word in self.config.words:
            yield FaultyTask(FaultyData(prompt=f"Say {word}", word=word, pooled=self.config.pooled))


__all__ = ["FaultyTaskset"]
