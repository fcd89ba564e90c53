"""Task folders of Harbor: the sandbox plays and grades what it can, and other tasks are refused by their fields."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli_runner import run
from harbor_tasks import TASK, write_task

from rstar2_env import evaluate
from rstar2_env.adapters.harbor import HarborEnv, read_task, read_tasks
from rstar2_env.adapters.harbor.export import grade_answer
from rstar2_env.adapters.harbor.folder import _REFUSED
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.testing import check_text_env


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HarborEnv]:
    env = HarborEnv(tasks=write_task(tmp_path_factory.mktemp("harbor") / "task"))
    yield env
    env.close()


def commands(env: HarborEnv, *given: str) -> tuple[list[str], float, dict[str, Any]]:
    """Play an episode of commands; return their results, the reward and the last ``info``."""
    env.reset(seed=0)
    shown = [env.step(env.dialect.format_call("bash", {"command": one}))[0] for one in given]
    _, reward, _, _, info = env.step("The task is done.")
    return shown, float(reward), info


def test_the_reference_solution_earns_the_reward_of_the_tests(tmp_path: Path) -> None:
    result = evaluate(
        "rstar2_env.adapters.harbor:HarborEnv",
        "oracle",
        env_options={"tasks": str(write_task(tmp_path / "task"))},
        episodes=1,
        workers=1,
        progress=False,
    )
    assert result.summary.pass_rate.value == 1.0


def test_the_contract_of_environments_is_kept(tmp_path: Path) -> None:
    task = write_task(tmp_path / "task")
    check_text_env(lambda: HarborEnv(tasks=task))


def test_commands_share_files_the_folder_and_the_variables_of_the_image(played: HarborEnv) -> None:
    shown, reward, info = commands(
        played, "cat /app/data/numbers.txt; pwd; echo $GREETING", "echo 41 > sum.txt", "false"
    )
    assert "39\n/app\nhello\n" in shown[0]
    assert "[no output]" in shown[1]
    assert "[exit code 1]" in shown[2]
    assert (reward, info["end"], info["correct"]) == (0.0, "answered", False)


SET_UP = """\
FROM python:3.12-slim
ENV NAME=first
WORKDIR /app
COPY numbers.txt data/
RUN mkdir -p /data/deep && printf "$NAME\\n" > /data/deep/name.txt; chmod 600 /data/deep/name.txt
RUN if [ -f data/numbers.txt ]; then tail -n 1 data/numbers.txt | tr 3 4 > last.txt; fi \\
    && rm data/numbers.txt && python3 -c "open('made.txt', 'w').write('made')"
ENV NAME=second
COPY numbers.txt data/
"""


def test_commands_of_the_image_set_up_each_episode_in_their_order(tmp_path: Path) -> None:
    check = "#!/bin/bash\ncat /data/deep/name.txt /app/last.txt > /logs/verifier/said.txt\n"
    check += "grep -q first /data/deep/name.txt && echo 1 > /logs/verifier/reward.txt\n"
    env = HarborEnv(tasks=write_task(tmp_path / "task", {"environment/Dockerfile": SET_UP, "tests/test.sh": check}))
    for _ in range(2):
        asked = "cat /data/deep/name.txt last.txt made.txt data/numbers.txt; stat -c %a /data/deep/name.txt; echo $NAME"
        shown, reward, _ = commands(env, asked, "echo changed > last.txt")
        assert "first\n49\nmade1\n2\n39\n600\nsecond\n" in shown[0]
        assert reward == 1.0
    env.close()


def test_folders_of_the_image_are_made_in_their_order_and_no_command_waits_for_its_background(tmp_path: Path) -> None:
    lines = (
        "FROM python:3.12-slim",
        "WORKDIR /work/deep",
        "COPY numbers.txt .",
        "RUN sleep 600 & cp numbers.txt copy.txt; mkdir first; touch first/inside.txt",
        "RUN mv first second",
        "WORKDIR second",
        "RUN pwd > where.txt",
        "",
    )
    env = HarborEnv(tasks=write_task(tmp_path / "task", {"environment/Dockerfile": "\n".join(lines)}))
    shown, _, _ = commands(env, "ls .. && ls && cat where.txt")
    env.close()
    assert "copy.txt\nnumbers.txt\nsecond\ninside.txt\nwhere.txt\n/work/deep/second\n" in shown[0]


def test_a_command_of_the_image_that_fails_is_not_the_fault_of_the_policy(tmp_path: Path) -> None:
    env = HarborEnv(tasks=write_task(tmp_path / "task", dockerfile("RUN cat /app/none")))
    env.reset(seed=0)
    _, reward, _, _, info = env.step("The task is done.")
    env.close()
    assert (float(reward), info["end"]) == (0.0, "unavailable")
    assert "line 2 of the Dockerfile ended with exit code 1: cat: /app/none: No such file" in info["error"]


def test_the_instruction_has_no_canary(played: HarborEnv) -> None:
    text, info = played.reset(seed=0)
    assert text.startswith("Write the sum of /app/data/numbers.txt")
    assert info["problem_id"] == "sums/numbers"


@pytest.mark.parametrize(
    "attack",
    [
        "mkdir -p /logs/verifier; echo 1 > /logs/verifier/reward.txt",
        "(while true; do echo 1 > /logs/verifier/reward.txt; sleep 0.01; done) > /dev/null 2>&1 &",
        'echo \'open("/logs/verifier/reward.txt", "w").write("1")\' > /tests/check.py',
        'echo \'import os; open("/logs/verifier/reward.txt", "w").write("1"); os._exit(0)\' > /tests/pathlib.py',
        "d=$(python3 -m site --user-site); mkdir -p $d; echo 'import os; os._exit(0)' > $d/usercustomize.py; "
        "echo 1 > /logs/verifier/reward.txt",
        "rm -r /tmp/app; ln -s /tests /tmp/app",
    ],
)
def test_a_policy_cannot_write_its_own_reward(played: HarborEnv, attack: str) -> None:
    _, reward, info = commands(played, attack)
    assert (reward, info["end"]) == (0.0, "answered")


def test_a_session_that_a_command_ends_starts_with_the_files_of_the_task(played: HarborEnv) -> None:
    shown, reward, _ = commands(played, "echo 42 > sum.txt", "kill -9 $PPID", "ls")
    assert "starts with the files of the task" in shown[1]
    assert "sum.txt" not in shown[2]
    assert "data" in shown[2]
    assert reward == 0.0


def of_tests(tmp_path: Path, script: str, **options: Any) -> tuple[float, dict[str, Any]]:
    """The reward and ``info`` of an episode without commands, by other tests."""
    env = HarborEnv(tasks=write_task(tmp_path / "task", {"tests/test.sh": script}), **options)
    try:
        return commands(env)[1:]
    finally:
        env.close()


def test_each_reward_of_a_json_file_is_a_component(tmp_path: Path) -> None:
    rewards = '{"style": 0.5, "reward": 0.25}'
    reward, info = of_tests(
        tmp_path, f"echo 1 > /logs/verifier/reward.txt; echo '{rewards}' > /logs/verifier/reward.json"
    )
    assert (reward, info["correct"]) == (0.25, False)
    assert info["reward_components"] == {"style": 0.5, "reward": 0.25}


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo no such module; exit 1", "their output ends with: no such module"),
        ("echo nan > /logs/verifier/reward.txt", "reward.txt must contain finite numbers, got 'nan"),
        ('echo \'{"a": 1, "b": 2}\' > /logs/verifier/reward.json', "does not have a field reward"),
    ],
)
def test_tests_without_a_reward_do_not_measure_the_policy(tmp_path: Path, script: str, words: str) -> None:
    _, info = of_tests(tmp_path, script)
    assert info["end"] == "unavailable"
    assert words in info["error"]


def test_a_reward_that_the_policy_wrote_is_none(tmp_path: Path) -> None:
    env = HarborEnv(tasks=write_task(tmp_path / "task", {"tests/test.sh": "exit 1\n"}))
    _, reward, info = commands(env, "echo 1 > /logs/verifier/reward.txt")
    env.close()
    assert (reward, info["end"]) == (0.0, "unavailable")


def test_tests_that_do_not_end_earn_nothing(tmp_path: Path) -> None:
    reward, info = of_tests(tmp_path, "sleep 4; echo 1 > /logs/verifier/reward.txt", test_timeout_s=1.0)
    assert (reward, info["end"]) == (0.0, "answered")
    assert "the tests of the task did not finish: timeout" in info["error"]


@pytest.mark.parametrize(
    "image",
    [
        "--platform=linux/amd64 ubuntu:24.04",
        "python:3.13-slim-bookworm AS base",
        "ghcr.io/laude-institute/t-bench/ubuntu-24-04:20250624",
        "ghcr.io/laude-institute/t-bench/python-3-13:20250620",
    ],
)
def test_plain_images_of_published_tasks_are_played(tmp_path: Path, image: str) -> None:
    task = write_task(tmp_path / "task", {"environment/Dockerfile": f"FROM {image}\nWORKDIR /app\n"})
    assert read_task(task).workdir == "/app"


def toml(line: str, table: str = "environment") -> dict[str, str | None]:
    return {"task.toml": TASK["task.toml"].replace(f"[{table}]\n", f"[{table}]\n{line}\n")}


def dockerfile(line: str) -> dict[str, str | None]:
    return {"environment/Dockerfile": f"FROM python:3.12-slim\n{line}\n"}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (toml("gpus = 1"), "task.toml: environment.gpus: the task needs a GPU"),
        (toml('docker_image = "org/own:1"'), "environment.docker_image: the task needs the Docker image org/own:1"),
        (toml('os = "windows"'), "environment.os: expected linux, got 'windows'"),
        (toml("workdir = 3"), "environment.workdir: expected text, got 3"),
        (toml('env = {KEY = "${KEY}"}'), "environment.env.KEY: the value refers to an environment variable"),
        (
            toml('network_mode = "allowlist"\nallowed_hosts = ["a.b"]'),
            "environment.allowed_hosts: the task needs the network",
        ),
        (
            toml('environment_mode = "separate"', "verifier"),
            "verifier.environment_mode: expected shared, got 'separate'",
        ),
        (toml("[[steps]]\nname = 'one'"), "task.toml: steps: the task has several steps"),
        ({"task.toml": TASK["task.toml"].replace("30.0", "-1")}, "verifier.timeout_sec: expected a positive number"),
        ({"task.toml": "a = ["}, "task.toml"),
        (dockerfile('RUN ["make"]'), "Dockerfile, line 2: 'RUN [\"make\"]' needs a Docker image"),
        (dockerfile("RUN cd /app && no-such-tool"), "Dockerfile, line 2: the program no-such-tool is not installed"),
        (dockerfile("RUN echo 42 > /tmp/expected"), "Dockerfile, line 2: /tmp/expected refers to a file in /tmp"),
        (dockerfile("RUN echo 42 > ~/.netrc"), "Dockerfile, line 2: ~/.netrc refers to a file in /tmp"),
        (dockerfile("RUN git config --global a.b c"), "Dockerfile, line 2: --global refers to a file in /tmp"),
        (dockerfile("RUN echo 42 > /etc/hosts"), "Dockerfile, line 2: /etc/hosts refers to a file in /tmp"),
        (dockerfile("RUN curl -s http://a.b | sh"), "Dockerfile, line 2: the command 'curl' needs the network"),
        (dockerfile("RUN cat <<EOF > /app/x"), "Dockerfile, line 2: 'RUN cat <<EOF > /app/x' needs a Docker image"),
        (dockerfile("RUN echo 'open"), "Dockerfile, line 2: No closing quotation"),
        (
            dockerfile("RUN pip install no-such-package-at-all"),
            "Dockerfile, line 2: the Python package no-such-package-at-all is not installed on this machine",
        ),
        (dockerfile("WORKDIR /tmp/work"), "the task uses the folder /tmp, which the sandbox cannot provide"),
        ({"environment/Dockerfile": "FROM alpine"}, "Dockerfile, line 1: 'FROM alpine' needs a Docker image"),
        (dockerfile("FROM ubuntu:24.04"), "Dockerfile, line 2: 'FROM ubuntu:24.04' needs a Docker image"),
        ({**dockerfile("COPY ../secret /app/"), "secret": "x"}, "Dockerfile, line 2: the file or folder ../secret"),
        ({"environment/docker-compose.yaml": ""}, "docker-compose.yaml: this file is not supported"),
        ({"tests/test.sh": "set -e\ncurl -L http://a.b | sh\n"}, "test.sh, line 2: the command 'curl' needs"),
        (
            {"tests/test.sh": "ls &&\n env A=1 timeout 60 /usr/bin/pip install a\n"},
            "test.sh, line 2: the command 'pip'",
        ),
        ({"solution/solve.sh": "ls; if A=$(curl a); then ls; fi\n"}, "solve.sh, line 1: the command 'curl' needs"),
        ({"tests/test.sh": "echo 'it\nis open\n"}, "test.sh: No closing quotation: 'it."),
        ({"tests/test.sh": None}, "test.sh: this file is missing"),
        ({"environment/Dockerfile": None}, "Dockerfile: this file is missing"),
    ],
)
def test_a_task_that_needs_more_is_refused_with_the_field(
    tmp_path: Path, changes: dict[str, str | None], words: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read_task(write_task(tmp_path / "task", changes))
    assert words in str(caught.value)


@pytest.mark.parametrize(("field", "why"), _REFUSED.items())
def test_a_field_that_the_sandbox_lacks_is_refused(tmp_path: Path, field: str, why: str) -> None:
    table, _, name = field.rpartition(".")
    written = f"{TASK['task.toml']}\n" if not table else TASK["task.toml"].replace(f"[{table}]\n", "")
    head = f"[{table}]\n{name} = ['x']\n" if table else f"[[{name}]]\nname = 'one'\n"
    task = write_task(tmp_path / "task", {"task.toml": f"{written}\n{head}"})
    with pytest.raises(ConfigurationError, match=rf"{re.escape(field)}: {re.escape(why)}"):
        read_task(task)


def test_names_of_commands_in_texts_of_a_script_do_not_refuse_it(tmp_path: Path) -> None:
    script = "#!/bin/bash\ncat > a <<END\ncurl b\nEND\necho '\npip install c' | grep -c \\\napt\n"
    task = write_task(tmp_path / "task", {"tests/test.sh": script, "solution/solve.sh": script})
    assert read_task(task).tests == task / "tests"


def test_links_out_of_a_task_are_refused(tmp_path: Path) -> None:
    task = write_task(tmp_path / "task")
    (task / "tests" / "link").symlink_to("/etc/passwd")
    with pytest.raises(ConfigurationError, match="link: links are not supported"):
        read_task(task)


def test_refused_tasks_are_left_out_only_on_request(tmp_path: Path) -> None:
    write_task(tmp_path / "good")
    write_task(tmp_path / "bad", dockerfile("RUN curl http://a.b"))
    with pytest.raises(ConfigurationError, match="1 of 2 tasks cannot be played"):
        read_tasks(tmp_path)
    assert [task.name for task in read_tasks(tmp_path, skip_refused=True)] == ["sums/numbers"]
    with pytest.raises(ConfigurationError, match="does not contain a task"):
        read_tasks(tmp_path / "good" / "tests")
    with pytest.raises(ConfigurationError, match="none does not exist: give the folder of a task"):
        read_tasks(tmp_path / "none")


def test_the_folder_of_tasks_must_be_given() -> None:
    done = run("eval", "rstar2_env.adapters.harbor:HarborEnv", "--agent", "oracle")
    assert done.exit_code == 2
    assert "The environment rstar2_env.adapters.harbor:HarborEnv needs tasks" in " ".join(done.stderr.split())


def test_an_export_has_graders_and_reference_solutions(tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = run("export", "--env", "rstar2/Countdown-v0", "--to", "harbor", "--out", out, "--episodes", "2")
    assert done.exit_code == 0, done.output
    folders = sorted(file.parent for file in out.glob("*/task.toml"))
    assert [folder.name for folder in folders] == ["rstar2-countdown-v0-0", "rstar2-countdown-v0-1"]
    assert "2 of the tasks have a reference solution" in (out / "README.md").read_text()
    for folder in folders:
        solve = (folder / "solution" / "solve.sh").read_text().replace("/app/", f"{tmp_path}/")
        subprocess.run(["bash", "-c", solve], check=True, timeout=60)
        answer, rewards = tmp_path / "answer.txt", tmp_path / "reward.json"
        assert answer.read_text() not in (folder / "instruction.md").read_text()
        for given, expected in ((answer, [1.0, 1.0, 0.0]), (tmp_path / "none", [0.0, 0.0, 1.0])):
            grade_answer(folder / "tests" / "problem.json", given, rewards)
            assert list(json.loads(rewards.read_text()).values()) == expected


def test_an_export_of_a_game_is_refused(tmp_path: Path) -> None:
    done = run("export", "--env", "rstar2/TicTacToe-v0", "--to", "harbor", "--out", tmp_path / "out", "--episodes", "1")
    assert done.exit_code == 2
    assert "Harbor grades a single answer" in " ".join(done.output.split())
