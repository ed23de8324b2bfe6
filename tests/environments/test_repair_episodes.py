"""Laws of repair episodes: tools, the harness, scoring, validation; harmless policies in boxes of the local backend."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
import verifiers.v1 as vf
from snooze_kit import reply_trace
from snooze_repair import RepairConfig, RepairTask, RepairTaskset, gold_turns
from snooze_repair.bank import Bug
from snooze_repair.scripted import SUBMIT, Call, create, repair, shell, view
from snooze_repair.tools import TOOLS, Outcome, Tools
from snooze_repair.workspace import Workspace
from snoozing_sandboxes import open_pool
from snoozing_sandboxes.runtime import PoolRuntime
from verifiers.v1.runtimes import make_runtime

from tests.environments.repair_world import Turns, environment, play_one


def tasks(**config: object) -> list[RepairTask]:
    return list(RepairTaskset(RepairConfig(**config)))


def called(*calls: Call, **options: int) -> list[Outcome]:
    """Outcomes of calls, one after the other in one box."""

    async def run() -> list[Outcome]:
        async with open_pool(backend="local", boxes=1, spares=0) as pool:
            runtime = PoolRuntime(pool, cpu_s=5.0, wall_s=1.0)
            await runtime.start()
            workspace = Workspace(runtime, file_bytes=options.get("file_bytes", 65_536))
            tools = Tools(workspace, output_chars=options.get("output_chars", 6000))
            try:
                return [await tools.call(call.name, json.dumps(call.arguments)) for call in calls]
            finally:
                await runtime.stop()

    return asyncio.run(run())


def texts(*calls: Call, **options: int) -> list[str]:
    return [outcome.text for outcome in called(*calls, **options)]


def edit(command: str, path: str, **more: object) -> Call:
    return Call(name="edit", arguments={"command": command, "path": path, **more})


class TestTools:
    def test_files_are_created_shown_and_changed(self) -> None:
        seen = texts(
            create("src/a.py", "x = 1\ny = 2\nz = 3\n"),
            edit("str_replace", "src/a.py", old_str="y = 2", new_str="y = 5"),
            view("src/a.py"),
            edit("view", "/box/src/a.py", first_line=2, last_line=2),
            shell("python3 src/a.py && cat src/a.py | wc -l"),
        )
        assert seen == [
            "wrote src/a.py",
            "changed src/a.py",
            "   1  x = 1\n   2  y = 5\n   3  z = 3",
            "   2  y = 5",
            "3",
        ]

    def test_what_cannot_be_done_is_said_in_words(self) -> None:
        seen = texts(
            create("a.py", "x = 1\nx = 1\n"),
            edit("str_replace", "a.py", old_str="x = 1", new_str="y"),
            edit("str_replace", "a.py", old_str="nope", new_str="y"),
            edit("str_replace", "a.py", old_str="", new_str="y"),
            view("missing.py"),
            view("../etc/passwd"),
            view("/etc/passwd"),
            edit("rename", "a.py"),
            Call(name="shell", arguments={"cmd": "ls"}),
            Call(name="python", arguments={}),
            edit("view", "a.py", first_line="one"),
        )
        assert seen[1:] == [
            "error: old_str must stand in a.py exactly once, it is there 2 times",
            "error: old_str must stand in a.py exactly once, it is there 0 times",
            "error: old_str must stand in a.py exactly once, it is there 0 times",
            "error: missing.py cannot be read (no such file, no regular file, or over the limit)",
            "error: '../etc/passwd' is not a path inside the project's folder",
            "error: '/etc/passwd' is not a path inside the project's folder",
            "error: edit has no command 'rename'; use view, str_replace or create",
            "error: command must be given, as a string",
            "error: there is no tool 'python'; use shell, edit or submit",
            "error: first_line must be a whole number",
        ]

    def test_arguments_that_are_no_object_are_refused(self) -> None:
        async def run() -> list[str]:
            async with open_pool(backend="local", boxes=1, spares=0) as pool:
                runtime = PoolRuntime(pool)
                await runtime.start()
                tools = Tools(Workspace(runtime, file_bytes=4096), output_chars=1000)
                seen = [(await tools.call("shell", text)).text for text in ("{", "[1]")]
                await runtime.stop()
                return seen

        first, second = asyncio.run(run())
        assert first.startswith("error: the arguments are not JSON")
        assert second == "error: the arguments must be a JSON object"

    def test_exit_codes_silence_and_time_limits_are_noted(self) -> None:
        seen = texts(shell("echo out; echo err >&2; exit 3"), shell("true"), shell("sleep 30"))
        assert seen[:2] == ["out\nerr\n[exit code 3]", "[no output]"]
        assert seen[2].endswith("[stopped: the command took too long]")

    def test_long_output_keeps_its_head_and_tail_and_says_how_much_is_missing(self) -> None:
        [seen] = texts(shell("seq 1 5000"), output_chars=900)
        assert len(seen) < 1000
        assert seen.startswith("1\n2\n")
        assert seen.endswith("4999\n5000")
        assert "characters left out ...]" in seen

    def test_large_files_are_neither_written_nor_shown(self) -> None:
        seen = texts(create("a", "x" * 2000), shell("seq 1 2000 > b"), view("b"), file_bytes=1024)
        assert seen[0] == "error: a would have 2000 bytes, the limit is 1024"
        assert seen[2].startswith("error: b cannot be read")

    def test_submit_is_said_by_its_own_outcome(self) -> None:
        assert called(SUBMIT) == [Outcome(text="Submitted.", submitted=True)]
        assert [tool["function"]["name"] for tool in TOOLS] == ["shell", "edit", "submit"]


class TestEpisodes:
    def played(self, turns: Turns, **options: object) -> vf.Trace:
        episode = play_one(environment(size=1, **options), lambda _: turns)
        assert episode.ok, episode.errors
        return episode.traces[0]

    def bug(self) -> Bug:
        return tasks(size=1)[0].bug

    def test_the_scripted_repair_earns_one_and_leaves_what_it_submitted_on_the_trace(self) -> None:
        trace = self.played(gold_turns(self.bug()))
        assert trace.reward == 1.0
        assert trace.info["files"] == self.bug().home().files
        assert trace.metrics == {"submitted": 1.0, "tests_passed": 1.0, "turns": 4.0, "tool_calls": 5.0}
        assert trace.info["repair"]["ended"] == "submitted"

    def test_a_submission_is_scored_again_from_the_trace_alone(self) -> None:
        trace = self.played(gold_turns(self.bug()))
        task = next(iter(environment(size=1).taskset))
        trace.metrics, trace.rewards = {}, {}
        asyncio.run(task.score(trace))
        assert trace.reward == 1.0

    def test_submitting_the_program_as_it_was_earns_nothing_but_its_share_is_told(self) -> None:
        trace = self.played([[SUBMIT]])
        broken, total = len(self.bug().fails), len(self.bug().home().checks.blocks)
        assert trace.reward == 0.0
        assert trace.metrics["tests_passed"] == pytest.approx((total - broken) / total)

    def test_a_repair_that_is_not_submitted_is_not_tested(self) -> None:
        trace = self.played([[repair(self.bug())]])
        assert trace.reward == 0.0
        assert trace.metrics["submitted"] == 0.0
        assert trace.info["repair"]["ended"] == "silent"
        assert trace.info["grading"]["reason"] == "nothing was submitted"

    def test_one_silent_turn_is_answered_with_a_hint(self) -> None:
        trace = self.played([[], [repair(self.bug())], [SUBMIT]])
        assert trace.reward == 1.0
        hints = [node.message.content for node in trace.nodes if node.message.role == "user"]
        assert "No tool was called" in str(hints[1])

    def test_an_episode_ends_after_its_turns_and_says_so_before(self) -> None:
        trace = self.played([[shell("true")]] * 40, task={"turns": 20})
        assert trace.info["repair"] == {"ended": "turns", "turns": 20, "tool_calls": 20}
        assert trace.reward == 0.0
        assert "[1 turns left]" in str(trace.nodes[-2].message.content)

    def test_a_limit_of_the_run_is_no_submission(self) -> None:
        bug = self.bug()
        env = environment(size=1)
        env.config.agent.max_turns = 1
        episode = play_one(env, lambda _: [[repair(bug)], [SUBMIT]])
        assert episode.traces[0].num_turns == 1
        assert episode.traces[0].info["repair"]["ended"] == "interrupted"
        assert episode.traces[0].reward == 0.0

    def test_tools_that_take_too_long_together_end_the_episode(self) -> None:
        trace = self.played([[shell("sleep 0.1")]] * 9, task={"tools_wall_s": 0.15})
        assert trace.info["repair"]["ended"] == "time"
        assert trace.metrics["turns"] < 9

    def test_a_file_that_cannot_be_read_is_the_policy_s_own_failure(self) -> None:
        path = self.bug().edit.path
        trace = self.played([[shell(f"rm {path}")], [SUBMIT]])
        assert trace.reward == 0.0
        assert trace.info["grading"]["reason"].startswith(f"{path} cannot be read")

    def test_other_files_are_not_submitted(self) -> None:
        trace = self.played([[create("extra.py", "x = 1"), repair(self.bug())], [SUBMIT]])
        assert set(trace.info["files"]) == set(self.bug().files())

    def test_more_calls_than_a_turn_may_hold_are_refused(self) -> None:
        trace = self.played([[shell("true")] * 10, [SUBMIT]])
        answers = [str(node.message.content) for node in trace.nodes if node.message.role == "tool"]
        assert sum("at most 8 calls" in answer for answer in answers) == 2


class TestValidation:
    """What `vf-validate` asks of a task, on the runtime that it would make."""

    def test_gold_is_valid_and_the_untouched_program_is_not_solved(self, tmp_path: Path) -> None:
        task = next(iter(environment(size=1).taskset))
        runtime = make_runtime(vf.SubprocessConfig())
        runtime.workdir = tmp_path

        async def run() -> tuple[bool | None, float]:
            trace = reply_trace(task, "")
            await task.setup(trace, runtime)
            gold = await task.validate(runtime)
            await task.finalize(trace, runtime)
            await task.score(trace, runtime)
            return gold, trace.reward

        assert asyncio.run(run()) == (True, 0.0)
