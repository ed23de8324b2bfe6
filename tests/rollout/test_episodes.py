"""Laws of whole verifiers episodes, run by the local engine over HTTP on a tiny random lab policy."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import verifiers.v1 as vf
from plain_quiz import BoxedQuizTask, QuizData, QuizTask
from plain_tools import SumData, SumTask
from transformers import AutoModelForCausalLM, AutoTokenizer
from verifiers.v1.configs.agent import agent_config_fields
from verifiers.v1.episode import Episode

from snoozing_env.errors import ConfigError, EngineError
from snoozing_env.rollout.catalogue import Catalogue, EnvironmentConfig, load_catalogue
from snoozing_env.rollout.engines.base import Completion, SamplingParams
from snoozing_env.rollout.engines.fleet import FleetEngine
from snoozing_env.rollout.engines.local import LocalEngine
from snoozing_env.rollout.episodes import trajectory_of
from snoozing_env.rollout.runner import GroupRunner, RolloutConfig
from snoozing_env.rollout.trace import TraceMaker, close, messages_of, needs_harness
from snoozing_env.train.lab import LabConfig, build_lab_policy
from snoozing_env.train.lab.config import WarmupConfig
from snoozing_env.types import Group, Trajectory

torch.set_num_threads(1)

GREEDY = SamplingParams(max_tokens=8, temperature=0.0)


class RecordingEngine(LocalEngine):
    """A local engine that keeps what it sampled."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.sampled: list[Completion] = []

    async def sample_ids(self, *args: Any, **options: Any) -> list[Completion]:
        completions = await super().sample_ids(*args, **options)
        self.sampled += completions
        return completions


class Lab:
    """One engine and one event loop, as in a training run."""

    def __init__(self, folder: Path) -> None:
        self.model = AutoModelForCausalLM.from_pretrained(folder, dtype="float32")
        self.engine = RecordingEngine(self.model, AutoTokenizer.from_pretrained(folder, padding_side="left"))
        self.loop = asyncio.Runner()
        self.loop.run(self.engine.start())

    def roll(self, catalogue: Catalogue, index: int = 0, *, group_id: int = 0, **config: Any) -> Group:
        sampling = config.pop("sampling", None)

        async def run() -> Group:
            runner = GroupRunner(catalogue, self.engine, RolloutConfig(**config), seed=5)
            try:
                return await runner.run(index, group_id=group_id, sampling=sampling)
            finally:
                await runner.close()

        self.engine.sampled.clear()
        return self.loop.run(run())

    def close(self) -> None:
        self.loop.run(self.engine.close())
        self.loop.close()


class PreparedTask(QuizTask):
    async def setup(self, trace: vf.Trace, runtime: vf.Runtime) -> None: ...


class InspectedTask(QuizTask):
    async def finalize(self, trace: vf.Trace, runtime: vf.Runtime) -> None: ...


class StoppingTask(QuizTask):
    @vf.stop
    async def enough(self, trace: vf.Trace) -> bool:
        return True


class InterceptingTask(QuizTask):
    @vf.intercept
    async def redacted(self, request: vf.Request) -> vf.Request:
        return request


def policy(folder: Path, **shape: Any) -> Path:
    config = LabConfig(layers=1, initializer_range=0.12, warmup=WarmupConfig(steps=0), **shape)
    return build_lab_policy(config, cache_dir=folder)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    lab = Lab(policy(tmp_path_factory.mktemp("lab"), context=256, seed=3))
    yield lab
    lab.close()


def load(name: str, *, harness: str | None = None, **taskset: object) -> Catalogue:
    return load_catalogue(EnvironmentConfig(id=name, harness=harness, taskset=taskset))


def teacher_forced(lab: Lab, ids: tuple[int, ...], temperature: float = 1.0) -> torch.Tensor:
    """[T] log-probs of every token but the first, by one forward over the whole sequence."""
    with torch.no_grad():
        logits = lab.model(torch.tensor([ids]), use_cache=False).logits[0, :-1]
    return torch.log_softmax(logits / temperature, -1).gather(1, torch.tensor(ids[1:])[:, None])[:, 0]


def turns(trajectory: Trajectory) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """(everything before, sampled tokens) of each run of sampled tokens."""
    ids = trajectory.prompt_ids + trajectory.completion_ids
    mask = (0,) * len(trajectory.prompt_ids) + trajectory.mask
    starts = [i for i in range(len(ids)) if mask[i] and not mask[i - 1]]
    ends = [i for i in range(1, len(ids) + 1) if mask[i - 1] and not (*mask, 0)[i]]
    return [(ids[:start], ids[start:end]) for start, end in zip(starts, ends, strict=True)]


@pytest.mark.parametrize("index", range(6))
def test_the_harness_path_renders_and_samples_what_the_direct_path_does(lab: Lab, index: int) -> None:
    direct = lab.roll(load("plain-quiz"), index, sampling=GREEDY, group_size=2)
    served = lab.roll(load("plain-quiz", harness="snooze-kit"), index, sampling=GREEDY, group_size=2)
    assert served.key == direct.key
    for one, other in zip(direct.trajectories, served.trajectories, strict=True):
        logprobs = torch.tensor(one.logprobs) - torch.tensor(other.logprobs)
        assert logprobs.abs().max() < 1e-5
        assert replace(one, logprobs=(), text=one.text.strip()) == replace(other, logprobs=())
    assert all(direct.outcome.valid_G)
    assert direct.outcome.rewards_G.tolist() == served.outcome.rewards_G.tolist()


def test_two_turns_are_one_sample_whose_mask_is_exactly_what_was_sampled(lab: Lab) -> None:
    group = lab.roll(load("plain-talk"), group_size=24, max_tokens=4, temperature=1.3)
    made = {(c.prompt_ids, c.token_ids) for c in lab.engine.sampled}
    assert len(lab.engine.sampled) == 3 * 24, "two turns of the student and one of the coach"
    spoken = [turns(t) for t in group.trajectories]
    assert sum(len(t) == 2 for t in spoken) >= 3, "a reply of plain characters is continued in place"
    for trajectory, said in zip(group.trajectories, spoken, strict=True):
        assert said
        assert set(said) <= made, "each run of mask 1 is one whole completion after the very prompt it had"
        assert (trajectory.valid, trajectory.reward) == (True, 1.0)
    assert group.outcome.tokens == sum(len(ids) for said in spoken for _, ids in said)


def test_log_probs_of_both_turns_are_those_of_a_teacher_forced_forward_of_the_conversation(lab: Lab) -> None:
    group = lab.roll(load("plain-talk"), group_size=8, max_tokens=4, temperature=1.3)
    for t in group.trajectories:
        expected = teacher_forced(lab, t.prompt_ids + t.completion_ids, 1.3)[len(t.prompt_ids) - 1 :]
        mask = torch.tensor(t.mask)
        assert (expected * mask - torch.tensor(t.logprobs)).abs().max() < 1e-5
        assert (torch.tensor(t.logprobs) == 0)[mask == 0].all()


def test_an_agent_that_is_not_trained_never_becomes_a_sample(lab: Lab) -> None:
    group = lab.roll(load("plain-talk"), group_size=6, max_tokens=4)
    assert max(len(c.token_ids) for c in lab.engine.sampled) > 4, "the coach says more than the student may"
    start = lab.engine.render([{"role": "user", "content": "1+1="}])
    for trajectory in group.trajectories:
        assert trajectory.prompt_ids[: len(start) - 1] == start[:-1]
        assert all(len(ids) <= 4 for _, ids in turns(trajectory))


def test_an_episode_repeats_under_its_dispatch_number_and_each_turn_and_rollout_has_its_own_noise(
    lab: Lab,
) -> None:
    def said(group_id: int) -> list[tuple[int, ...]]:
        group = lab.roll(load("plain-talk"), group_id=group_id, group_size=6, max_tokens=4, temperature=1.3)
        return [t.completion_ids for t in group.trajectories]

    first, again, other = said(1), said(1), said(2)
    assert first == again
    assert set(first).isdisjoint(other)
    assert len(set(first)) == 6


def played(text: str, *, reward: float, trainable: bool = True, ok: bool = True) -> vf.Trace:
    """A finished one-turn trace whose completion has one token per character."""
    task = QuizTask(QuizData(prompt="a", word="a"))
    completion = Completion(
        prompt_ids=(1, 2), token_ids=tuple(text.encode()), logprobs=(-0.5,) * len(text), text=text,
        finish_reason="stop", version=0, last_version=0,
    )  # fmt: skip
    trace = TraceMaker("lab").open(task, messages_of(task)[0], completion, started=0.0)
    trace.agent = trace.agent.model_copy(update={"trainable": trainable})
    trace.record_reward("odd", reward)
    if not ok:
        trace.record_error(ValueError("lost its box"))
    close(trace, ok=ok)
    return trace


def test_of_several_trained_agents_the_one_that_said_most_is_the_sample_with_its_own_reward() -> None:
    short, long = played("ab", reward=0.25), played("abcde", reward=0.75)
    fixed = played("much longer", reward=1.0, trainable=False)
    for traces in ([short, long, fixed], [fixed, long, short]):
        chosen = trajectory_of(episode_of(traces), complete=True, version=1, last_version=2)
        assert (chosen.text, chosen.reward, chosen.valid) == ("abcde", 0.75, True)
        assert (chosen.version, chosen.last_version, len(chosen.completion_ids)) == (1, 2, 5)
    nobody = trajectory_of(episode_of([fixed]), complete=True, version=1, last_version=1)
    assert (nobody.valid, nobody.mask, nobody.error) == (False, (0,), "no agent sampled a token to train on")


def test_the_environment_s_own_word_decides_whether_a_lost_agent_costs_the_episode() -> None:
    episode = episode_of([played("abc", reward=1.0), played("x", reward=0.0, trainable=False, ok=False)])
    spared, lost = [trajectory_of(episode, complete=c, version=0, last_version=0) for c in (True, False)]
    assert (spared.valid, spared.reward, spared.error) == (True, 1.0, "")
    assert (lost.valid, lost.reward, lost.error) == (False, 0.0, "ValueError: lost its box")


def episode_of(traces: list[vf.Trace]) -> Episode:
    return Episode(task=traces[0].task, traces=traces, ok=all(t.ok for t in traces))


def test_versions_span_the_episode(lab: Lab) -> None:
    lab.engine.set_version(7)
    group = lab.roll(load("plain-talk"), group_size=1, max_tokens=2)
    lab.engine.set_version(0)
    assert (group.outcome.version, group.outcome.last_version) == (7, 7)


@pytest.mark.parametrize(
    ("environment", "limits", "reason"),
    [
        (
            {"name": "plain-quiz", "harness": "plain-crash"},
            {},
            "HarnessError: .*exited 3: segmentation fault",
        ),
        ({"name": "plain-quiz", "boxed": True, "words": ["raises"]}, {}, "TaskError: .*the grader fell over"),
        (
            {"name": "plain-quiz", "boxed": True, "words": ["slow"]},
            {"deadline_s": 0.2},
            "scoring_timeout: agent 'agent' took longer",
        ),
        (
            {"name": "plain-talk", "stalls": True},
            {"episode_s": 0.5},
            r"TimeoutError: TalkEnv\.run\(\) exceeded its 0\.5s deadline",
        ),
        ({"name": "plain-talk", "prompt": "long " * 48}, {}, r"ProviderError: .*2\d\d.*context"),
    ],
)
def test_what_breaks_inside_an_episode_makes_it_invalid_with_its_reason(
    lab: Lab, environment: dict[str, Any], limits: dict[str, float], reason: str
) -> None:
    group = lab.roll(load(**environment), group_size=2, max_tokens=6, **limits)
    assert group.outcome.valid_G is not None
    assert group.outcome.valid_G.tolist() == [False, False]
    for trajectory in group.trajectories:
        assert trajectory.reward == 0
        with pytest.raises(AssertionError, match=reason):
            raise AssertionError(trajectory.error)


def test_a_task_whose_reward_reads_the_runtime_is_rolled_out_by_a_harness(lab: Lab) -> None:
    boxed = lab.roll(load("plain-quiz", boxed=True), sampling=GREEDY, group_size=1)
    direct = lab.roll(load("plain-quiz"), sampling=GREEDY, group_size=1)
    assert boxed.trajectories[0].valid
    assert boxed.trajectories[0].completion_ids == direct.trajectories[0].completion_ids
    assert boxed.trajectories[0].reward == direct.trajectories[0].reward


@pytest.mark.parametrize("environment", ["plain-quiz", "plain-talk"])
def test_an_engine_that_fails_an_episode_ends_the_run_and_is_no_failed_rollout(
    tmp_path: Path, environment: str
) -> None:
    with closing(Lab(policy(tmp_path, context=64))) as lab:
        lab.model.lm_head = torch.nn.Linear(3, 128)  # the wrong width, as after a bad weight load
        with pytest.raises(
            EngineError, match=r"the engine failed an episode: .*failed on \d requests: RuntimeError"
        ):
            lab.roll(load(environment, harness="snooze-kit"), group_size=2)


def test_a_fleets_episodes_go_to_every_engine_and_around_one_that_fails(tmp_path: Path) -> None:
    async def play() -> list[str]:
        loaded = {name: _loaded(folder) for name in ("a", "b")}
        engines = {name: RecordingEngine(*parts) for name, parts in loaded.items()}
        fleet = FleetEngine(engines)
        await fleet.start()
        runner = GroupRunner(quiz, fleet, RolloutConfig(group_size=2, max_tokens=2), seed=5)
        try:
            await asyncio.gather(*(runner.run(i, group_id=i) for i in range(2)))
            assert all(engine.sampled for engine in engines.values())
            loaded["a"][0].lm_head = torch.nn.Linear(3, 128)  # the wrong width, as after a bad weight load
            with pytest.raises(EngineError, match="the engine failed an episode"):
                await runner.run(0, group_id=2)
            assert (await runner.run(0, group_id=3)).trajectories[0].error == ""
        finally:
            await runner.close()
            await fleet.close()
        return [member.condition for member in fleet.members]

    quiz = load("plain-quiz", harness="snooze-kit")
    folder = policy(tmp_path, context=128)
    assert asyncio.run(play()) == ["down", "serving"]


def _loaded(folder: Path) -> tuple[Any, Any]:
    model = AutoModelForCausalLM.from_pretrained(folder, dtype="float32")
    return model, AutoTokenizer.from_pretrained(folder, padding_side="left")


def test_episodes_run_in_one_event_loop_after_another(tmp_path: Path) -> None:
    folder = policy(tmp_path, context=128)
    for _ in range(2):
        with closing(Lab(folder)) as lab:
            group = lab.roll(load("plain-quiz", harness="snooze-kit"), group_size=4, max_tokens=2)
            assert [t.error for t in group.trajectories] == [""] * 4


class TestPaths:
    """Which tasks take the direct path, and who plays the others."""

    @pytest.mark.parametrize(
        ("task", "reason"),
        [
            (QuizTask(QuizData(prompt="a", word="a")), ""),
            (BoxedQuizTask(QuizData(prompt="a", word="a")), "a reward reads the runtime"),
            (QuizTask(QuizData(word="a")), "the user opens the conversation"),
            (
                QuizTask(QuizData(prompt="a", word="a", image="python:3")),
                "the task brings an image or skills",
            ),
            (PreparedTask(QuizData(prompt="a", word="a")), "the task prepares or inspects a runtime"),
            (InspectedTask(QuizData(prompt="a", word="a")), "the task prepares or inspects a runtime"),
            (StoppingTask(QuizData(prompt="a", word="a")), "the task has stop conditions"),
            (InterceptingTask(QuizData(prompt="a", word="a")), "the task intercepts model calls"),
            (SumTask(SumData(prompt="a", answer=1)), "the task offers tools"),
        ],
    )
    def test_a_task_is_direct_when_one_reply_and_its_trace_are_all_there_is(self, task, reason: str) -> None:
        env = load("plain-quiz").env
        assert needs_harness(env, task, None) == reason
        assert needs_harness(env, task, "null") == "the recipe names harness 'null'"

    def test_an_environment_with_an_episode_of_its_own_is_never_direct(self) -> None:
        talk = load("plain-talk")
        assert needs_harness(talk.env, talk.tasks[0], None) == "TalkEnv runs its own episode"

    def test_a_harness_that_the_package_exports_does_not_force_an_episode(self) -> None:
        math = load("snooze-math", size=1)
        assert needs_harness(math.env, math.tasks[0], math.config.harness) == ""
        assert played_by(math) == {"agent": ("snooze-math", "subprocess")}

    def test_seats_that_name_nothing_get_the_chat_harness_and_no_remote_sandbox(self) -> None:
        assert played_by(load("plain-quiz")) == {"agent": ("snooze-kit", "subprocess")}
        assert played_by(load("plain-tools")) == {"agent": ("null", "subprocess")}
        both = ("snooze-kit", "subprocess")
        assert played_by(load("plain-talk")) == {"student": both, "coach": both}
        assert played_by(load("plain-talk", harness="plain-crash")) == {
            "student": ("plain-crash", "subprocess"),
            "coach": ("plain-crash", "subprocess"),
        }

    def test_parts_that_do_not_go_together_are_refused_before_the_first_rollout(self, lab: Lab) -> None:
        with pytest.raises(ConfigError, match=r"environment\.harness: harness 'snooze-kitt' not found"):
            load("plain-quiz", harness="snooze-kitt")
        with pytest.raises(ConfigError, match=r"harness is 'snooze-kit': .*does not support MCP tools"):
            lab.roll(load("plain-tools", harness="snooze-kit"))
        with pytest.raises(ConfigError, match=r"SumTask offers tools .*tool_parser is ''; set it .*qwen3"):
            lab.roll(load("plain-tools"))


def played_by(catalogue: Catalogue) -> dict[str, tuple[str, str]]:
    seats = agent_config_fields(catalogue.env.config)
    harnesses = catalogue.env.config.agent_harnesses()
    return {name: (harnesses[name].id, seat.runtime.type) for name, seat in seats.items()}
