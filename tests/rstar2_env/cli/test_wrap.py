"""Claims about ``--wrap``, ``rstar2 list wrappers``, and one's own files on the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from cli_runner import run

from rstar2_env.wrappers import WRAPPERS, read_episodes

ID = "rstar2/MathTool-v0"
FAULTS = "fault_injection:rate=1,kinds=timeout"
OWN = """\
import gymnasium as gym
from rstar2_env.env.grading import GoldGrader
from rstar2_env.env.tool_env import ToolEnv


class DivisorsEnv(ToolEnv):
    def __init__(self, *, problems=None, **options):
        super().__init__(
            problems=problems or [{"question": "How many divisors has 12?", "answer": "6"}],
            tools=[],
            grader=GoldGrader(),
            **options,
        )


class Six:
    def __init__(self, answer: int = 6):
        self.answer = answer

    def reset(self, observation, info, *, seed): ...

    def act(self, observation, info):
        return f"<answer>\\\\boxed{{{self.answer}}}</answer>"


class Louder(gym.Wrapper):
    def step(self, action):
        text, reward, *rest = self.env.step(action)
        return text, reward * 2, *rest


gym.register("mine/Divisors-v0", entry_point="divisors:DivisorsEnv")
"""


@pytest.fixture
def file(tmp_path) -> Path:
    path = tmp_path / "worked.jsonl"
    lines = [{"question": f"{n}+1?", "answer": n + 1, "calculations": [f"{n}+1={n + 1}"]} for n in range(4)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_wrappers_are_listed_with_a_line_and_their_options():
    listed = json.loads(run("list", "wrappers", "--json").stdout)
    assert set(listed) == set(WRAPPERS)
    assert listed["tool_budget"]["options"] == ["calls", "per_turn"]
    assert all(line["what"].endswith(".") for line in listed.values())
    assert "rate=0.1" in run("list", "wrappers").output


def test_eval_injects_the_faults_that_it_is_told_to(file):
    done = run("eval", ID, "--agent", "calculations", "--problems", file, "--wrap", FAULTS, "--json")
    figures = json.loads(done.stdout)
    assert figures["injected"] == {"timeout": 4}
    assert figures["pass_rate"]["value"] == 1.0
    plain = run("eval", ID, "--agent", "calculations", "--problems", file, "--json")
    assert json.loads(plain.stdout)["injected"] == {}


def test_the_first_wrapper_is_innermost_and_its_file_is_written(file, tmp_path):
    record = f"record_episodes:path={tmp_path / 'seen.jsonl'}"
    command = ("eval", ID, "--agent", "calculations", "--problems", file, "--json")
    done = run(*command, "--wrap", "reward_shaping:components=answer_format,task_weight=0", "--wrap", record)
    assert json.loads(done.stdout)["reward"]["value"] == 1.0
    assert [line["reward"] for line in read_episodes(tmp_path / "seen.jsonl")] == [1.0] * 4


def test_validate_and_traces_take_wrappers(file, tmp_path):
    done = run(
        "validate", ID, "--problems", file, "--no-contract", "--wrap", "reward_shaping:components=[],task_weight=2"
    )
    assert done.exit_code == 1
    assert "earned 2" in done.output
    out = tmp_path / "traces.jsonl"
    done = run("traces", "--problems", file, "--out", out, "--wrap", "observation_limit:limit=1,cut=head", "--json")
    assert json.loads(done.stdout)["kept"] == 4
    assert "1 characters left out" in out.read_text()


def test_tools_are_named_on_the_command_line(tmp_path):
    command = ("eval", "rstar2/Countdown-v0", "--agent", "oracle", "--episodes", "1")
    done = run(*command, "--tool", "python", "--tool", "notebook", "--out", tmp_path / "run")
    assert done.exit_code == 0, done.output
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert config["env_options"]["tools"] == ["python", "notebook"]
    done = run(*command, "--tool", "pyton")
    assert "Did you mean 'python'" in " ".join(done.output.split())
    done = run(*command, "--tool", "python", "--set", "env.tools=notebook")
    assert (done.exit_code, "tools" in done.output) == (2, True)


@pytest.mark.parametrize(
    ("wrapper", "said"),
    [
        ("fault_injektion", "no wrapper named 'fault_injektion'. Did you mean 'fault_injection'?"),
        ("fault_injection:rat=1", "The wrapper 'fault_injection' has no option 'rat'. Did you mean 'rate'?"),
        ("fault_injection:rate=x", "The wrapper 'fault_injection:rate=x': rate must be"),
        ("fault_injection:rate=2", "The wrapper 'fault_injection:rate=2': `rate` must be"),
        ("fault_injection:0.1", "options of the wrapper 'fault_injection' as name=value, got '0.1'"),
        ("fault_injection:kinds=lots", "no kind of fault named 'lots'. Did you mean 'lost'?"),
        ("tool_budget:calls=1.5", "The wrapper 'tool_budget:calls=1.5': calls must be an integer"),
        ("observation_limit", "The wrapper 'observation_limit' needs limit"),
        ("./nowhere.py:Wrapper", "nowhere.py does not exist"),
    ],
)
@pytest.mark.parametrize("command", [("eval", ID, "--agent", "oracle"), ("validate", ID), ("traces", "--out", "OUT")])
def test_a_wrong_wrapper_is_told_in_a_line(command, wrapper, said, tmp_path):
    command = [part.replace("OUT", str(tmp_path / "out.jsonl")) for part in command]
    done = run(*command, "--problems", "arithmetic", "--episodes", "1", "--wrap", wrapper)
    assert done.exit_code == 2
    assert said in " ".join(done.output.split())
    assert "Traceback" not in done.output


@pytest.mark.parametrize("flag", ["--wrap", "--eval-wrap"])
def test_train_tells_a_wrong_wrapper_before_it_loads_a_model(flag, tmp_path):
    done = run(
        "train", "grpo_clip_higher", "--model", "no-such-model", "--out", tmp_path / "run", flag, "tool_bugdet:calls=3"
    )
    assert done.exit_code == 2
    assert "Did you mean 'tool_budget'" in done.output


class TestOnesOwn:
    """A console script does not have the current folder on its path, so these are real processes."""

    @pytest.fixture
    def folder(self, tmp_path) -> Path:
        (tmp_path / "divisors.py").write_text(OWN)
        return tmp_path

    def rstar2(self, folder, *arguments):
        # As the console script does: its own folder is on the path, the current one is not.
        code = "import sys; sys.path = [p for p in sys.path if p]; from rstar2_env.cli import main; main()"
        return subprocess.run(
            [sys.executable, "-I", "-c", code, *arguments], cwd=folder, capture_output=True, text=True, timeout=400
        )

    @pytest.mark.parametrize(
        "env",
        [
            "divisors:mine/Divisors-v0",
            "./divisors.py:mine/Divisors-v0",
            "./divisors.py",
            "divisors:DivisorsEnv",
            "./divisors.py:DivisorsEnv",
        ],
    )
    def test_an_environment_of_the_current_folder_is_played(self, folder, env):
        done = self.rstar2(folder, "eval", env, "--agent", "./divisors.py", "--json")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["pass_rate"]["value"] == 1.0

    def test_options_and_wrappers_of_ones_own(self, folder):
        agent = ("--agent", "divisors:Six:answer=7")
        done = self.rstar2(folder, "eval", "./divisors.py", *agent, "--json")
        assert json.loads(done.stdout)["pass_rate"]["value"] == 0.0
        done = self.rstar2(
            folder, "eval", "./divisors.py", "--agent", "./divisors.py", "--wrap", "./divisors.py", "--json"
        )
        assert json.loads(done.stdout)["reward"]["value"] == 2.0

    def test_it_is_validated(self, folder):
        done = self.rstar2(folder, "validate", "divisors:mine/Divisors-v0")
        assert done.returncode == 0, done.stdout + done.stderr

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (("validate", "divisors:mine/Divisor-v0"), "Did you mean 'mine/Divisors-v0'?"),
            (("validate", "divisor:mine/Divisors-v0"), "There is no module 'divisor', neither in the current folder"),
            (
                ("validate", "./divisors.py:Divisors"),
                "holds no environment named 'Divisors'. Did you mean 'DivisorsEnv'?",
            ),
            (("validate", "./broken.py"), "broken.py, line 2: NameError"),
            (("validate", "CartPole-v1"), "CartPole-v1 is not a text environment"),
            (("validate", "./divisors.py", "--set", "env.max_turn=3"), "Did you mean 'max_turns'?"),
        ],
    )
    def test_a_mistake_is_one_line_and_where_to_read_on(self, folder, arguments, said):
        (folder / "broken.py").write_text("import gymnasium\nundefined_name\n")
        done = self.rstar2(folder, *arguments)
        assert done.returncode == 2
        assert said in done.stderr
        assert "Traceback" not in done.stderr
        told, read_on = done.stderr.strip().splitlines()
        assert told.startswith("Error: ")
        assert read_on.startswith("docs: rstar2 help troubleshooting#")
