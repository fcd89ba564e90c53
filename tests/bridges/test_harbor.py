"""Harbor: its own trials run the tasks that we write, and grade a task of others as our environment does."""

from __future__ import annotations

import asyncio
import json

import pytest
from harbor.lint.task import lint_task
from harbor.models.task.task import Task
from harbor.models.trial.config import AgentConfig, EnvironmentConfig, TaskConfig, TrialConfig
from harbor.trial.trial import Trial
from harbor_tasks import write_task

from rstar2_env.adapters.export import export_env
from rstar2_env.adapters.harbor import HarborEnv, read_task


def trial(task, folder, agent, files=None):
    """Run a trial of Harbor; return its rewards."""
    options = {"folder": str(folder / "inside"), "files": files or {}}
    config = TrialConfig(
        task=TaskConfig(path=task),
        trials_dir=folder / "trials",
        agent=AgentConfig(name=agent),
        environment=EnvironmentConfig(import_path="harbor_folder:FolderEnvironment", kwargs=options),
    )

    async def whole():
        return await (await Trial.create(config)).run()

    result = asyncio.run(whole())
    assert result.exception_info is None, result.exception_info
    return result.verifier_result.rewards


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exported") / "count"
    export_env("rstar2/Countdown-v0", "harbor", folder, episodes=2)
    return sorted(file.parent for file in folder.glob("*/task.toml"))


def test_harbor_reads_the_tasks_that_we_write(exported):
    tasks = [Task(folder) for folder in exported]
    assert [task.name for task in tasks] == ["rstar2/rstar2-countdown-v0-0", "rstar2/rstar2-countdown-v0-1"]
    assert all(Task.is_valid_dir(folder) for folder in exported)
    assert "/app/answer.txt" in tasks[0].instruction
    assert tasks[0].config.metadata["environment"] == "rstar2/Countdown-v0"


def test_harbors_linter_finds_only_what_the_documents_name(exported):
    rules = {one.rule.value for folder in exported for one in lint_task(folder)}
    assert rules == {"unpinned-image", "root-agent", "shared-verifier"}


@pytest.mark.parametrize(("agent", "rewards"), [("oracle", (1, 1, 0)), ("nop", (0, 0, 1))])
def test_harbors_trial_gives_the_rewards_of_our_environment(exported, tmp_path, agent, rewards):
    found = trial(exported[0], tmp_path, agent)
    assert found == dict(zip(("reward", "correct", "no_answer"), rewards, strict=True))


@pytest.mark.parametrize(("agent", "turns"), [("oracle", 2), ("nop", 1)])
def test_our_environment_gives_the_rewards_of_harbors_trial(tmp_path, agent, turns):
    task = write_task(tmp_path / "task")
    env = HarborEnv(tasks=task)
    env.reset(seed=0)
    for _ in range(turns - 1):
        env.step(env.oracle_turn())
    *_, info = env.step("The task is done.")
    env.close()
    files = {inside: str(path) for inside, path in read_task(task).files}
    assert info["reward_components"] == trial(task, tmp_path, agent, files)
    assert info["correct"] is (agent == "oracle")


def test_we_read_what_harbor_reads(tmp_path):
    task = write_task(tmp_path / "task")
    theirs, ours = Task(task), read_task(task)
    assert (ours.name, ours.instruction) == (theirs.name, theirs.instruction)
    assert ours.test_timeout_s == theirs.config.verifier.timeout_sec
    assert json.dumps(dict(ours.metadata)) == json.dumps(theirs.config.metadata)
