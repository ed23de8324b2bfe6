"""Small real objects for the rollout layer: a task set, and an engine that says what it is told to."""

from collections.abc import Callable, Sequence

from snoozing_env.errors import EngineError
from snoozing_env.rollout.engines.base import Completion, Endpoint, Message, OneAddress, SamplingParams

Script = Callable[[str, int], str]


class ScriptedEngine(OneAddress):
    """An instant engine: the reply to a prompt's k-th rollout is a function of both."""

    model = "scripted"

    def __init__(self, script: Script) -> None:
        self.script = script
        self.version = 0
        self.seeds: list[int] = []
        self.down = False

    def set_version(self, version: int) -> None:
        self.version = version

    async def start(self) -> None: ...

    async def endpoint(self) -> Endpoint:
        raise EngineError("the scripted engine has no address")

    async def close(self) -> None: ...

    async def sample(
        self, messages: Sequence[Message], *, n: int, seed: int, params: SamplingParams
    ) -> list[Completion]:
        if self.down:
            raise EngineError("no vLLM server answers at http://127.0.0.1:1")
        self.seeds.append(seed)
        prompt = str(messages[-1]["content"])
        return [self._completion(self.script(prompt, k)) for k in range(n)]

    def _completion(self, text: str) -> Completion:
        ids = tuple(text.encode()) or (0,)
        return Completion(
            prompt_ids=(1, 2),
            token_ids=ids,
            logprobs=(-0.5,) * len(ids),
            text=text,
            finish_reason="stop",
            version=self.version,
            last_version=self.version,
        )
