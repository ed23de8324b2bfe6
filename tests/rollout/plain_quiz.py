"""A foreign single-turn task set: any reply earns something, some words break their grader, some read the runtime."""

import asyncio

import verifiers.v1 as vf


class QuizData(vf.TaskData):
    word: str


class QuizTask(vf.Task[QuizData]):
    @vf.reward
    async def odd(self, trace: vf.Trace) -> float:
        """1 for a reply of odd length."""
        if self.data.word == "raises":
            raise ZeroDivisionError("the grader fell over")
        if self.data.word == "slow":
            await asyncio.sleep(3600)
        return float(len(trace.last_reply) % 2)


class BoxedQuizTask(QuizTask):
    @vf.reward(weight=0.0)
    async def box_lives(self, trace: vf.Trace, runtime: vf.Runtime) -> float:
        return float((await runtime.run(["true"], {})).exit_code == 0)


class QuizConfig(vf.TasksetConfig):
    words: tuple[str, ...] = ("red", "green", "a much longer question")
    boxed: bool = False


class QuizTaskset(vf.Taskset[QuizTask, QuizConfig]):
    def load(self):
        cls = BoxedQuizTask if self.config.boxed else QuizTask
        for word in self.config.words:
            turns = [vf.UserMessage(content="hi"), vf.AssistantMessage(content="yes?")]
            yield cls(QuizData(prompt=f"Say {word}", system_prompt="Be brief.", word=word))
            yield cls(QuizData(prompt=[*turns, vf.UserMessage(content=f"Say {word}")], word=word))


__all__ = ["QuizTaskset"]
