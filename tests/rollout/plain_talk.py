"""A foreign environment of several turns and agents: a student answers, a fixed coach comments, the student answers again."""

import asyncio

import verifiers.v1 as vf


class TalkData(vf.TaskData):
    stalls: bool = False


class TalkTask(vf.Task[TalkData]):
    @vf.reward
    async def answered_twice(self, trace: vf.Trace) -> float:
        return float(trace.num_turns == 2)


class TalkTasksetConfig(vf.TasksetConfig):
    prompt: str = "1+1="
    stalls: bool = False


class TalkTaskset(vf.Taskset[TalkTask, TalkTasksetConfig]):
    def load(self):
        yield TalkTask(TalkData(prompt=self.config.prompt, stalls=self.config.stalls))


class TalkConfig(vf.EnvConfig):
    student: vf.AgentConfig = vf.AgentConfig()
    coach: vf.AgentConfig = vf.AgentConfig(sampling=vf.SamplingConfig(max_tokens=20))


class TalkEnv(vf.Env[TalkConfig]):
    async def setup(self, agents):
        agents.coach.trainable = False

    async def run(self, task, agents):
        async with agents.student.interaction(task) as student:
            first = await student.turn()
            if task.data.stalls:
                await asyncio.sleep(3600)
            comment = await agents.coach.run(vf.Task(vf.TaskData(prompt=f"Comment on: {first.last_reply}")))
            await student.turn(f"No, {comment.last_reply}")


__all__ = ["TalkEnv", "TalkTaskset"]
